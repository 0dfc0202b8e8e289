from typing import Annotated

import msgspec
import pytest
from msgspec import UNSET, Meta, UnsetType, field

from kubewright.api.codec import decode_model, encode
from kubewright.api.errors import DecodeError
from kubewright.api.model import BuiltIn, Model


class Strategy(Model):
    kind: str = "Rolling"


class Spec(Model):
    image: Annotated[str, Meta(min_length=1)]
    replicas: int = 3
    paused: bool = False
    tags: list[str] = []
    limits: dict[str, str] = {"cpu": "1"}
    strategy: Strategy = Strategy()
    node: str | None = None
    deadline: int | UnsetType | None = UNSET
    notes: list[str] = field(default_factory=list)
    from_: str | None = None
    cluster_ip: str | None = field(default=None, name="clusterIP")


class Port(BuiltIn):
    number: int
    name: str = ""
    weight: int = 0
    aliases: list[str] = []
    labels: dict[str, str] = {}


def sent(model: Model) -> object:
    return msgspec.json.decode(encode(model))


def test_a_field_with_a_default_other_than_none_is_always_sent() -> None:
    assert sent(Spec(image="nginx")) == {
        "image": "nginx",
        "replicas": 3,
        "paused": False,
        "tags": [],
        "limits": {"cpu": "1"},
        "strategy": {"kind": "Rolling"},
    }


class Chapter(Model):
    title: str = "Untitled"
    next: "Chapter | None" = None
    notes: "list[Note]" = []


class Note(Model):
    text: str


def test_a_default_is_always_sent_beside_types_that_are_defined_later() -> None:
    assert sent(Chapter(next=Chapter())) == {
        "title": "Untitled",
        "notes": [],
        "next": {"title": "Untitled", "notes": []},
    }


def test_zero_is_sent_and_none_is_absent() -> None:
    told = sent(Spec(image="nginx", replicas=0, node=None, from_="a", cluster_ip="10.0.0.1"))
    assert isinstance(told, dict)
    assert told["replicas"] == 0
    assert "node" not in told
    assert (told["from"], told["clusterIP"]) == ("a", "10.0.0.1")


def test_null_and_absent_are_told_apart_where_the_type_does() -> None:
    assert decode_model(Spec, b'{"image":"a"}').deadline is UNSET
    assert decode_model(Spec, b'{"image":"a","deadline":null}').deadline is None
    assert b'"deadline":null' in encode(Spec(image="a", deadline=None))
    assert b"deadline" not in encode(Spec(image="a"))


def test_no_two_instances_share_a_default() -> None:
    one, other = Spec(image="a"), Spec(image="b")
    one.tags.append("x")
    one.limits["memory"] = "1Gi"
    one.strategy.kind = "Recreate"
    assert (other.tags, other.limits, other.strategy) == ([], {"cpu": "1"}, Strategy())


def test_decoding_fills_in_the_defaults() -> None:
    assert decode_model(Spec, b'{"image":"a"}') == Spec(image="a")


def test_zero_values_of_kubernetes_own_structures_are_absent() -> None:
    assert sent(Port(number=0)) == {"number": 0}
    assert sent(Port(number=1, name="", weight=0, aliases=[], labels={})) == {"number": 1}
    assert sent(Port(number=1, name="a", weight=2, aliases=["b"])) == {
        "number": 1,
        "name": "a",
        "weight": 2,
        "aliases": ["b"],
    }


def test_a_subclass_inherits_what_zero_means() -> None:
    class Named(Port):
        title: str = ""

    assert sent(Named(number=1)) == {"number": 1}


def test_an_empty_list_from_an_explicit_factory_is_absent() -> None:
    assert b"notes" not in encode(Spec(image="a"))
    assert b'"notes":["x"]' in encode(Spec(image="a", notes=["x"]))


def test_a_value_out_of_bounds_is_named_with_its_path() -> None:
    with pytest.raises(DecodeError, match=r"not a valid Spec: Expected `str` of length >= 1 - at `\$\.image`"):
        decode_model(Spec, b'{"image":""}')


def test_models_are_made_with_keywords_only() -> None:
    with pytest.raises(TypeError):
        Port(80)  # type: ignore[call-arg]
