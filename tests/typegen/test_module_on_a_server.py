"""A server takes the definition that is rendered from generated types for the one they were generated from."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from tests.typegen.conftest import CRDS, Load, canonical_definition, kinds

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json, to_json
from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import JSONValue
from kubewright.client import Client
from kubewright.client.errors import Invalid
from kubewright.client.wait import deleted, established
from kubewright.manifest.crd import crd_of
from kubewright.manifest.documents import documents
from kubewright.typegen import Definition, definition, generate

ORIGINAL, RENDERED = "original.typegen", "rendered.typegen"


def definitions(path: Path, load: Load) -> Iterator[tuple[JSONValue, JSONValue]]:
    """The definitions of a file, and those that their types give: in groups of their own."""
    for document in documents(path.read_text(), path.name):
        if not isinstance(document.value, dict) or document.value["kind"] != "CustomResourceDefinition":
            continue
        group = definition(document.value, document.where).spec.group
        original = json.loads(json.dumps(document.value).replace(group, f"{ORIGINAL}.{group}"))
        found = definition(original, document.where)
        again = crd_of(*kinds(load(generate([found], versions=[version.name for version in found.spec.versions]))))
        yield original, json.loads(json.dumps(again).replace(ORIGINAL, RENDERED))


Stored = Callable[[JSONValue], Awaitable[Definition]]


@pytest.fixture
async def stored(admin: Client) -> AsyncIterator[Stored]:
    """Returns a definition as the server has it, once it serves its kind.

    Removed afterwards: kubectl shows these kinds among those of Kubernetes, by their groups and categories.
    """
    created: list[CustomResourceDefinition] = []

    async def store(document: JSONValue) -> Definition:
        wanted = await admin.create(from_json(CustomResourceDefinition, document))
        created.append(wanted)
        served = await admin.wait_for(wanted, established, timeout=60)
        return canonical_definition(definition(to_json(served), wanted.metadata.name))

    yield store
    for each in created:
        await admin.delete(each)
    for each in created:
        # A server that fails to delete one, as under load, tries again later and later.
        await admin.wait_for(each, deleted, timeout=300)


@pytest.mark.parametrize("path", CRDS, ids=lambda path: path.stem)
async def test_a_server_stores_both_definitions_alike(path: Path, stored: Stored, load: Load) -> None:
    for original, again in definitions(path, load):
        first, second = await stored(original), await stored(again)

        assert second.spec.group == first.spec.group.replace(ORIGINAL, RENDERED)
        second.spec.group = first.spec.group
        assert second == first


SPEC: dict[str, JSONValue] = {"size": 1, "owner": "me"}


@pytest.mark.parametrize(
    ("name", "fields", "refused"),
    [
        ("plain", {"spec": SPEC}, ""),
        (
            "nulls",
            {"spec": {**SPEC, "anything": None, "open": {"known": None, "newest": 1}, "words": [None, "b"]}},
            "",
        ),
        ("maps", {"spec": {**SPEC, **{name: {"a": None, "b": {"c": [1]}} for name in ("free", "each", "some")}}}, ""),
        ("counted", {"spec": {**SPEC, "count": None}}, ""),
        ("closed", {"spec": {**SPEC, "closed": {"unknown": 1}}}, "spec.closed.unknown in body is a forbidden property"),
        ("unknown", {"spec": {**SPEC, "newest": 1, "open": {"newest": [None]}}, "newest": {"kept": True}}, ""),
        ("enumerated", {"spec": {**SPEC, "tier": None}}, "spec.tier: Unsupported value: null"),
        ("ruled", {"spec": {**SPEC, "size": 0, "zone": "eu"}}, "spec.zone: Forbidden"),
        ("admin", {"spec": SPEC}, "this name is reserved"),
        ("a-name-that-is-too-long", {"spec": SPEC}, "metadata.name: Too long"),
        ("much", {"spec": SPEC, "data": {f"a{number}": [{"id": "x"}] for number in range(6)}}, "too much"),
    ],
)
async def test_a_server_accepts_and_defaults_objects_of_both_definitions_alike(
    name: str, fields: dict[str, JSONValue], refused: str, admin: Client, namespace: str, load: Load, stored: Stored
) -> None:
    (path,) = (path for path in CRDS if path.stem == "gadgets")
    ((*both,),) = definitions(path, load)
    answers: list[JSONValue] = []
    for document, prefix in zip(both, (ORIGINAL, RENDERED), strict=True):
        await stored(document)
        gadget = Dynamic.of(f"{prefix}.types.k8s.io/v1", "Gadget", plural="gadgets", namespaced=True)
        sent: dict[str, JSONValue] = {"metadata": {"name": name, "namespace": namespace}, "status": {}, **fields}
        try:
            answers.append((await admin.create(from_json(gadget, sent))).content)
        except Invalid as error:
            answers.append(str(error).replace(prefix, ORIGINAL))

    assert isinstance(answers[0], str) == bool(refused)
    assert refused in str(answers[0])
    assert answers[0] == answers[1]
