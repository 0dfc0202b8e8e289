"""Read, modify, write: nothing that the Python type does not know is lost."""

import copy
from typing import Annotated

import hypothesis.strategies as st
import msgspec
from hypothesis import given

from kubewright.api.codec import decode, decode_json, encode, to_json
from kubewright.api.markers import JSONValue, ListMap
from kubewright.api.model import Model
from kubewright.api.origin import changes, merge_patch, patch_between, same
from kubewright.api.origin import merged as merged_parts
from kubewright.api.resources import Object, Resource, resource


def merged(app: Object) -> JSONValue:
    return decode_json(encode(merged_parts(app)))


class Port(Model):
    name: str
    number: int = 80


class Step(Model):
    run: str


class File(Model, tag="File"):
    path: str


class Url(Model, tag="URL"):
    url: str
    retries: int = 1


class Spec(Model):
    image: str
    replicas: int = 1
    ports: Annotated[list[Port], ListMap("name")] = []
    steps: list[Step] = []
    args: list[str] = []
    by_name: dict[str, Port] = {}
    note: str | None = None
    source: File | Url | None = None
    sources: list[File | Url] = []


@resource("example.com/v1")
class App(Resource[Spec, None]):
    pass


def read(**spec: JSONValue) -> App:
    content = {"metadata": {"name": "a", "novel": {"x": 1}}, "spec": {"image": "i", "future": [1], **spec}, "extra": 1}
    return decode(App, msgspec.json.encode(content))


def spec_of(app: App) -> dict[str, JSONValue]:
    content = merged(app)
    assert isinstance(content, dict)
    assert content["extra"] == 1
    spec = content["spec"]
    assert isinstance(spec, dict)
    return spec


def test_a_union_keeps_what_its_type_does_not_know_unless_it_becomes_another_member() -> None:
    app = read(source={"type": "URL", "url": "a", "future": 1}, sources=[{"type": "File", "path": "a", "future": 2}])
    assert isinstance(app.spec.source, Url)
    app.spec.source.url = "b"
    assert spec_of(app)["source"] == {"type": "URL", "url": "b", "future": 1}

    app.spec.source = File(path="c")
    app.spec.sources[0] = Url(url="d")
    assert spec_of(app)["source"] == {"type": "File", "path": "c"}
    assert spec_of(app)["sources"] == [{"type": "URL", "url": "d", "retries": 1}]


def test_an_unchanged_object_is_written_as_it_was_read() -> None:
    app = read(ports=[{"name": "http"}])
    assert merged(app) == {
        "metadata": {"name": "a", "novel": {"x": 1}},
        "spec": {"image": "i", "future": [1], "ports": [{"name": "http"}]},
        "extra": 1,
    }


def test_a_changed_field_changes_and_nothing_else_does() -> None:
    app = read(note="old")
    app.spec.image = "j"
    app.spec.note = None
    assert spec_of(app) == {"image": "j", "future": [1]}


def test_unknown_fields_of_list_items_follow_their_merge_key() -> None:
    app = read(ports=[{"name": "http", "number": 1, "novel": "h"}, {"name": "dns", "number": 2, "novel": "d"}])
    app.spec.ports = [Port(name="new"), Port(name="dns", number=53), Port(name="http", number=1)]
    assert spec_of(app)["ports"] == [
        {"name": "new", "number": 80},
        {"name": "dns", "number": 53, "novel": "d"},
        {"name": "http", "number": 1, "novel": "h"},
    ]


def test_unknown_fields_of_items_without_a_key_follow_the_equal_item() -> None:
    app = read(steps=[{"run": "a", "novel": 1}, {"run": "b", "novel": 2}])
    app.spec.steps = [Step(run="b"), Step(run="c"), Step(run="a")]
    assert spec_of(app)["steps"] == [{"run": "b", "novel": 2}, {"run": "c"}, {"run": "a", "novel": 1}]


def test_an_item_changed_in_place_keeps_its_unknown_fields() -> None:
    app = read(steps=[{"run": "a", "novel": 1}, {"run": "b", "novel": 2}])
    app.spec.steps[0].run = "z"
    assert spec_of(app)["steps"] == [{"run": "z", "novel": 1}, {"run": "b", "novel": 2}]


def test_unknown_fields_of_map_values_follow_their_name() -> None:
    app = read(byName={"x": {"name": "x", "novel": 1}, "y": {"name": "y", "novel": 2}})
    app.spec.by_name["x"].number = 9
    del app.spec.by_name["y"]
    assert spec_of(app)["byName"] == {"x": {"name": "x", "novel": 1, "number": 9}}


