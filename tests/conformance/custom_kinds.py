"""Custom kinds of a test's own: the forms of the fixture `kind`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.conformance.asking import Answer, Ask

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import inside, text

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"
ANYTHING: JSONObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
FREE: JSONObject = {"type": "object", "properties": {"spec": ANYTHING, "status": ANYTHING}}
SECONDS = 60


def version(name: str = "v1", *, storage: bool = True, schema: JSONObject = FREE, **more: JSONValue) -> JSONObject:
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def typed(**properties: JSONValue) -> JSONObject:
    return {"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": properties}}}


class Kind:
    """A custom kind of the test's own."""

    def __init__(self, ask: Ask, group: str) -> None:
        self.ask = ask
        self.group = group
        self.name = f"things.{group}"

    async def define(self, *versions: JSONObject, **spec_fields: JSONValue) -> JSONObject:
        """Create the definition, and wait until objects of every version that is served can be listed."""
        names: JSONValue = {"plural": "things", "kind": "Thing"}
        spec: JSONObject = {"group": self.group, "scope": "Namespaced", "names": names, "versions": [*versions]}
        spec |= spec_fields
        answer = await self.ask("POST", DEFINITIONS, {"metadata": {"name": self.name}, "spec": spec})
        assert answer.code == 201, answer.body
        for one in versions:
            await self.eventually("GET", self.path(version=text(one, "name")), lambda answer: answer.code == 200)
        return answer.body

    async def change(self, *versions: JSONObject) -> Answer:
        return await self.ask("PATCH", f"{DEFINITIONS}/{self.name}", {"spec": {"versions": [*versions]}}, MERGE)

    async def read(self) -> JSONObject:
        return (await self.ask("GET", f"{DEFINITIONS}/{self.name}")).body

    def path(self, name: str = "", *, version: str = "v1") -> str:
        collection = f"/apis/{self.group}/{version}/namespaces/NAMESPACE/things"
        return f"{collection}/{name}" if name else collection

    async def create(self, name: str, *, version: str = "v1", **content: JSONValue) -> Answer:
        """Create an object; `metadata` in the content is added to its own."""
        obj: JSONObject = {"apiVersion": f"{self.group}/{version}", "kind": "Thing", **content}
        inside(obj, "metadata")["name"] = name
        return await self.ask("POST", self.path(version=version), obj)

    async def eventually(self, method: str, path: str, expected: Callable[[Answer], bool]) -> Answer:
        """The first answer that is as expected: the server takes up a definition in its own time."""
        async with asyncio.timeout(SECONDS):
            while not expected(answer := await self.ask(method, path)):
                await asyncio.sleep(0.01)
            return answer
