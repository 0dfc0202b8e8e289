from __future__ import annotations

import json
from collections.abc import Callable, Iterable

import pytest

from kubewright.api.apps.v1 import ReplicaSet
from kubewright.api.core.v1 import ConfigMap, Namespace
from kubewright.api.dynamic import Dynamic
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object
from kubewright.cache.entry import CacheEntry, parse_entry
from kubewright.controller.event import Event
from kubewright.controller.handler import Handler, for_object, for_owner, mapped
from kubewright.controller.reconcile import Request


def entry(*owners: dict[str, object], namespace: str = "shop", data: object = None) -> CacheEntry:
    metadata = {"name": "a", "namespace": namespace, "resourceVersion": "1", "ownerReferences": owners}
    return parse_entry(json.dumps({"metadata": metadata, "data": data or {}}).encode())


def event(old: CacheEntry | None, new: CacheEntry | None) -> Event[Object]:
    return Event(ConfigMap, old, new, False, None)


def owner(name: str, *, kind: str = "ReplicaSet", version: str = "apps/v1", controls: bool = True) -> dict[str, object]:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": name, "controller": controls}


def test_for_object_enqueues_the_object_itself() -> None:
    assert list(for_object(event(None, entry()))) == [Request("shop", "a")]
    assert list(for_object(event(entry(), None))) == [Request("shop", "a")]


def test_for_owner_enqueues_the_controlling_owner() -> None:
    assert list(for_owner(ReplicaSet)(event(None, entry(owner("web"))))) == [Request("shop", "web")]
    assert list(for_owner(ReplicaSet)(event(entry(owner("web")), None))) == [Request("shop", "web")]
    assert list(for_owner(ReplicaSet)(event(None, entry()))) == []


def test_owners_that_do_not_control_are_enqueued_only_with_every_owner() -> None:
    owned = event(None, entry(owner("first", controls=False), owner("second")))
    assert list(for_owner(ReplicaSet)(owned)) == [Request("shop", "second")]
    both = [Request("shop", "first"), Request("shop", "second")]
    assert list(for_owner(ReplicaSet, controller_only=False)(owned)) == both


def test_the_owner_is_known_in_whatever_version_it_is_referred_to() -> None:
    assert list(for_owner(ReplicaSet)(event(None, entry(owner("web", version="apps/v1beta2"))))) == [
        Request("shop", "web")
    ]


@pytest.mark.parametrize(
    "other",
    [owner("web", version="extensions/v1beta1"), owner("web", version="v1"), owner("web", kind="Deployment")],
    ids=str,
)
def test_an_owner_of_another_group_or_kind_is_not_enqueued(other: dict[str, object]) -> None:
    assert list(for_owner(ReplicaSet)(event(None, entry(other)))) == []


def test_an_owner_in_the_core_group_has_no_group_in_its_version() -> None:
    owned = event(None, entry(owner("settings", kind="ConfigMap", version="v1")))
    assert list(for_owner(ConfigMap)(owned)) == [Request("shop", "settings")]


def test_a_cluster_scoped_owner_is_enqueued_without_a_namespace() -> None:
    owned = event(None, entry(owner("shop", kind="Namespace", version="v1")))
    assert list(for_owner(Namespace)(owned)) == [Request("", "shop")]


def test_an_object_whose_owner_changes_enqueues_both_owners() -> None:
    moved = event(entry(owner("old")), entry(owner("new")))
    assert list(for_owner(ReplicaSet)(moved)) == [Request("shop", "old"), Request("shop", "new")]


def test_an_owner_that_stays_is_enqueued_once() -> None:
    assert list(for_owner(ReplicaSet)(event(entry(owner("web")), entry(owner("web"))))) == [Request("shop", "web")]


def test_an_owner_of_unknown_scope_is_refused_where_it_is_written() -> None:
    with pytest.raises(ValueError, match=r"Widget: .* give namespaced="):
        for_owner(Dynamic.of("example.com/v1", "Widget"))


def keys_in_data(settings: ConfigMap) -> Iterable[Request]:
    return (ObjectKey(settings.metadata.namespace, name) for name in settings.data)


async def keys_in_data_later(settings: ConfigMap) -> Iterable[Request]:
    return keys_in_data(settings)


@pytest.fixture(params=["direct", "async"])
def handler(request: pytest.FixtureRequest) -> Handler[Request]:
    return mapped(keys_in_data) if request.param == "direct" else mapped(keys_in_data_later)


async def outcome(handler: Handler[Request], seen: Event[Object]) -> list[Request]:
    if handler.later_keys is not None:
        return list(await handler.later_keys(seen))
    return list(handler(seen))


async def test_a_function_maps_the_object_before_and_the_object_after(
    handler: Handler[Request],
) -> None:
    seen = event(entry(data={"x": "", "y": ""}), entry(data={"y": "", "z": ""}))
    assert await outcome(handler, seen) == [Request("shop", name) for name in "xyz"]
    assert await outcome(handler, event(None, entry(data={"x": ""}))) == [Request("shop", "x")]
    assert await outcome(handler, event(entry(data={"x": ""}), None)) == [Request("shop", "x")]


async def test_an_undecodable_old_object_does_not_hide_the_new_one(
    handler: Handler[Request], caplog: pytest.LogCaptureFixture
) -> None:
    """An object that is mended concerns whom it names now, though what it was cannot be read."""
    broken = entry(data="not a mapping")
    assert await outcome(handler, event(broken, entry(data={"x": ""}))) == [Request("shop", "x")]
    assert await outcome(handler, event(entry(data={"x": ""}), broken)) == [Request("shop", "x")]
    assert await outcome(handler, event(None, broken)) == []
    assert len(caplog.records) == 3
    assert all(record.levelname == "WARNING" and "data" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("function", [lambda: (), lambda one, two: (), 1])
def test_a_function_that_cannot_map_is_refused(function: Callable[[ConfigMap], Iterable[Request]]) -> None:
    with pytest.raises(TypeError, match=r"a map function is a function of \(object\)"):
        mapped(function)
    with pytest.raises(TypeError, match=r"a handler is a function of \(event\)"):
        Handler(function)  # type: ignore[arg-type]  # that is what is tested
