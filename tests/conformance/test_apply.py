"""Server-side apply and managed fields.

Sequences of writes by several managers are sent to the server and computed by `controlplane.embedded.managedfields`
alone: objects, managed fields and refusals must be the same.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import decode_json, from_json, origin
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object
from kubewright.client import Client, MergePatch
from kubewright.client.errors import APIError, Conflict, Invalid
from kubewright.client.wait import established
from kubewright.controlplane.embedded.apimachinery.document import at, copied_object, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.apimachinery.structure import SchemaStructure, Structure, structure_of
from kubewright.controlplane.embedded.managedfields import apply, empty_object, same_but_for_times, track_update

TEXT: JSONObject = {"type": "string"}
SPEC: JSONObject = {
    "text": TEXT,
    "number": {"type": "number"},
    "either": {"x-kubernetes-int-or-string": True},
    "map": {"type": "object", "additionalProperties": TEXT},
    "atomicMap": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": TEXT},
    "deepMap": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": TEXT, "y": TEXT}}},
    "list": {"type": "array", "items": TEXT},
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
    "numbers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
    "parts": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": TEXT,
                "value": TEXT,
                "inner": {"type": "object", "properties": {"p": TEXT, "q": TEXT}},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
            },
        },
    },
    "ports": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": {
            "type": "object",
            "required": ["port"],
            "properties": {"port": {"type": "integer"}, "protocol": {**TEXT, "default": "TCP"}, "name": TEXT},
        },
    },
    "nested": {"type": "object", "properties": {"deep": {"type": "object", "properties": {"x": TEXT}}, "z": TEXT}},
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "open": {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"known": {"type": "object", "properties": {"x": TEXT}}},
    },
}
SCHEMA: JSONObject = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": SPEC},
        "status": {
            "type": "object",
            "properties": {"phase": TEXT, "map": {"type": "object", "additionalProperties": TEXT}},
        },
    },
}
# Unlike the typed ConfigMap, this sends what is empty too.
PlainConfigMap = Dynamic.of("v1", "ConfigMap", plural="configmaps", namespaced=True)
Thing = Dynamic.of("example.com/v1", "Thing", plural="things", namespaced=True)
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.fixture
async def things(admin: Client) -> None:
    """A custom kind, `example.com/v1 Thing`, that has every way to merge."""
    names: JSONObject = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    version: JSONObject = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    version["schema"] = {"openAPIV3Schema": SCHEMA}
    spec: JSONObject = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    definition = from_json(CustomResourceDefinition, {"metadata": {"name": "things.example.com"}, "spec": spec})
    await admin.wait_for(await admin.apply(definition), established)


# The same writes, sent and computed.


@dataclass(frozen=True)
class Kind:
    """A kind to write, and what the handlers know of it."""

    type: type[Object]
    api_version: str
    kind: str
    structure: Structure
    empty: JSONObject
    reset: Sequence[Sequence[str]]


CONFIG_MAPS = Kind(PlainConfigMap, "v1", "ConfigMap", structure_of(ConfigMap), empty_object(ConfigMap), ())
THINGS = Kind(Thing, "example.com/v1", "Thing", SchemaStructure(SCHEMA), {}, [("status",)])


@dataclass(frozen=True)
class Write:
    """One write: what it sends, besides the name."""

    verb: str
    manager: str
    metadata: JSONObject
    content: JSONObject


class Sequences:
    """Sends writes to one object, and holds the answers against what is computed."""

    def __init__(self, client: Client, kind: Kind, name: str) -> None:
        self.client, self.kind, self.name = client, kind, name
        self.live: JSONObject | None = None

    async def send(self, write: Write) -> None:
        body: JSONObject = {
            "apiVersion": self.kind.api_version,
            "kind": self.kind.kind,
            "metadata": {"name": self.name, **write.metadata},
            **write.content,
        }
        by = write.manager
        if write.verb.startswith("apply"):
            await self._applied(write, body)
        elif self.live is None:
            await self._updated(by, self.client.create(self._object(body), field_manager=by))
        elif write.verb == "update":
            await self._updated(by, self.client.update(self._object(body, lock=True), field_manager=by))
        elif write.verb == "patch":
            patch = MergePatch({"metadata": write.metadata, **write.content})
            await self._updated(by, self.client.patch(self.kind.type, self.name, patch, field_manager=by))
        else:
            status = self.client.status.update(self._object(body, lock=True), field_manager=by)
            await self._updated(by, status, "status")

    def _object(self, body: JSONObject, *, lock: bool = False) -> Object:
        if lock:
            version = text(self.live, "metadata", "resourceVersion")
            body = {**body, "metadata": {**mapping(body, "metadata"), "resourceVersion": version}}
        return from_json(self.kind.type, body)

    def _reset(self, subresource: str) -> Sequence[Sequence[str]]:
        return [("metadata",), ("spec",)] if subresource else self.kind.reset

    async def _updated(self, manager: str, answer: Awaitable[Object], subresource: str = "") -> None:
        try:
            real = _json(await answer)
        except Invalid:
            return
        new = copied_object(real)
        mapping(new, "metadata").pop("managedFields", None)
        track_update(
            self.live,
            new,
            manager=manager,
            api_version=self.kind.api_version,
            subresource=subresource,
            time=_latest(real),
            structure=self.kind.structure,
            reset=self._reset(subresource),
            empty=self.kind.empty,
        )
        assert at(new, "metadata", "managedFields") == at(real, "metadata", "managedFields")
        self.live = real

    async def _applied(self, write: Write, body: JSONObject) -> None:
        force = "force" in write.verb
        try:
            real = _json(await self.client.apply(self._object(body), force=force, field_manager=write.manager))
        except Invalid:
            return
        except Conflict as error:
            refusal = error.status.message
            with pytest.raises(StatusError) as refused:
                self._computed(write, body, "", force=force)
        else:
            self._compare(real, self._computed(write, body, _latest(real), force=force))
            self.live = real
            return
        assert refused.value.message == refusal

    def _compare(self, real: JSONObject, mine: JSONObject) -> None:
        # A write of nothing leaves what is stored, times of managers included.
        if self.live is not None and same_but_for_times(_as_stored(mine, self.live), self.live):
            mine = self.live
        assert _content(mine) == _content(real)
        assert at(mine, "metadata", "managedFields") == at(real, "metadata", "managedFields")

    def _computed(self, write: Write, body: JSONObject, time: str, *, force: bool) -> JSONObject:
        return apply(
            self.live,
            body,
            manager=write.manager,
            force=force,
            api_version=self.kind.api_version,
            subresource="",
            time=time,
            structure=self.kind.structure,
            reset=self._reset(""),
            empty=self.kind.empty,
        )


def _json(obj: Object) -> JSONObject:
    return cast(JSONObject, decode_json(origin(obj) or b"{}"))


def _latest(obj: JSONObject) -> str:
    entries = cast("list[JSONValue]", at(obj, "metadata", "managedFields") or [])
    return max((text(entry, "time") for entry in entries), default="")


def _as_stored(obj: JSONObject, live: JSONObject) -> JSONObject:
    """What the handlers make of the endpoint's result: status is not its business."""
    return {**{name: value for name, value in obj.items() if name != "status"}, **_part(live, "status")}


