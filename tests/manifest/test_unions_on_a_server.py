"""Unions of models on both servers: each member is accepted as it is, and mixed ones are refused."""

from __future__ import annotations

from typing import Annotated, cast

import pytest
from msgspec import UNSET, Meta, UnsetType

from kubewright.api.codec import from_json, origin, to_json
from kubewright.api.dynamic import Dynamic
from kubewright.api.errors import DecodeError
from kubewright.api.markers import AtMostOneOf, Immutable, JSONObject, JSONValue, ListMap, Rule
from kubewright.api.meta import ObjectMeta
from kubewright.api.model import Model
from kubewright.api.partials import partial
from kubewright.api.resources import Column, Resource, resource
from kubewright.client import Client
from kubewright.client.errors import Invalid
from kubewright.testing import Install

GROUP = "unions.kubewright.test/v1"


class File(Model, tag="File", rules=[AtMostOneOf("owner", "group")]):
    """Read from a volume."""

    path: Annotated[str, Immutable(), Meta(max_length=100)]
    mode: int = 420
    owner: str | None = None
    group: str | None = None
    retries: int = 3


class Url(Model, tag="URL", rules=[Rule("self.url.startsWith('https:') // TLS", message="must be secure")]):
    """Fetched with HTTP."""

    url: str
    headers: dict[str, str] = {}
    expires: int | UnsetType | None = UNSET
    retries: int = 3


class Nothing(Model, tag="Nothing"):
    retries: int = 3


class Run(Model, tag="Run", tag_field="action"):
    name: str
    command: str


class Wait(Model, tag="Wait", tag_field="action"):
    name: str
    seconds: int = 1


class CopySpec(Model):
    source: File | Url | Nothing
    fallback: File | Url | None = None
    cleared: File | Url | UnsetType | None = UNSET
    steps: Annotated[list[Run | Wait], ListMap("name")] = []
    plans: list[list[Run | Wait]] = []
    by_name: Annotated[dict[str, File | Nothing | None], Meta(max_length=9)] = {}
    preset: File | Url = File(path="/etc/hosts")
    alone: Run | None = None


@resource(GROUP, columns=[Column("Source", ".spec.source.type")])
class Copy(Resource[CopySpec, None]):
    """Has unions everywhere."""


UNTYPED = Dynamic.of(GROUP, "Copy")
FILE: JSONObject = {"type": "File", "path": "a"}
URL: JSONObject = {"type": "URL", "url": "https://a"}

ACCEPTED: list[JSONObject] = [
    {"source": FILE, "fallback": URL},
    {"source": {**FILE, "owner": "o"}},
    {"source": {**URL, "headers": {"a": "b"}, "expires": None}},
    {"source": {"type": "Nothing", "retries": 1}},
    {"source": URL, "fallback": None, "cleared": None, "byName": {"a": None, "b": FILE, "c": {"type": "Nothing"}}},
    {"source": URL, "steps": [{"action": "Wait", "name": "a"}, {"action": "Run", "name": "b", "command": "c"}]},
    {"source": URL, "plans": [[{"action": "Wait", "name": "a"}], []], "preset": URL},
    {"source": URL, "alone": {"name": "a", "command": "b"}},
]
REFUSED: list[tuple[JSONObject, str]] = [
    ({}, "spec.source: Required value"),
    ({"source": None}, "spec.source: "),
    ({"source": {"path": "a"}}, "spec.source.type: Required value"),
    ({"source": {"type": "Tape"}}, 'spec.source.type: Unsupported value: "Tape"'),
    ({"source": {"type": "File"}}, "spec.source.path: Invalid value: must be set when type is File, and only then"),
    (
        {"source": {**FILE, "url": "https://b"}},
        "spec.source.url: Invalid value: must be set when type is URL",
    ),
    ({"source": {**URL, "mode": 1}}, "spec.source.mode: Invalid value: can only be set when type is File"),
    (
        {"source": {**FILE, "owner": "o", "group": "g"}},
        "spec.source: Invalid value: at most one of owner, group",
    ),
    ({"source": {**URL, "url": "http:"}}, "spec.source: Invalid value: must be secure"),
    ({"source": URL, "fallback": {"type": "Nothing"}}, 'spec.fallback.type: Unsupported value: "Nothing"'),
    ({"source": URL, "byName": {"a": {"type": "File"}}}, "spec.byName[a].path: Invalid value: must be set when type"),
    ({"source": URL, "steps": [{"action": "Run", "name": "a"}]}, "spec.steps[0].command: Invalid value: must be set"),
    ({"source": URL, "steps": [{"action": "Wait"}]}, "spec.steps[0].name: Required value"),
    ({"source": URL, "plans": [[], [{"action": "Run", "name": "a", "seconds": 1}]]}, "spec.plans[1][0].seconds: "),
    ({"source": URL, "alone": {"action": "Wait", "name": "a", "command": "b"}}, "spec.alone.action: Unsupported value"),
]
DECODED = ("must be secure", "at most one of", "can only be set", ".url: ")
"""What only the server refuses: rules of the user, and fields that the member does not have and decoding ignores."""


