"""A conversion webhook in the test's process, between `spec.replicas` of v1 and `spec.size` of v1beta1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from tests.conformance.custom_kinds import Kind, version
from tests.conformance.webhooks import Webhooks

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, items, mapping, text

Answer = Callable[[JSONObject], JSONValue | bytes]
"""What becomes of the review that a webhook was about to answer with."""
_FIELDS = {"v1": ("size", "replicas"), "v1beta1": ("replicas", "size")}


def schema(field: str) -> JSONObject:
    spec: JSONObject = {
        field: {"type": "integer"},
        "mode": {"type": "string", "default": f"of-{field}"},
        "note": {"type": "string"},
    }
    status: JSONObject = {"type": "object", "properties": {"ready": {"type": "integer"}}}
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}, "status": status}}


def served_version(name: str, *, storage: bool) -> JSONObject:
    field = _FIELDS[name][1]
    scale: JSONObject = {"specReplicasPath": f".spec.{field}", "statusReplicasPath": ".status.ready"}
    return version(name, storage=storage, schema=schema(field), subresources={"status": {}, "scale": scale})


def converted(obj: JSONObject, desired: str) -> JSONObject:
    made = copied_object(obj)
    made["apiVersion"] = desired
    old, new = _FIELDS[desired.rpartition("/")[2]]
    spec = inside(made, "spec")
    if old in spec:
        spec[new] = spec.pop(old)
    return made


class Converter:
    """A kind in two versions, of which v1 is stored, and what is asked of the webhook that converts it."""

    def __init__(self, kind: Kind, webhooks: Webhooks) -> None:
        self.kind = kind
        self.ask = kind.ask
        self._webhooks = webhooks
        self._change: Answer | None = None

    @property
    def conversion(self) -> JSONObject:
        """The stanza of the definition."""
        client = self._webhooks.serve("/convert", self._answer)
        webhook: JSONObject = {"clientConfig": client, "conversionReviewVersions": ["v2", "v1", "v1beta1"]}
        return {"strategy": "Webhook", "webhook": webhook}

    async def define(self) -> None:
        versions = served_version("v1", storage=True), served_version("v1beta1", storage=False)
        await self.kind.define(*versions, conversion=self.conversion)

    @property
    def requests(self) -> list[JSONObject]:
        """All that the webhook was asked so far."""
        return self._webhooks.requests("/convert")

    @contextmanager
    def answering(self, change: Answer) -> Iterator[None]:
        """Let the webhook answer something else."""
        self._change = change
        yield
        self._change = None

    def failing(self) -> AbstractContextManager[None]:
        return self.answering(lambda review: {**review, "response": {**mapping(review, "response"), "result": NO_WAY}})

    def _answer(self, review: JSONObject) -> JSONValue | bytes:
        desired = text(review, "request", "desiredAPIVersion")
        objects: list[JSONValue] = [converted(mapping(obj), desired) for obj in items(review, "request", "objects")]
        response: JSONObject = {
            "uid": text(review, "request", "uid"),
            "result": {"status": "Success"},
            "convertedObjects": objects,
        }
        answer: JSONObject = {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}
        return answer if self._change is None else self._change(answer)


NO_WAY: JSONObject = {"status": "Failure", "message": "no way"}


@pytest.fixture
async def converter(kind: Kind, webhooks: Webhooks) -> Converter:
    made = Converter(kind, webhooks)
    await made.define()
    return made


__all__ = ["NO_WAY", "Converter", "converted", "converter", "served_version"]
