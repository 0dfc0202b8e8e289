"""A change is made again on what another client has changed: both survive."""

from __future__ import annotations

from typing import Annotated, cast

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kubewright.api.core.v1 import Pod, Service
from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import Atomic, JSONObject, JSONValue, ListMap, ListSet
from kubewright.api.meta import Condition
from kubewright.api.model import Model
from kubewright.api.origin import merge_patch, same
from kubewright.api.rebase import MergeClash, rebased, replaces_whole
from kubewright.api.resources import Resource, resource
from kubewright.api.shape import Shape


class Part(Model):
    name: str
    weight: int | None = None
    tags: Annotated[list[str], ListSet()] = []


class File(Model, tag="File"):
    path: str
    mode: int | None = None


class Url(Model, tag="URL"):
    url: str


class Spec(Model):
    size: int = 1
    note: str | None = None
    parts: Annotated[list[Part], ListMap("name")] = []
    members: Annotated[list[str], ListSet()] = []
    args: list[str] = []
    fixed: Annotated[list[str], Atomic()] = []
    settings: dict[str, str] = {}
    source: File | Url | None = None


class Status(Model):
    conditions: list[Condition] = []


@resource("example.com/v1")
class Thing(Resource[Spec, Status]):
    pass


THING, POD, SERVICE, DYNAMIC = (
    Shape("model", model=each) for each in (Thing, Pod, Service, Dynamic.of("example.com/v1", "Thing"))
)


def on(live: JSONObject, before: JSONObject, after: JSONObject) -> JSONValue:
    return rebased({"spec": before}, {"spec": after}, {"spec": live}, THING)["spec"]


def test_fields_of_both_survive_and_ours_win() -> None:
    before: JSONObject = {"size": 1, "note": "a"}
    assert on({"size": 2, "note": "a", "novel": 1}, before, {"size": 1, "note": "b"}) == {
        "size": 2,
        "note": "b",
        "novel": 1,
    }
    assert on({"size": 2}, {"size": 1}, {"size": 3}) == {"size": 3}
    assert on({"size": 2, "note": "b"}, before, {"size": 1}) == {"size": 2}


def test_items_go_by_their_key() -> None:
    live: JSONObject = {"parts": [{"name": "x"}, {"name": "a", "weight": 1, "novel": 1}, {"name": "b"}, {"name": "c"}]}
    before: JSONObject = {"parts": [{"name": "a", "weight": 1}, {"name": "b"}, {"name": "c"}]}
    after: JSONObject = {"parts": [{"name": "a", "weight": 2}, {"name": "new"}, {"name": "c"}]}
    assert on(live, before, after) == {
        "parts": [{"name": "x"}, {"name": "a", "weight": 2, "novel": 1}, {"name": "new"}, {"name": "c"}]
    }


def test_the_fields_of_an_item_are_merged_too() -> None:
    assert on(
        {"parts": [{"name": "a", "weight": 3, "tags": ["t", "theirs"]}]},
        {"parts": [{"name": "a", "weight": 1, "tags": ["t"]}]},
        {"parts": [{"name": "a", "weight": 1, "tags": ["t", "ours"]}]},
    ) == {"parts": [{"name": "a", "weight": 3, "tags": ["t", "ours", "theirs"]}]}


def test_an_item_that_both_added_is_one() -> None:
    assert on(
        {"parts": [{"name": "a", "weight": 1, "novel": 1}]}, {}, {"parts": [{"name": "a", "weight": 2}, {"name": "b"}]}
    ) == {"parts": [{"name": "a", "weight": 2, "novel": 1}, {"name": "b"}]}


def test_a_key_that_the_server_fills_in_need_not_be_given() -> None:
    """Else a port that is added again, by a program that has not seen its own write yet, would be there twice."""

    def ports(*ports: JSONObject) -> JSONObject:
        return {"spec": {"ports": [*ports]}}

    dns: JSONObject = {"port": 53, "protocol": "UDP"}
    live = ports(dns, {"port": 53, "protocol": "TCP", "targetPort": 53})
    assert rebased(ports(dns), ports(dns, {"port": 53, "name": "dns"}), live, SERVICE) == ports(
        dns, {"port": 53, "protocol": "TCP", "targetPort": 53, "name": "dns"}
    )
    assert rebased(ports({"port": 80, "protocol": "TCP"}), ports(), ports({"port": 80}, dns), SERVICE) == ports(dns)


def test_an_item_that_others_removed_comes_back_only_if_we_changed_it() -> None:
    before: JSONObject = {"parts": [{"name": "a"}, {"name": "b"}]}
    after: JSONObject = {"parts": [{"name": "a"}, {"name": "b", "weight": 1}, {"name": "c"}]}
    assert on({"parts": []}, before, after) == {"parts": [{"name": "b", "weight": 1}, {"name": "c"}]}
    assert on({}, before, after) == {"parts": [{"name": "b", "weight": 1}, {"name": "c"}]}