def _part(obj: JSONObject, name: str) -> JSONObject:
    return {name: obj[name]} if name in obj else {}


def _content(obj: JSONObject) -> JSONValue:
    """Labels and body; without what is empty, which servers do not all keep, and with the defaults of the schema."""
    labels = at(obj, "metadata", "labels")
    return _tidy({"labels": labels, "data": obj.get("data"), "spec": obj.get("spec")})


def _tidy(value: JSONValue) -> JSONValue:
    if isinstance(value, dict):
        tidy = {name: _tidy(nested) for name, nested in value.items()}
        if "port" in tidy:
            tidy.setdefault("protocol", "TCP")
        return {name: nested for name, nested in tidy.items() if nested not in (None, {}, [])}
    return [_tidy(item) for item in value] if isinstance(value, list) else value


texts = st.sampled_from(["1", "2", "3"])
maps = st.dictionaries(st.sampled_from("abc"), texts, max_size=3)
anything = st.recursive(
    st.sampled_from(["x", 1, 0, True, 1.5, None]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=4,
)


def some(*values: JSONValue) -> st.SearchStrategy[list[JSONValue]]:
    return st.permutations(values).flatmap(lambda order: st.integers(0, len(order)).map(lambda size: [*order[:size]]))


def keyed(key: str, values: Sequence[JSONValue], **optional: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """A list of items, each key value at most once."""

    def items(chosen: list[JSONValue]) -> st.SearchStrategy[object]:
        return st.tuples(*(st.fixed_dictionaries({key: st.just(value)}, optional=optional) for value in chosen)).map(
            list
        )

    return some(*values).flatmap(items)


def struct(**optional: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({}, optional=optional)


specs = st.fixed_dictionaries(
    {},
    optional={
        "text": texts,
        "number": st.sampled_from([1, 1.5]),
        "either": st.sampled_from([1, "1"]),
        "map": maps,
        "atomicMap": maps,
        "deepMap": st.dictionaries(st.sampled_from("ab"), struct(x=texts, y=texts)),
        "list": st.lists(texts, max_size=2),
        "set": some("a", "b", "c", "d<"),
        "numbers": some(1, 2, 10, 9),
        "parts": keyed(
            "name",
            ["a", "b", "c"],
            value=texts,
            inner=struct(p=texts, q=texts),
            tags=some("t", "u"),
        ),
        "ports": keyed("port", [80, 443, 8080], protocol=st.just("TCP"), name=texts),
        "nested": st.fixed_dictionaries(
            {}, optional={"deep": st.fixed_dictionaries({}, optional={"x": texts}), "z": texts}
        ),
        "any": st.dictionaries(st.sampled_from("abc"), anything, max_size=3),
        "open": struct(known=st.just({"x": "1"}), unknown=anything),
    },
)
bodies: dict[str, st.SearchStrategy[dict[str, object]]] = {
    "ConfigMap": struct(data=maps, immutable=st.just(False)),
    "Thing": struct(spec=specs, status=struct(phase=texts)),
}
metadata = struct(labels=st.dictionaries(st.sampled_from("lm"), texts, min_size=1))


def sequences(kind: Kind, *verbs: str) -> st.SearchStrategy[list[Write]]:
    managers = st.sampled_from(["a", "b", "kubectl"])
    write = st.builds(Write, st.sampled_from(verbs), managers, metadata, bodies[kind.kind])
    return st.lists(write, min_size=2, max_size=7)


numbers = count()
quickly = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@quickly
@given(writes=sequences(CONFIG_MAPS, "update", "patch", "apply", "apply", "apply force"))
async def test_managers_of_a_built_in_kind_are_those_that_are_computed(client: Client, writes: list[Write]) -> None:
    sequence = Sequences(client, CONFIG_MAPS, f"sequence-{next(numbers)}")
    for write in writes:
        await sequence.send(write)


@quickly
@given(writes=sequences(THINGS, "update", "patch", "update status", "apply", "apply", "apply force"))
@pytest.mark.usefixtures("things")
async def test_managers_of_a_custom_kind_are_those_that_are_computed(client: Client, writes: list[Write]) -> None:
    sequence = Sequences(client, THINGS, f"sequence-{next(numbers)}")
    for write in writes:
        await sequence.send(write)


# What users meet.


def config_map(data: dict[str, str], annotations: dict[str, str] | None = None) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="shared", annotations=annotations or {}), data=data)


async def test_a_conflict_names_every_manager_and_field(client: Client) -> None:
    await client.create(config_map({"a": "1", "b": "1"}), field_manager="creator")
    await client.apply(config_map({"c": "1"}), field_manager="applier")

    with pytest.raises(Conflict) as one:
        await client.apply(config_map({"a": "2"}), field_manager="me")
    with pytest.raises(Conflict) as many:
        await client.apply(config_map({"a": "2", "b": "2", "c": "2"}), field_manager="me")

    assert one.value.status.message == 'Apply failed with 1 conflict: conflict with "creator" using v1: .data.a'
    assert many.value.status.message == (
        'Apply failed with 3 conflicts: conflicts with "applier":\n- .data.c\n'
        'conflicts with "creator" using v1:\n- .data.a\n- .data.b'
    )
    details = many.value.status.details
    assert details is not None
    assert sorted((cause.reason, cause.message, cause.field) for cause in details.causes or ()) == [
        ("FieldManagerConflict", 'conflict with "applier"', ".data.c"),
        ("FieldManagerConflict", 'conflict with "creator" using v1', ".data.a"),
        ("FieldManagerConflict", 'conflict with "creator" using v1', ".data.b"),
    ]


async def test_force_takes_fields_over_and_a_later_apply_releases_them(client: Client) -> None:
    await client.apply(config_map({"a": "1", "b": "1"}), field_manager="one")
    forced = await client.apply(config_map({"a": "2", "c": "2"}), force=True, field_manager="two")
    left = await client.apply(config_map({"a": "2"}), field_manager="two")

    assert forced.data == {"a": "2", "b": "1", "c": "2"}
    assert left.data == {"a": "2", "b": "1"}


async def test_kubectl_moves_from_client_side_to_server_side_apply(client: Client) -> None:
    last = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"a": "1"}})
    created = config_map({"a": "1"}, {LAST_APPLIED: last})
    await client.create(created, field_manager="kubectl-client-side-apply")

    with pytest.raises(Conflict):
        await client.apply(config_map({"a": "2"}), field_manager="somebody")
    moved = await client.apply(config_map({"a": "2"}), field_manager="kubectl")

    assert moved.data == {"a": "2"}
    assert '"data":{"a":"2"}' in moved.metadata.annotations[LAST_APPLIED]