def manifest(spec: JSONValue) -> JSONObject:
    return {"apiVersion": GROUP, "kind": "Copy", "metadata": {"name": "one", "namespace": "default"}, "spec": spec}


async def test_servers_accept_each_member_and_refuse_mixed_ones_as_the_type_does(
    admin: Client, install: Install
) -> None:
    await install(Copy)
    for spec in ACCEPTED:
        typed = from_json(Copy, manifest(spec))
        sent = Copy(metadata=typed.metadata, spec=typed.spec)
        created = await admin.create(sent, dry_run=True)
        assert created.spec == sent.spec, "nothing is pruned, and no default is put beside the wrong tag"
        as_written = await admin.create(from_json(UNTYPED, manifest(spec)), dry_run=True)
        assert from_json(Copy, cast("JSONObject", to_json(as_written))).spec == sent.spec
    for spec, complaint in REFUSED:
        with pytest.raises(Invalid) as refused:
            await admin.create(from_json(UNTYPED, manifest(spec)), dry_run=True)
        assert complaint in str(refused.value)
        if not any(each in complaint for each in DECODED):
            with pytest.raises(DecodeError):
                from_json(Copy, manifest(spec))


async def test_the_server_fills_in_what_all_members_have(admin: Client, install: Install) -> None:
    await install(Copy)
    spec: JSONObject = {"source": {"type": "Nothing"}, "fallback": FILE, "alone": {"name": "a", "command": "b"}}
    created = await admin.create(from_json(UNTYPED, manifest(spec)), dry_run=True)
    stored = cast("JSONObject", created.content["spec"])
    assert stored["source"] == {"type": "Nothing", "retries": 3}
    assert stored["fallback"] == {**FILE, "retries": 3}, "mode is in one member only"
    assert stored["alone"] == {"action": "Run", "name": "a", "command": "b"}
    assert stored["preset"] == {"type": "File", "path": "/etc/hosts", "mode": 420, "retries": 3}


async def test_a_union_becomes_another_member_by_update_by_patch_and_by_apply(
    admin: Client, install: Install, namespace: str
) -> None:
    await install(Copy)
    copy = Copy(metadata=ObjectMeta(name="one", namespace=namespace), spec=CopySpec(source=File(path="a", owner="o")))
    copy = await admin.create(copy)

    assert isinstance(copy.spec.source, File)
    copy.spec.source.path = "b"
    with pytest.raises(Invalid, match=r"spec\.source\.path: Invalid value: .*field is immutable"):
        await admin.update(copy)

    copy.spec.source = Url(url="https://a")
    copy = await admin.update(copy)
    assert copy.spec.source == Url(url="https://a")
    copy.spec.source = File(path="c")
    copy = await admin.patch(copy)
    assert copy.spec.source == File(path="c")
    assert b'"url"' not in (origin(copy) or b"")

    applied = partial(Copy, "two", namespace=namespace)
    applied.spec.source = partial(File, path="a", mode=1)
    assert (await admin.apply(applied)).spec.source == File(path="a", mode=1)
    applied.spec.source = partial(Url, url="https://b")
    assert (await admin.apply(applied)).spec.source == Url(url="https://b")
