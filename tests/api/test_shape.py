from __future__ import annotations

from datetime import datetime
from typing import Annotated

import pytest
from msgspec import UNSET, Struct, UnsetType, field

from kubewright.api.markers import Atomic, JSONValue, ListMap, ListSet, StrategicMerge
from kubewright.api.model import Model
from kubewright.api.quantity import Quantity
from kubewright.api.shape import SCALAR, Shape, fields_of, shape_of
from kubewright.api.time import MicroTime


class Port(Model):
    container_port: int
    protocol: str = "TCP"


class Tree(Model):
    children: list[Tree] = []


class Spec(Model):
    class_: str = ""
    main_port: Port | None = None
    node_ports: Annotated[list[Port], ListMap("containerPort", "protocol")] = []


PORT = Shape("model", model=Port)


@pytest.mark.parametrize("annotation", [int, str | None, list, dict, JSONValue, Annotated[str, Atomic()], UnsetType])
def test_a_type_that_does_not_nest_is_a_scalar(annotation: object) -> None:
    assert shape_of(annotation) is SCALAR


@pytest.mark.parametrize("annotation", [Quantity, Quantity | None, datetime, MicroTime | None])
def test_scalars_that_can_be_written_in_several_ways_have_their_type(annotation: object) -> None:
    shape = shape_of(annotation)
    assert shape.form == "scalar"
    assert shape.scalar in (Quantity, datetime, MicroTime)


@pytest.mark.parametrize(
    "annotation",
    [Annotated[Port | None, Atomic()], Annotated[list[str], Atomic()], Annotated[dict[str, str], Atomic()]],
)
def test_a_type_that_is_replaced_whole_is_atomic(annotation: object) -> None:
    assert shape_of(annotation).is_atomic


@pytest.mark.parametrize("annotation", [Port, Port | None, Port | UnsetType | None])
def test_a_model_is_found_through_unions_and_annotations(annotation: object) -> None:
    assert shape_of(annotation) == PORT


class Cat(Model, tag="Cat"):
    ports: list[Port] = []


class Dog(Model, tag="Dog"):
    collar: Port | None = None


def test_a_union_of_models_has_the_fields_of_all_and_their_tag() -> None:
    union = shape_of(Annotated[Cat | Dog | None, Atomic()])
    assert (union.form, union.members, union.is_atomic, union.name) == ("model", (Cat, Dog), True, "Cat or Dog")
    assert union.fields == {"type": SCALAR, "ports": shape_of(list[Port]), "collar": PORT}
    assert shape_of(Cat).fields.keys() == {"type", "ports"}


def test_a_union_knows_which_fields_go_with_a_tag() -> None:
    union = shape_of(Cat | Dog)
    assert union.excludes({"type": "Cat"}, "collar")
    assert not union.excludes({"type": "Dog"}, "collar")
    assert not union.excludes({"type": "Cat"}, "unknown")
    assert not shape_of(Cat).excludes({}, "collar")
    assert union.is_one_member({"type": "Cat"}, {"type": "Cat", "ports": []}, None)
    assert not union.is_one_member({"type": "Cat"}, {"type": "Dog"})
    assert PORT.is_one_member({"type": "Cat"}, {"type": "Dog"})


def test_lists_and_maps_know_the_shape_of_what_is_in_them() -> None:
    assert shape_of(list[Port]) == Shape("list", item=PORT)
    assert shape_of(dict[str, Port]) == Shape("map", item=PORT)
    assert shape_of(dict[str, list[Port | None]]) == Shape("map", item=Shape("list", item=PORT))


@pytest.mark.parametrize(
    ("annotation", "keys"),
    [
        (Annotated[list[Port], ListMap("containerPort", "protocol")], ("containerPort", "protocol")),
        (Annotated[list[Port], StrategicMerge("containerPort")], ("containerPort",)),
        (Annotated[list[Port], StrategicMerge("containerPort"), ListMap("protocol")], ("protocol",)),
        (Annotated[list[Port], StrategicMerge()], ()),
        (Annotated[list[Port], ListMap("protocol")] | None, ("protocol",)),
        (Annotated[list[Port] | None, ListMap("protocol")], ("protocol",)),
    ],
)
def test_list_items_are_identified_by_the_keys_of_the_marker(annotation: object, keys: tuple[str, ...]) -> None:
    shape = shape_of(annotation)
    assert (shape.form, shape.item, shape.keys) == ("list", PORT, keys)


def test_a_set_is_marked() -> None:
    assert shape_of(Annotated[list[str], ListSet()]) == Shape("list", item=SCALAR, is_set=True)
    assert shape_of(Annotated[list[str], ListSet()] | None).is_set
    assert not shape_of(Annotated[list[str], Atomic()]).is_set


def test_what_a_strategic_merge_patch_merges_is_marked() -> None:
    assert shape_of(Annotated[list[str], ListSet(), StrategicMerge()]).strategic == StrategicMerge()
    assert shape_of(Annotated[list[Port], StrategicMerge("name")] | None).strategic == StrategicMerge("name")
    assert shape_of(Annotated[list[Port], ListMap("name")]).strategic is None


def test_fields_go_by_their_json_names() -> None:
    assert fields_of(Spec) == {
        "class": SCALAR,
        "mainPort": PORT,
        "nodePorts": Shape("list", item=PORT, keys=("containerPort", "protocol")),
    }
    assert Shape("model", model=Spec).fields == fields_of(Spec)


def test_a_structure_that_is_empty_unless_set_is_held_by_value() -> None:
    class Holder(Model):
        filled: Port = field(default_factory=lambda: Port(container_port=1))
        empty: Tree = field(default_factory=Tree)
        optional: Tree | None = None

    by_value = {name for name, shape in fields_of(Holder).items() if shape.by_value}

    assert by_value == {"empty"}


def test_only_models_have_fields() -> None:
    assert SCALAR.fields == {}
    assert Shape("list", item=PORT).fields == {}


def test_a_type_may_contain_itself() -> None:
    children = fields_of(Tree)["children"]

    assert children.item is not None
    assert children.item.fields == {"children": children}


def test_a_plain_struct_nests_as_a_model_does() -> None:
    class Plain(Struct):
        a: int | UnsetType = UNSET

    assert shape_of(Plain) == Shape("model", model=Plain)