def test_a_new_order_is_kept() -> None:
    assert on({"members": ["a", "x", "b"]}, {"members": ["a", "b"]}, {"members": ["b", "a"]}) == {
        "members": ["b", "a", "x"]
    }
    assert on({"members": ["b", "x", "a"]}, {"members": ["a", "b"]}, {"members": ["a", "b", "c"]}) == {
        "members": ["b", "c", "x", "a"]
    }


@pytest.mark.parametrize("after", [{}, {"members": []}])
def test_items_that_others_added_to_a_list_that_became_empty_stay(after: JSONObject) -> None:
    assert on({"members": ["a", "theirs"]}, {"members": ["a"]}, after) == {"members": ["theirs"]}
    assert on({"members": ["a"]}, {"members": ["a"]}, after) == after


def test_entries_that_others_added_to_a_map_that_became_empty_stay() -> None:
    assert on({"settings": {"a": "1", "theirs": "2"}}, {"settings": {"a": "1"}}, {}) == {"settings": {"theirs": "2"}}
    assert on({"settings": {"a": "2"}}, {"settings": {"a": "1"}}, {}) == {}


def test_a_structure_that_was_removed_is_gone() -> None:
    before: JSONObject = {"spec": {"securityContext": {"runAsUser": 1}}}
    live: JSONObject = {"spec": {"securityContext": {"runAsUser": 1, "runAsGroup": 2}}}
    assert rebased(before, {"spec": {}}, live, POD) == {"spec": {}}


@pytest.mark.parametrize("name", ["args", "fixed"])
def test_a_list_without_keys_is_replaced_unless_others_changed_it_too(name: str) -> None:
    assert on({name: ["a"], "size": 2}, {name: ["a"]}, {name: ["b"]}) == {name: ["b"], "size": 2}
    assert on({name: ["b"]}, {name: ["a"]}, {name: ["b"]}) == {name: ["b"]}
    assert on({name: ["c"]}, {name: ["a"]}, {name: ["a"]}) == {name: ["c"]}
    with pytest.raises(MergeClash, match=f"^spec.{name}$"):
        on({name: ["a", "c"]}, {name: ["a"]}, {name: ["a", "b"]})


def test_a_union_is_merged_while_it_is_one_member_and_otherwise_replaced_unless_others_changed_it_too() -> None:
    file: JSONObject = {"source": {"type": "File", "path": "a"}}
    moved: JSONObject = {"source": {"type": "File", "path": "b"}}
    url: JSONObject = {"source": {"type": "URL", "url": "c"}}
    theirs: JSONObject = {"source": {"type": "File", "path": "a", "mode": 1}}
    assert on(theirs, file, moved) == {"source": {"type": "File", "path": "b", "mode": 1}}
    assert on({**file, "size": 2}, file, url) == {**url, "size": 2}
    assert on(url, file, {}) == {}
    for live, before, after in ((theirs, file, url), (url, file, moved), (url, {}, file)):
        with pytest.raises(MergeClash, match=r"^spec\.source$"):
            on(live, before, after)


def test_a_patch_that_makes_a_union_another_member_replaces_it_whole() -> None:
    file: JSONObject = {"spec": {"source": {"type": "File", "path": "a"}}}
    moved: JSONObject = {"spec": {"source": {"type": "File", "path": "b"}}}
    url: JSONObject = {"spec": {"source": {"type": "URL", "url": "c"}}}
    assert not replaces_whole(merge_patch(file, moved), file, THING)
    assert replaces_whole(merge_patch(file, url), file, THING)
    assert replaces_whole(merge_patch({"spec": {}}, url), {"spec": {}}, THING)


def test_items_that_cannot_be_identified_are_replaced_as_one() -> None:
    with pytest.raises(MergeClash, match=r"^spec\.parts$"):
        on({"parts": [{"name": "a"}, {"name": "a"}]}, {}, {"parts": [{"name": "b"}]})


@pytest.mark.parametrize("shape", [THING, DYNAMIC])
def test_conditions_go_by_their_type_in_types_without_the_marker(shape: Shape) -> None:
    def status(*names: str, state: str = "True") -> JSONObject:
        return {"status": {"conditions": [{"type": name, "status": state} for name in names]}}

    assert rebased(status("A"), status("A", "Ours"), status("A", "Theirs"), shape) == status("A", "Ours", "Theirs")
    assert rebased(status("A"), status("A", state="False"), status("A", "T"), shape)["status"] == {
        "conditions": [{"type": "A", "status": "False"}, {"type": "T", "status": "True"}]
    }


