from __future__ import annotations

import json
from collections.abc import Callable
from unittest.mock import Mock

import pytest

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.errors import DecodeError
from kubewright.api.resources import Object
from kubewright.cache.entry import CacheEntry, parse_entry
from kubewright.cache.write_origin import WriteOrigin
from kubewright.controller.event import Event
from kubewright.controller.predicates import (
    Predicate,
    annotations_changed,
    beyond_status,
    changed,
    finalizers_changed,
    foreign_write,
    generation_changed,
    has_labels,
    in_namespaces,
    labels_changed,
    predicate,
    resource_version_changed,
)


def entry(revision: int = 1, *, data: object = None, **metadata: object) -> CacheEntry:
    named = {"name": "a", "namespace": "shop", "resourceVersion": str(revision), **metadata}
    return parse_entry(json.dumps({"metadata": named, "data": data or {}}).encode())


def event(old: CacheEntry | None, new: CacheEntry | None, *, own: bool = False) -> Event[Object]:
    return Event(ConfigMap, old, new, False, WriteOrigin() if own else None)


always = Predicate("always", lambda event: True)
never = Predicate("never", lambda event: False)
COMPARING = [
    generation_changed,
    resource_version_changed,
    labels_changed,
    annotations_changed,
    finalizers_changed,
    changed(lambda entry: 1),
]


@pytest.mark.parametrize("comparing", [*COMPARING, beyond_status], ids=str)
def test_a_comparison_holds_for_objects_that_appear_or_go(comparing: Predicate) -> None:
    assert comparing(event(None, entry()))
    assert comparing(event(entry(), None))


@pytest.mark.parametrize("comparing", [*COMPARING, beyond_status], ids=str)
def test_a_comparison_does_not_hold_when_nothing_differs(comparing: Predicate) -> None:
    assert not comparing(event(entry(generation=1), entry(generation=1)))


@pytest.mark.parametrize(
    ("comparing", "difference"),
    [
        (generation_changed, {"generation": 2}),
        (labels_changed, {"labels": {"app": "web"}}),
        (annotations_changed, {"annotations": {"note": "1"}}),
        (finalizers_changed, {"finalizers": ["example.com/clean-up"]}),
    ],
    ids=str,
)
def test_a_comparison_is_of_its_own_property_alone(comparing: Predicate, difference: dict[str, object]) -> None:
    before, after = entry(1, generation=1), entry(2, **{"generation": 1, **difference})
    assert comparing(event(before, after))
    others = [each for each in COMPARING if each is not comparing and each is not resource_version_changed]
    assert not any(other(event(before, after)) for other in others)


def test_a_label_whose_value_alone_changes_is_a_change() -> None:
    assert labels_changed(event(entry(labels={"app": "a"}), entry(labels={"app": "b"})))


def test_the_generation_leaves_out_status_and_metadata() -> None:
    assert not generation_changed(event(entry(1, generation=3), entry(2, generation=3, labels={"app": "web"})))


def test_a_kind_without_generation_is_judged_by_its_revision() -> None:
    assert generation_changed(event(entry(1), entry(2)))


def test_the_resource_version_changes_with_every_write() -> None:
    assert resource_version_changed(event(entry(1), entry(2)))
    assert not resource_version_changed(event(entry(1), entry(1)))


def test_a_custom_comparison_is_one_line() -> None:
    size_changed = changed(lambda entry: len(entry.body), "size changed")
    assert size_changed(event(entry(data={"x": "1"}), entry(data={"x": "10"})))
    assert not size_changed(event(entry(data={"x": "1"}), entry(data={"x": "2"})))
    assert repr(size_changed) == "Predicate(size changed)"


@pytest.mark.parametrize("left", [always, never], ids=str)
@pytest.mark.parametrize("right", [always, never], ids=str)
def test_predicates_combine_as_booleans_do(left: Predicate, right: Predicate) -> None:
    seen = event(None, entry())
    assert (left & right)(seen) is (left(seen) and right(seen))
    assert (left | right)(seen) is (left(seen) or right(seen))
    assert (~left)(seen) is not left(seen)


