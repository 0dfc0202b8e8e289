"""Admission policies that are bound to the namespace of one test, and go with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Literal

import pytest
from tests.conformance.asking import Answer, Ask

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, mapping, text
from kubewright.testing.namespaces import unique_name

GROUP = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/NAMESPACE/configmaps"
WITHIN: JSONObject = {"matchLabels": {"kubernetes.io/metadata.name": "NAMESPACE"}}

Kind = Literal["validating", "mutating"]


def rule(*resources: str, group: str = "", version: str = "v1", operations: JSONValue = None) -> JSONObject:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": operations or ["CREATE", "UPDATE"],
        "resources": list(resources or ("configmaps",)),
    }


def config_map(name: str, **data: JSONValue) -> JSONObject:
    return {"metadata": {"name": name}, **({"data": data} if data else {})}


class Policies:
    """Creates policies with a binding each; `settled` returns once the server judges by all of them."""

    def __init__(self, ask: Ask, prefix: str) -> None:
        self._ask = ask
        self._prefix = prefix
        self._made: list[str] = []

    def name(self, short: str) -> str:
        """The name of a policy, and of its binding."""
        return f"{self._prefix}-{short}"

    async def add(
        self,
        kind: Kind,
        short: str,
        spec: JSONObject,
        *,
        match: JSONObject | None = None,
        **binding: JSONValue,
    ) -> None:
        """A policy for configmaps of the namespace, unless `match` says something else."""
        constraints: JSONObject = {"resourceRules": [rule()], "namespaceSelector": WITHIN, **(match or {})}
        policy: JSONObject = {"matchConstraints": constraints, **spec}
        bound: JSONObject = {"policyName": self.name(short), **binding}
        if kind == "validating":
            bound.setdefault("validationActions", ["Deny"])
        else:
            policy.setdefault("reinvocationPolicy", "Never")
        for plural, content in ((f"{kind}admissionpolicies", policy), (f"{kind}admissionpolicybindings", bound)):
            path = f"{GROUP}/{plural}"
            made = await self._ask("POST", path, {"metadata": {"name": self.name(short)}, "spec": content})
            assert made.code == 201, made.body
            assert made.warnings == []
            self._made.append(f"{path}/{self.name(short)}")

    async def settled(self, kind: Kind) -> None:
        """Wait until the server knows a policy that is created now, and so all those before it."""
        spec: JSONObject = {
            "validations": [{"expression": "object.metadata.name != 'witness'"}],
        }
        if kind == "mutating":
            expression = "Object{metadata: Object.metadata{labels: {'witness': 'true'}}}"
            spec = {
                "matchConditions": [{"name": "witness", "expression": "object.metadata.name == 'witness'"}],
                "mutations": [
                    {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}},
                ],
            }
        await self.add(kind, f"z-{kind}", spec)
        async with asyncio.timeout(60):
            while True:
                found = await self._ask("POST", f"{CONFIG_MAPS}?dryRun=All", config_map("witness"))
                seen = found.code == 422 if kind == "validating" else self._is_marked(found)
                if seen:
                    return
                await asyncio.sleep(0.05)

    async def with_parameters(self, path: str, body: JSONObject) -> Answer:
        """The answer to a POST, once the server has seen the parameters that it needs."""
        async with asyncio.timeout(60):
            while True:
                found = await self._ask("POST", path, body)
                if "param" not in text(found.body, "message"):
                    return found
                await asyncio.sleep(0.05)

    def _is_marked(self, found: Answer) -> bool:
        return text(found.body, "metadata", "labels", "witness") == "true"

    async def remove(self) -> None:
        for path in reversed(self._made):
            await self._ask("DELETE", path)

    def refused(self, short: str, why: str, *, resource: str = "configmaps", name: str = "a") -> str:
        """The message of a refusal by a validating policy."""
        policy = self.name(short)
        by = f"ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: {why}"
        return f'{resource} "{name}" is forbidden: {by}'

    def by_mutation(self, short: str, why: str) -> str:
        """The message of a refusal by a mutating policy."""
        return f"policy '{self.name(short)}' with binding '{self.name(short)}' denied request: {why}"


@pytest.fixture
async def policies(ask: Ask, request: pytest.FixtureRequest) -> AsyncIterator[Policies]:
    made = Policies(ask, unique_name(request.node.name)[-40:].lstrip("-"))
    yield made
    await made.remove()


def causes(answer: Answer) -> JSONValue:
    return at(mapping(answer.body, "details"), "causes")