async def test_managed_fields_can_be_forgotten(client: Client) -> None:
    await client.create(config_map({"a": "1"}))
    forgotten = await client.patch(ConfigMap, "shared", MergePatch({"metadata": {"managedFields": [{}]}}))
    untracked = await client.patch(ConfigMap, "shared", MergePatch({"data": {"b": "1"}}))
    tracked = await client.apply(config_map({"c": "1"}), field_manager="me")

    assert not forgotten.metadata.managed_fields
    assert not untracked.metadata.managed_fields
    assert [entry.manager for entry in tracked.metadata.managed_fields] == ["me", "before-first-apply"]


async def test_old_updates_of_many_managers_are_put_together(client: Client) -> None:
    await client.create(config_map({"a": "1"}), field_manager="m00")
    for number in range(1, 13):
        patch = MergePatch({"data": {f"k{number}": "x"}})
        changed = await client.patch(ConfigMap, "shared", patch, field_manager=f"m{number:02}")

    managers = [entry.manager for entry in changed.metadata.managed_fields]
    assert len(managers) == 10
    assert "ancient-changes" in managers


@pytest.mark.usefixtures("things")
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"nope": 1}, ".spec.nope: field not declared in schema"),
        ({"set": ["a", "a"]}, '.spec.set: duplicate entries for key [="a"]'),
        ({"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]},
         '.spec.ports: duplicate entries for key [port=80,protocol="TCP"]'),
        ({"map": ["x"]}, ".spec.map: expected map, got &{[x]}"),
        ({"list": {"a": 1}}, ".spec.list: expected list, got &{map[a:1]}"),
        ({"parts": [None]}, ".spec.parts: element 0: associative list with keys may not have a null element"),
    ],
)  # fmt: skip
async def test_a_value_that_cannot_be_merged_is_reported_with_its_path(
    client: Client, spec: JSONObject, message: str
) -> None:
    wrong = from_json(Thing, {"metadata": {"name": "wrong"}, "spec": spec})
    with pytest.raises(APIError) as refused:
        await client.apply(wrong)

    assert refused.value.status.code == 500
    assert refused.value.status.message == (
        f"failed to create typed patch object (/wrong; example.com/v1, Kind=Thing): {message}"
    )