def test_predicates_short_circuit() -> None:
    test = Mock(return_value=True)
    costly = Predicate("costly", test)
    assert not (never & costly)(event(None, entry()))
    assert (always | costly)(event(None, entry()))
    test.assert_not_called()


def test_a_combination_has_a_description() -> None:
    assert repr(~(always & never) | in_namespaces("a", "b")) == "Predicate((not (always and never) or in a, b))"


def test_a_function_tests_the_objects_before_and_after() -> None:
    @predicate
    def grew(old: ConfigMap | None, new: ConfigMap | None) -> bool:
        return len(new.data if new else {}) > len(old.data if old else {})

    assert grew(event(entry(), entry(data={"x": "1"})))
    assert grew(event(None, entry(data={"x": "1"})))
    assert not grew(event(entry(data={"x": "1"}), entry()))
    assert not grew(event(entry(data={"x": "1"}), None))
    assert repr(grew) == "Predicate(grew)"


def test_a_function_without_a_name_can_be_a_predicate() -> None:
    class Judge:
        def __call__(self, old: ConfigMap | None, new: ConfigMap | None) -> bool:
            return new is not None

    judge = predicate(Judge())
    assert judge(event(None, entry()))
    assert not judge(event(entry(), None))
    assert repr(judge) == "Predicate(function)"


def test_a_function_of_objects_is_not_called_for_an_undecodable_one() -> None:
    test = Mock(return_value=True)
    with pytest.raises(DecodeError, match="data"):
        predicate(test)(event(None, entry(data="not a mapping")))
    test.assert_not_called()


def test_a_selector_matches_labels_before_and_after() -> None:
    web = has_labels({"app": "web"})
    inside, outside = entry(labels={"app": "web"}), entry(labels={"app": "api"})
    assert web(event(None, inside))
    assert web(event(inside, None))
    assert web(event(outside, inside))
    assert web(event(inside, outside)), "one that leaves the selection is reconciled once more"
    assert not web(event(outside, outside))
    assert not web(event(None, outside))
    assert not web(event(outside, None))


def test_a_selector_may_be_text() -> None:
    assert has_labels("app in (web, api), !canary")(event(None, entry(labels={"app": "api"})))
    assert not has_labels("app in (web, api), !canary")(event(None, entry(labels={"app": "api", "canary": ""})))
    assert has_labels("")(event(None, entry()))


def test_a_bad_selector_is_refused_where_it_is_written() -> None:
    with pytest.raises(ValueError, match='"app in web" is not a label selector'):
        has_labels("app in web")


def test_namespaces_are_compared_whole() -> None:
    there = in_namespaces("shop", "office")
    assert there(event(None, entry(namespace="shop")))
    assert there(event(entry(namespace="office"), None))
    assert not there(event(None, entry(namespace="shop-2")))


def test_own_writes_can_be_left_out() -> None:
    assert foreign_write(event(None, entry()))
    assert not foreign_write(event(None, entry(), own=True))


# Without the status


def widget(revision: int = 1, *, before: str = "", after: str = "", status: str = "", **metadata: object) -> CacheEntry:
    """An object as a server sends it, with other fields before and after its status."""
    named = {"name": "a", "namespace": "shop", "resourceVersion": str(revision), **metadata}
    fields = [f'"metadata":{json.dumps(named, separators=(",", ":"))}', before, status and f'"status":{status}', after]
    return parse_entry(f'{{"apiVersion":"v1",{",".join(field for field in fields if field)}}}'.encode())


SPEC = '"spec":{"size":1,"status":{"ready":1},"resourceVersion":"1"}'


