import pytest

from kubewright.api.codec import decode, decode_json, encode
from kubewright.api.dynamic import Dynamic, PartialObject, metadata_only
from kubewright.api.errors import DecodeError
from kubewright.api.meta import ObjectMeta
from kubewright.api.model import Model
from kubewright.api.origin import merged
from kubewright.api.resources import Resource, resource, resource_info

Widget = Dynamic.of("example.com/v1", "Widget")


def test_a_dynamic_object_is_read_and_written_by_name() -> None:
    widget = decode(Widget, b'{"metadata":{"name":"a"},"spec":{"ports":[{"port":80}]}}')
    assert widget.get("spec", "ports", 0, "port") == 80
    widget["data"] = {"a": 1}
    assert encode(widget) == (
        b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},'
        b'"spec":{"ports":[{"port":80}]},"data":{"a":1}}'
    )


@pytest.mark.parametrize("path", [("spec", "nothing"), ("spec", "ports", 7), ("spec", "ports", "port"), ("other",)])
def test_the_value_at_an_absent_path_is_none(path: tuple[str | int, ...]) -> None:
    assert decode(Widget, b'{"metadata":{},"spec":{"ports":[]}}').get(*path) is None


def test_nothing_is_lost_not_even_unknown_metadata() -> None:
    widget = decode(Widget, b'{"metadata":{"name":"a","novelty":1},"spec":{"a":null,"b":[1]}}')
    widget.metadata.labels["c"] = "d"
    assert decode_json(encode(merged(widget))) == {
        "metadata": {"name": "a", "novelty": 1, "labels": {"c": "d"}},
        "spec": {"a": None, "b": [1]},
    }


def test_the_same_kind_is_the_same_type() -> None:
    assert Dynamic.of("example.com/v1", "Widget") is Widget
    assert Dynamic.of("example.com/v2", "Widget") is not Widget


def test_what_needs_discovery_is_left_open() -> None:
    assert resource_info(Widget).namespaced is None
    known = resource_info(Dynamic.of("example.com/v1", "Mouse", plural="mice", namespaced=False))
    assert (known.plural, known.namespaced) == ("mice", False)


def test_an_object_made_in_python_carries_its_kind() -> None:
    widget = Widget(metadata=ObjectMeta(name="a"), content={"spec": {"x": 1}})
    assert encode(widget) == b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"x":1}}'


@pytest.mark.parametrize("raw", [b"[]", b'{"metadata":{"name":3}}', b"nonsense"])
def test_json_that_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(Widget, raw)


def test_the_metadata_view_of_a_kind_is_addressed_like_the_kind() -> None:
    class Spec(Model):
        secret: str

    @resource("example.com/v1")
    class Vault(Resource[Spec, None]):
        pass

    view = metadata_only(Vault)
    assert issubclass(view, PartialObject)
    assert view is metadata_only(Vault)
    assert resource_info(view) is resource_info(Vault)
    seen = decode(view, b'{"kind":"PartialObjectMetadata","metadata":{"name":"a","labels":{"b":"c"}}}')
    assert seen.metadata.labels == {"b": "c"}