@pytest.mark.parametrize("shape", [THING, POD, DYNAMIC])
def test_finalizers_and_owners_of_any_kind_are_merged(shape: Shape) -> None:
    def metadata(finalizers: list[JSONValue], *owners: str) -> JSONObject:
        references: list[JSONValue] = [{"uid": owner, "name": owner} for owner in owners]
        return {"metadata": {"finalizers": finalizers, "ownerReferences": references}}

    live = metadata(["a", "theirs"], "1", "3")
    assert rebased(metadata(["a"], "1"), metadata(["ours"], "1", "2"), live, shape) == metadata(
        ["ours", "theirs"], "1", "2", "3"
    )


@pytest.mark.parametrize(
    ("patch", "before", "expected"),
    [
        ({"spec": {"size": 2}}, {}, False),
        ({"spec": {"note": None}}, {"spec": {"note": "x"}}, False),
        ({"spec": {"settings": {"a": None}}}, {"spec": {"settings": {"a": "1"}}}, False),
        ({"spec": {"settings": None}}, {"spec": {"settings": {"a": "1"}}}, True),
        ({"spec": {"args": None}}, {"spec": {"args": ["a"]}}, True),
        ({"spec": {"args": ["a"]}}, {}, True),
        ({"spec": {"novel": {"deep": [1]}}}, {}, True),
        ({"spec": {"novel": None}}, {"spec": {"novel": [1]}}, True),
        ({"spec": {"novel": None}}, {"spec": {"novel": {"a": 1}}}, False),
    ],
)
def test_a_patch_replaces_lists_and_removes_maps_whole(patch: JSONObject, before: JSONObject, expected: bool) -> None:
    assert replaces_whole(patch, before, THING) is expected


members = st.lists(st.sampled_from("abcdef"), unique=True, max_size=5)
parts = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abcd")},
        optional={"weight": st.integers(0, 2), "tags": members, "novel": st.integers(0, 2)},
    ),
    unique_by=lambda part: cast(str, part["name"]),
    max_size=4,
)
settings = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"))
specs = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 2),
        "parts": parts,
        "members": members,
        "settings": settings,
        "novel": st.dictionaries(st.sampled_from("ab"), st.integers(0, 2)),
        "args": st.lists(st.sampled_from("ab"), max_size=2),
    },
).map(lambda spec: {"spec": cast(JSONValue, spec)})


@given(specs, specs)
def test_no_change_leaves_everything_as_it_is(before: JSONObject, live: JSONObject) -> None:
    assert same(rebased(before, before, live, THING), live)


@given(specs, specs)
def test_on_an_unchanged_object_the_change_is_exact(before: JSONObject, after: JSONObject) -> None:
    assert same(rebased(before, after, before, THING), after)


@given(members, members, members)
def test_both_changes_of_a_set_survive(before: list[str], after: list[str], live: list[str]) -> None:
    result = on(*({"members": cast(JSONValue, each)} for each in (live, before, after)))
    expected = (set(live) - (set(before) - set(after))) | (set(after) - set(before))
    assert set(cast("dict[str, list[str]]", result).get("members", ())) == expected


@given(settings, settings, settings)
def test_both_changes_of_a_map_survive(before: dict[str, str], after: dict[str, str], live: dict[str, str]) -> None:
    result = on(*({"settings": cast(JSONValue, each)} for each in (live, before, after)))
    assert cast("dict[str, dict[str, str]]", result).get("settings", {}) == {
        name: value
        for name in live.keys() | after.keys()
        if (value := (live if before.get(name) == after.get(name) else after).get(name)) is not None
    }


@given(parts, parts, parts)
def test_both_changes_of_keyed_items_survive(
    before: list[JSONObject], after: list[JSONObject], live: list[JSONObject]
) -> None:
    result = cast(
        "dict[str, list[JSONObject]]", on(*({"parts": cast(JSONValue, each)} for each in (live, before, after)))
    )
    old, new, there, left = (
        {each["name"]: each for each in parts} for parts in (before, after, live, result.get("parts", []))
    )
    ours = {name for name, part in new.items() if not same(part, old.get(name))}
    assert left.keys() == ours | {name for name in there if name in new or name not in old}
    for name, part in left.items():
        if name not in ours:
            assert same(part, there[name])
        elif "weight" in new[name] and new[name].get("weight") != old.get(name, {}).get("weight"):
            assert part["weight"] == new[name]["weight"]


@given(specs, specs, specs)
def test_a_change_made_again_on_itself_is_none(before: JSONObject, after: JSONObject, live: JSONObject) -> None:
    try:
        once = rebased(before, after, live, THING)
    except MergeClash:
        return
    assert merge_patch(once, rebased(before, after, once, THING)) == {}