@pytest.mark.parametrize("before", ["", SPEC])
@pytest.mark.parametrize("after", ["", '"zones":["status"]'])
@pytest.mark.parametrize(
    ("old", "new"),
    [("", '{"ready":1}'), ('{"ready":1}', ""), ('{"ready":1}', '{"ready":2}'), ("{}", '{"status":{"ready":1}}')],
)
@pytest.mark.parametrize("generation", [0, 1, 2])
def test_a_change_of_the_status_alone_is_left_out(before: str, after: str, old: str, new: str, generation: int) -> None:
    """Kinds without a status subresource count it as a generation, and some kinds have no generation at all."""
    was = widget(1, before=before, after=after, status=old, generation=min(generation, 1))
    now = widget(2, before=before, after=after, status=new, generation=generation)
    assert not beyond_status(event(was, now))


@pytest.mark.parametrize(
    "now",
    [
        lambda status: widget(2, before=SPEC, status=status, labels={"a": "b"}),
        lambda status: widget(2, before=SPEC, status=status, annotations={"a": "b"}),
        lambda status: widget(2, before=SPEC, status=status, finalizers=["a"]),
        lambda status: widget(2, before=SPEC, status=status, deletionTimestamp="2025-01-01T00:00:00Z"),
        lambda status: widget(2, before=SPEC, status=status, ownerReferences=[{"name": "a"}]),
        lambda status: widget(2, before=SPEC.replace('"size":1', '"size":2'), status=status),
        lambda status: widget(2, before=SPEC.replace('"ready":1', '"ready":2'), status=status),
        lambda status: widget(2, before=SPEC.replace('"1"', '"2"'), status=status),
        lambda status: widget(2, before=SPEC, status=status, after='"data":{}'),
        lambda status: widget(2, status=status),
    ],
)
@pytest.mark.parametrize("status", ['{"ready":1}', '{"ready":2}', ""])
def test_any_other_change_is_left_in_whether_the_status_changes_or_not(
    now: Callable[[str], CacheEntry], status: str
) -> None:
    assert beyond_status(event(widget(1, before=SPEC, status='{"ready":1}'), now(status)))


def test_a_change_of_what_looks_like_the_status_is_left_in() -> None:
    """Definitions may have fields that servers send after the status."""
    first = '"steps":[{"name":"a","status":{"ready":1}},{"name":"a"}]'
    second = '"steps":[{"name":"a"},{"name":"a","status":{"ready":1}}]'
    was, now = widget(1, status='{"ready":1}', after=first), widget(2, status='{"ready":1}', after=second)
    assert beyond_status(event(was, now))
    assert not beyond_status(event(was, widget(2, status='{"ready":2}', after=first)))


@pytest.mark.parametrize("where", ["before", "after"])
def test_the_status_is_left_out_of_an_object_that_is_nested_too_deeply_to_be_decoded(
    where: str,
) -> None:
    deep = {where: f'"spec":{"[" * 10_000}{"]" * 10_000}'}
    was, now = widget(1, status='{"ready":1}', **deep), widget(2, status='{"ready":2}', **deep)
    assert not beyond_status(event(was, now))
    assert beyond_status(event(was, widget(2, status='{"ready":2}', labels={"a": "b"}, **deep)))


# What is given is checked


async def asynchronous(old: ConfigMap | None, new: ConfigMap | None) -> bool:
    return True


@pytest.mark.parametrize("function", [lambda: True, lambda old: True, lambda old, new, more: True, asynchronous, 1])
def test_a_function_that_cannot_be_a_predicate_is_refused(function: Callable[[object, object], bool]) -> None:
    with pytest.raises(TypeError, match=r"a predicate is a function of \(old, new\)"):
        predicate(function)


def test_predicates_combine_with_predicates_alone() -> None:
    for combine in (always.__and__, always.__or__):
        with pytest.raises(TypeError, match=r"is not a predicate: mark a function .* with @predicate"):
            combine(lambda old, new: True)  # type: ignore[arg-type]  # that is what is tested
