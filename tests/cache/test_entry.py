from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api.kinds import ObjectKey
from kubewright.cache.entry import parse_entry
from kubewright.client.errors import ProtocolError

_FIELDS = [{"manager": "kubectl", "fieldsV1": {"f:data": {"f:managedFields": {}}}}]


def _encoded(value: object) -> bytes:
    return msgspec.json.encode(value)


def test_an_entry_knows_what_is_needed_to_find_it() -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}
    metadata = {
        "name": "web",
        "namespace": "shop",
        "resourceVersion": "12",
        "generation": 3,
        "labels": {"app": "web"},
        "ownerReferences": [owner],
    }
    raw = _encoded({"kind": "Pod", "metadata": metadata, "spec": {}})
    entry = parse_entry(raw)
    assert (entry.key, entry.revision, entry.generation) == (ObjectKey("shop", "web"), 12, 3)
    assert entry.labels == {"app": "web"}
    assert [(each.kind, each.name, each.controller) for each in entry.owners] == [("Node", "n", True)]
    assert entry.body == raw


@pytest.mark.parametrize(
    "metadata",
    [
        {"name": "a", "resourceVersion": "1", "managedFields": _FIELDS},
        {"managedFields": _FIELDS, "name": "a", "resourceVersion": "1"},
        {"name": "a", "managedFields": _FIELDS, "resourceVersion": "1"},
        {"name": "a", "resourceVersion": "1", "managedFields": []},
    ],
)
def test_managed_fields_are_cut_out_and_nothing_else_is(metadata: dict[str, object]) -> None:
    whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": "1"}}
    entry = parse_entry(_encoded(whole))
    kept = {name: value for name, value in metadata.items() if name != "managedFields"}
    assert msgspec.json.decode(entry.body) == {**whole, "metadata": kept}


def test_the_word_managed_fields_elsewhere_in_the_object_survives() -> None:
    template = {"metadata": {"managedFields": _FIELDS}}
    metadata = {
        "annotations": {"last": '{"managedFields":[]}'},
        "managedFields": _FIELDS,
        "name": "a",
        "resourceVersion": "1",
    }
    entry = parse_entry(_encoded({"a": template, "metadata": metadata, "spec": {"template": template}}))
    decoded = msgspec.json.decode(entry.body)
    assert decoded["a"] == template
    assert decoded["spec"] == {"template": template}
    assert decoded["metadata"] == {"annotations": metadata["annotations"], "name": "a", "resourceVersion": "1"}


def test_managed_fields_are_cut_out_of_json_that_is_not_compact() -> None:
    raw = msgspec.json.format(_encoded({"metadata": {"name": "a", "resourceVersion": "1", "managedFields": _FIELDS}}))
    assert msgspec.json.decode(parse_entry(raw).body) == {"metadata": {"name": "a", "resourceVersion": "1"}}


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=8) | st.just('"managedFields":'),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "managedFields", "b"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(managed=st.lists(_json, max_size=3), rest=_json, first=st.booleans())
def test_cutting_never_changes_anything_else(managed: object, rest: object, first: bool) -> None:
    metadata = {"name": "a", "resourceVersion": "1", "annotations": {"x": "y"}}
    with_managed = {"managedFields": managed, **metadata} if first else {**metadata, "managedFields": managed}
    entry = parse_entry(_encoded({"before": rest, "metadata": with_managed, "after": rest}))
    assert msgspec.json.decode(entry.body) == {"before": rest, "metadata": metadata, "after": rest}


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"metadata":{"name":"a","resourceVersion":"x1"}}', b'{"metadata":'])
def test_what_cannot_be_an_object_of_a_server_is_an_error_that_says_so(raw: bytes) -> None:
    with pytest.raises(ProtocolError, match=r"cannot be read|expected an integer"):
        parse_entry(raw)