def test_a_default_the_server_did_not_store_is_no_change() -> None:
    assert spec_of(read()) == {"image": "i", "future": [1]}


def test_an_object_made_in_python_is_written_whole() -> None:
    app = App(spec=Spec(image="i"))
    assert merged(app) == to_json(app)


def test_the_changes_are_the_fields_that_changed_with_what_is_the_same_in_them_only_once() -> None:
    app = read(ports=[{"name": "http", "novel": "h"}], args=["a", "b"])
    snapshot = encode(app)
    assert changes(app, snapshot) == ({}, {})
    app.spec.note = "n"
    old, new = changes(app, snapshot)
    assert list(old) == list(new) == ["spec"]
    before, after = old["spec"], new["spec"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert after == before | {"note": "n"}
    assert after["ports"] is before["ports"]


def test_a_copy_made_before_the_change_is_a_base_for_a_patch() -> None:
    app = read(ports=[{"name": "http", "novel": "h"}])
    base = copy.deepcopy(app)
    app.spec.ports[0].number = 8080
    assert patch_between(merged_parts(base), merged_parts(app)) == {
        "spec": {"ports": [{"name": "http", "novel": "h", "number": 8080}]}
    }


json_values: st.SearchStrategy[JSONValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=1), inner, max_size=3)
    ),
    max_leaves=12,
)
json_objects: st.SearchStrategy[JSONValue] = st.dictionaries(
    st.text("abc", min_size=1, max_size=1), json_values, max_size=4
)


def applied(target: JSONValue, patch: JSONValue) -> JSONValue:
    """RFC 7386, section 2, word for word."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = applied(result.get(name), value)
    return result


def without_nulls(value: JSONValue) -> JSONValue:
    """A merge patch cannot set null, so it is only made for objects without it (lists are replaced whole)."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return value


@given(json_objects.map(without_nulls), json_objects.map(without_nulls))
def test_a_merge_patch_turns_one_object_into_the_other(before: JSONValue, after: JSONValue) -> None:
    patch = merge_patch(before, after)
    assert same(applied(before, patch), after)
    assert bool(patch) != same(before, after)


ports = st.lists(
    st.builds(Port, name=st.sampled_from("abcd"), number=st.integers(0, 3)),
    max_size=4,
    unique_by=lambda port: port.name,
)
specs = st.builds(
    Spec,
    image=st.text("ab", max_size=2),
    replicas=st.integers(0, 2),
    ports=ports,
    steps=st.lists(st.builds(Step, run=st.sampled_from("abc")), max_size=3),
    args=st.lists(st.sampled_from("abc"), max_size=3),
    by_name=st.dictionaries(st.sampled_from("xy"), st.builds(Port, name=st.sampled_from("ab"))),
    note=st.none() | st.sampled_from("ab"),
)


def with_unknown(value: JSONValue) -> JSONValue:
    """The same, with an unknown field in every structure, marked with what it is in."""
    if isinstance(value, dict):
        return {name: with_unknown(item) for name, item in value.items()} | {"unknown": str(value.get("name", ""))}
    if isinstance(value, list):
        return [with_unknown(item) for item in value]
    return value


@given(specs, specs)
def test_fields_of_python_and_unknown_fields_are_written(before: Spec, after: Spec) -> None:
    stored = with_unknown(to_json(App(spec=before)))
    assert isinstance(stored, dict)
    stored["spec"]["byName"].pop("unknown")  # type: ignore[union-attr, index, call-overload, arg-type]
    app = decode(App, msgspec.json.encode(stored))
    snapshot = encode(app)
    app.spec = copy.deepcopy(after)
    written = merged(app)
    old, new = changes(app, snapshot)
    assert same(written, {name: value for name, value in stored.items() if name not in old} | new)
    assert all(same(stored[name], value) for name, value in old.items())
    assert decode(App, msgspec.json.encode(written)).spec == after
    assert isinstance(written, dict)
    spec = written["spec"]
    assert isinstance(spec, dict)
    assert spec["unknown"] == ""
    kept = {port.name for port in before.ports} & {port.name for port in after.ports}
    assert isinstance(spec["ports"], list)
    marked = {port["name"] for port in spec["ports"] if isinstance(port, dict) and port.get("unknown") == port["name"]}
    assert marked == kept


@given(json_values, json_values)
def test_equality_is_that_of_json(one: JSONValue, other: JSONValue) -> None:
    assert same(one, other) == (encode(_sorted(one)) == encode(_sorted(other)))


def _sorted(value: JSONValue) -> JSONValue:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
