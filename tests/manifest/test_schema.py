"""What each Python type becomes, and which types are refused."""

import datetime
import enum
import re
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, NewType, TypeVar, cast

import msgspec
import pytest
from msgspec import UNSET, Meta, UnsetType, field

import kubewright.api
from kubewright.api.codec import to_json
from kubewright.api.core.v1 import ConfigMap, ContainerPort, LocalObjectReference, Pod, PodTemplateSpec, Secret
from kubewright.api.dynamic import Dynamic
from kubewright.api.int_or_string import IntOrString
from kubewright.api.markers import Atomic, Base64, Double, Format, Int32, Int64, JSONValue, ListMap, ListSet, Values
from kubewright.api.meta import Condition, LabelSelector, ObjectMeta
from kubewright.api.model import BuiltIn, Model, ModelMeta
from kubewright.api.quantity import Quantity
from kubewright.api.resources import Object, ObjectType, Resource, resource
from kubewright.api.time import MicroTime, Time
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.keywords import Schema
from kubewright.manifest.schema import ATOMIC, schema_of

T = TypeVar("T")
_NO_DEFAULT = object()

# What Choice[Literal["a", "b"]] is when the program runs; mypy knows that one in annotations only.
CHOICE = Annotated[str, Values(("a", "b"))]

INT_OR_STRING: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
INTEGER: Schema = {"type": "integer"}
STRING: Schema = {"type": "string"}


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


class Progress(Model):
    phase: str = "Pending"


class Port(Model):
    """A port."""

    name: str
    number: Annotated[int, Meta(ge=1, le=65535)] = 80


class Box(Model, Generic[T]):
    content: T


class Tree(Model):
    children: "list[Tree]" = []


class NotOurs(msgspec.Struct):
    name: str


PORT: Schema = {
    "type": "object",
    "description": "A port.",
    "properties": {
        "name": {"type": "string"},
        "number": {"type": "integer", "minimum": 1, "maximum": 65535, "default": 80},
    },
    "required": ["name"],
}


def model_with(annotation: object, default: object = _NO_DEFAULT, base: type[Model] = Model) -> type[Model]:
    namespace: dict[str, object] = {"__annotations__": {"some_field": annotation}, "__module__": __name__}
    if default is not _NO_DEFAULT:
        namespace["some_field"] = default
    return cast(type[Model], ModelMeta("Example", (base,), namespace))


def schema_with(annotation: object, default: object = _NO_DEFAULT, base: type[Model] = Model) -> Schema:
    properties = schema_of(model_with(annotation, default, base))["properties"]
    assert isinstance(properties, dict)
    rendered = properties["someField"]
    assert isinstance(rendered, dict)
    return rendered


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (bool, {"type": "boolean"}),
        (int, INTEGER),
        (Int32, {"type": "integer", "format": "int32"}),
        (Int64, INTEGER | {"format": "int64"}),
        (float, {"type": "number"}),
        (Double, {"type": "number", "format": "double"}),
        (int | float, {"type": "number"}),
        (str, STRING),
        (NewType("Name", str), STRING),
        (Time, {"type": "string", "format": "date-time"}),
        (MicroTime, {"type": "string", "format": "date-time"}),
        (IntOrString, INT_OR_STRING),
        (int | str, INT_OR_STRING),
        (list[IntOrString], {"type": "array", "items": INT_OR_STRING}),
        (JSONValue, {"x-kubernetes-preserve-unknown-fields": True, "nullable": True}),
        (int | list[str] | JSONValue, {"x-kubernetes-preserve-unknown-fields": True, "nullable": True}),
        (dict[str, JSONValue], {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (dict, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (dict[str, int], {"type": "object", "additionalProperties": INTEGER}),
        (dict[str, Port], {"type": "object", "additionalProperties": PORT}),
        (list[str], {"type": "array", "items": STRING}),
        (list[list[str]], {"type": "array", "items": {"type": "array", "items": STRING}}),
        (
            list[JSONValue],
            {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True, "nullable": True}},
        ),
        (list[int | None], {"type": "array", "items": INTEGER | {"nullable": True}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (Level, {"type": "integer", "enum": [1, 2]}),
        (CHOICE, {"type": "string", "enum": ["a", "b"]}),
        (Port, PORT),
        (Box[int], {"type": "object", "properties": {"content": INTEGER}, "required": ["content"]}),
        (Annotated[Port, Atomic()], PORT | {"x-kubernetes-map-type": "atomic"}),
        (
            Annotated[dict[str, str], Atomic()],
            {"type": "object", "additionalProperties": STRING, "x-kubernetes-map-type": "atomic"},
        ),
        (Annotated[list[str], Atomic()], {"type": "array", "items": STRING, "x-kubernetes-list-type": "atomic"}),
        (Annotated[list[str], ListSet()], {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"}),
        (
            Annotated[list[Port], ListMap("name")],
            {
                "type": "array",
                "items": PORT,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
        ),
    ],
    ids=str,
)
def test_every_type_has_its_schema(annotation: object, expected: Schema) -> None:
    assert schema_with(annotation) == expected


def test_quantity_is_rendered_as_controller_gen_renders_it() -> None:
    assert schema_with(Quantity) == INT_OR_STRING | {
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
        r"([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
    }


@pytest.mark.parametrize("annotation", [bytes, Base64])
def test_base64_may_be_empty_which_the_format_byte_forbids(annotation: object) -> None:
    rendered = schema_with(annotation)
    assert rendered.keys() == {"type", "pattern"}
    (pattern,) = (value for value in rendered.values() if value != "string")
    decoder = msgspec.json.Decoder(Annotated[str, Meta(pattern=str(pattern))])
    assert [decoder.decode(text) for text in ('""', '"YQ=="', '"YWI="', '"YWJj"')] == ["", "YQ==", "YWI=", "YWJj"]
    for text in ('"YQ"', '"YQ=="YQ==', '"Y Q="', '"====', '"YWJjZ"'):
        with pytest.raises(msgspec.DecodeError):
            decoder.decode(text)


# --- absent, null and default


@pytest.mark.parametrize(
    ("annotation", "default", "expected"),
    [
        pytest.param(int | None, None, INTEGER, id="None means absent when it is the default"),
        pytest.param(int | None | UnsetType, None, INTEGER, id="also next to UNSET"),
        pytest.param(int | UnsetType, UNSET, INTEGER, id="UNSET means absent"),
        pytest.param(int | None | UnsetType, UNSET, INTEGER | {"nullable": True}, id="None beside UNSET is null"),
        pytest.param(int | None, _NO_DEFAULT, INTEGER | {"nullable": True}, id="required None is null"),
        pytest.param(int | None, 3, INTEGER | {"nullable": True, "default": 3}, id="None beside a default is null"),
        pytest.param(
            int | None, field(default_factory=lambda: None), INTEGER | {"nullable": True}, id="a factory is always sent"
        ),
        pytest.param(int, field(default_factory=lambda: 1), INTEGER, id="what a factory makes is not known"),
        pytest.param(bool, False, {"type": "boolean", "default": False}, id="false is a default"),
        pytest.param(int, 0, INTEGER | {"default": 0}, id="zero is a default"),
        pytest.param(str, "", STRING | {"default": ""}, id="empty is a default"),
        pytest.param(list[str], [], {"type": "array", "items": STRING, "default": []}, id="so is the empty list"),
        pytest.param(Color, Color.RED, {"type": "string", "enum": ["red", "blue"], "default": "red"}, id="enum"),
        pytest.param(
            Port, Port(name="web"), PORT | {"default": {"name": "web", "number": 80}}, id="a model, with its defaults"
        ),
        pytest.param(bytes, b"a", {"default": "YQ=="}, id="bytes, as Base64"),
        pytest.param(Quantity, Quantity("1Gi"), {"default": "1Gi"}, id="quantity"),
        pytest.param(IntOrString, "25%", INT_OR_STRING | {"default": "25%"}, id="int or string"),
    ],
)
def test_defaults_and_null_are_distinguished_as_in_the_codec(
    annotation: object, default: object, expected: Schema
) -> None:
    rendered = schema_with(annotation, default)
    assert rendered == rendered | expected
    assert ("nullable" in rendered) == ("nullable" in expected)
    assert ("default" in rendered) == ("default" in expected)


def test_fields_without_default_are_required() -> None:
    class Example(Model):
        second: str
        first_thing: int | None
        optional: str | None = None
        filled: str = "x"

    assert schema_of(Example)["required"] == ["firstThing", "second"]
    assert "required" not in schema_of(model_with(int, 1))


@pytest.mark.parametrize("annotation", [Literal["a", "b"] | None, Color | None, Literal["a", "b", None]])
def test_an_enum_that_may_be_null_is_nested_because_the_server_refuses_null_otherwise(annotation: object) -> None:
    rendered = schema_with(annotation)
    assert "enum" not in rendered
    assert rendered["nullable"] is True
    assert rendered["allOf"] in ([{"enum": ["a", "b"]}], [{"enum": ["red", "blue"]}])


@pytest.mark.parametrize(
    ("annotation", "default", "complaint"),
    [
        (
            Annotated[int, Meta(ge=1)],
            0,
            "Example.some_field: the default 0 does not fit the field: Expected `int` >= 1",
        ),
        (int, "three", "Example.some_field: the default 'three' does not fit the field: Expected `int`, got `str`"),
        (CHOICE, "c", "Example.some_field: the default 'c' is none of 'a', 'b'"),
        (CHOICE | None, "c", "Example.some_field: the default 'c' is none of 'a', 'b'"),
        (Port, Port(name="a", number=0), "does not fit the field: Expected `int` >= 1 - at `$.number`"),
    ],
)
def test_a_default_that_the_field_does_not_accept_is_an_error(
    annotation: object, default: object, complaint: str
) -> None:
    with pytest.raises(ManifestError) as caught:
        schema_with(annotation, default)
    assert complaint in str(caught.value)


def test_zero_values_of_built_in_structures_are_absent_and_no_defaults() -> None:
    class Example(BuiltIn):
        text: str = ""
        number: int = 0
        items: list[str] = []
        labels: dict[str, str] = {}
        fraction: float = 0.5

    properties = schema_of(Example)["properties"]
    assert isinstance(properties, dict)
    assert {name: rendered.get("default") for name, rendered in properties.items() if isinstance(rendered, dict)} == {
        "text": None,
        "number": None,
        "items": None,
        "labels": None,
        "fraction": 0.5,
    }


def test_structures_of_kubernetes_are_replaced_whole_where_go_says_so() -> None:
    (package,) = kubewright.api.__path__
    modules = [path.read_text() for path in Path(package).rglob("*.py")]
    marked = {
        name for text in modules for name in re.findall(r"Annotated\[(?:\w+\.)?(\w+)(?: \| None)?, Atomic\(\)", text)
    }
    assert {name for name in marked if name[0].isupper()} == ATOMIC

    assert schema_with(LabelSelector)["x-kubernetes-map-type"] == "atomic"
    items = schema_with(list[LocalObjectReference])["items"]
    assert isinstance(items, dict)
    assert items["x-kubernetes-map-type"] == "atomic"
    assert "x-kubernetes-map-type" not in schema_with(Port)


# --- prose


class Described(Model):
    """One sentence
    on two lines.

    - and a list
    """

    port: Port
    """Where it listens.

    In every zone.
    """
    ports: list[Annotated[Port, Meta(description="One of many.")]] = []
    name: Annotated[str, Meta(description="What it is called.")] = ""

    def method(self) -> None:
        """Not of a field."""


class Derived(Described):
    """It has all fields."""

    port: Port
    """Where it listens here."""


def test_docstrings_describe_classes_and_fields_as_they_are_written() -> None:
    schema = schema_of(Described)
    assert schema["description"] == "One sentence\non two lines.\n\n- and a list"
    assert descriptions(schema) == {
        "port": "Where it listens.\n\nIn every zone.",
        "ports": None,
        "name": "What it is called.",
    }
    ports = properties(schema)["ports"]["items"]
    assert isinstance(ports, dict)
    assert ports["description"] == "One of many."
    assert descriptions(schema_of(Derived)) == {**descriptions(schema), "port": "Where it listens here."}


def test_a_class_in_a_function_has_docstrings_too() -> None:
    class Local(Model):
        size: int = 1
        """How many."""

    assert descriptions(schema_of(Local)) == {"size": "How many."}


def test_a_class_without_source_has_no_descriptions_of_fields() -> None:
    names: dict[str, object] = {"Model": Model, "__name__": "of_no_file"}
    exec("class Sourceless(Model):\n    size: int = 1\n    'How many.'\n", names)
    sourceless = names["Sourceless"]
    assert isinstance(sourceless, type)
    assert issubclass(sourceless, Model)
    assert descriptions(schema_of(sourceless)) == {"size": None}


def properties(schema: Schema) -> dict[str, Schema]:
    found = schema["properties"]
    assert isinstance(found, dict)
    return {name: field for name, field in found.items() if isinstance(field, dict)}


def descriptions(schema: Schema) -> dict[str, JSONValue]:
    return {name: field.get("description") for name, field in properties(schema).items()}


def test_json_names_are_those_of_the_codec() -> None:
    class Example(Model):
        from_: str = ""
        cluster_ip: str = field(name="clusterIP", default="")

    assert list(cast("dict[str, object]", schema_of(Example)["properties"])) == ["from", "clusterIP"]


# --- structures of Kubernetes


def test_embedded_metadata_keeps_what_it_does_not_name() -> None:
    rendered = schema_with(ObjectMeta)
    assert rendered["x-kubernetes-preserve-unknown-fields"] is True
    assert sorted(cast("dict[str, object]", rendered["properties"])) == [
        "annotations",
        "finalizers",
        "labels",
        "name",
        "namespace",
    ]


def test_a_pod_template_is_rendered_in_full() -> None:
    rendered = cast("dict[str, Any]", schema_with(PodTemplateSpec))
    containers = rendered["properties"]["spec"]["properties"]["containers"]
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["items"]["properties"]["resources"]["properties"]["limits"]["additionalProperties"]["anyOf"]
    assert rendered["properties"]["metadata"]["properties"]["labels"]["type"] == "object"


def test_an_embedded_kind_is_an_embedded_resource() -> None:
    rendered = cast("dict[str, Any]", schema_with(Pod))
    assert rendered["x-kubernetes-embedded-resource"] is True
    assert rendered["properties"]["metadata"] == {"type": "object"}
    assert rendered["properties"]["apiVersion"] == {"type": "string"}
    assert "spec" in rendered["required"]


@pytest.mark.parametrize("cls", [Condition, LabelSelector, Pod])
def test_structures_of_kubernetes_have_schemas_of_their_own(cls: type[Model]) -> None:
    assert schema_of(cls)["type"] == "object"


def test_optional_keys_of_built_in_lists_get_the_default_of_the_server() -> None:
    ports = cast("dict[str, Any]", schema_with(Annotated[list[ContainerPort], ListMap("containerPort", "protocol")]))
    assert ports["items"]["properties"]["protocol"]["default"] == "TCP"
    secrets = cast("dict[str, Any]", schema_with(Annotated[list[LocalObjectReference], ListMap("name")]))
    assert secrets["items"]["properties"]["name"]["default"] == ""


def test_a_kind_has_api_version_kind_and_metadata_and_only_the_status_it_declares() -> None:
    @resource("example.com/v1")
    class Example(Resource[Port, None]):
        pass

    properties = cast("dict[str, Any]", schema_of(Example)["properties"])
    assert properties == {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": PORT,
    }


@pytest.mark.parametrize(
    ("annotation", "default", "filled_in"),
    [
        (Progress, field(default_factory=Progress), {}),
        (Progress | None, None, None),
        (Progress | UnsetType | None, UNSET, None),
    ],
    ids=["by value", "optional", "nullable"],
)
def test_a_status_with_defaults_is_filled_in_unless_it_may_be_absent(
    annotation: object, default: object, filled_in: object
) -> None:
    namespace: dict[str, object] = {"__annotations__": {"status": annotation}, "status": default}
    schema = cast("dict[str, Any]", schema_of(cast("type[Model]", ObjectType("Moving", (Object,), namespace))))
    assert schema["properties"]["status"].get("default") == filled_in


# --- what cannot be expressed


@pytest.mark.parametrize(
    ("annotation", "complaint"),
    [
        (int | Port, "a structural schema cannot express int or Port: use one Model with an optional field for each"),
        (int | Port, 'rules=[ExactlyOneOf("file", "url")]), or JSONValue'),
        (list[str] | str, "a structural schema cannot express list[str] or str: use one Model with an optional field"),
        (ConfigMap | Secret, "a structural schema cannot express ConfigMap or Secret: use one Model with an optional"),
        (float | str, "cannot express float or str: use one of them, IntOrString (which is int | str), or JSONValue"),
        (Annotated[int, Format("int64")] | str, "markers are for all of a union, not for one of its members: write "),
        (Annotated[int, Format("int64")] | str, "write Annotated[int | str, ...]"),
        (tuple[int, int], "tuple[int, int] has no structural schema: use list[...]"),
        (set[str], "set[str] has no structural schema: use Annotated[list[...], ListSet()]"),
        (frozenset[str], "has no structural schema: use Annotated[list[...], ListSet()]"),
        (uuid.UUID, "UUID has no structural schema: use a scalar"),
        (Decimal, "Decimal has no structural schema: use a scalar"),
        (datetime.datetime, "a datetime may lack the time zone that the server demands: use Time"),
        (dict[int, str], "the keys of a JSON object are strings without limits: use dict[str, ...]"),
        (dict[Annotated[str, Meta(max_length=3)], str], "the keys of a JSON object are strings without limits"),
        (Mixed, "an enumeration must have strings only or integers only, not [1, 'two']"),
        (Literal["a", 1], "an enumeration must have strings only or integers only, not ['a', 1]"),
        (NotOurs, "NotOurs is a plain msgspec.Struct: derive it from kubewright's Model"),
        (Box, "T is not bound to a type: give the generic model its type, as in Box[int]"),
        (Object, "Object is not a kind with known fields: use the class of one, or dict[str, JSONValue]"),
        (Dynamic.of("example.com/v1", "Widget"), "Widget is not a kind with known fields: use the class of one"),
        (Annotated[int, Atomic()], "Atomic() is for lists, maps and structures"),
        (Annotated[list[str], Format("uuid")], "Format(name='uuid') is for strings and numbers"),
        (Annotated[list[str], ListSet], "ListSet is a class: write ListSet(...)"),
    ],
    ids=str,
)
def test_what_a_structural_schema_cannot_express_is_an_error_with_the_fix(annotation: object, complaint: str) -> None:
    with pytest.raises(ManifestError) as caught:
        schema_with(annotation)
    message = str(caught.value)
    assert message.startswith(("Example.some_field: ", "Box.content: "))
    assert complaint in message


@pytest.mark.parametrize(
    ("annotation", "complaint"),
    [
        (Annotated[int, Meta(ge=1), Meta(gt=0)], "Cannot set both `gt` and `ge`"),
        (Annotated[int, Meta(ge=2**64)], "that don't fit in an int64"),
        (Literal[2**64], "Integer values > (2**63 - 1)"),
    ],
    ids=str,
)
def test_a_type_that_cannot_be_decoded_has_no_definition(annotation: object, complaint: str) -> None:
    with pytest.raises(ManifestError) as caught:
        schema_with(annotation)
    assert str(caught.value).startswith("Example has a schema, but cannot be decoded: ")
    assert complaint in str(caught.value)


def test_a_model_that_contains_itself_is_an_error() -> None:
    with pytest.raises(ManifestError) as caught:
        schema_of(Tree)
    assert str(caught.value) == (
        "Tree.children: Tree contains itself, which a structural schema cannot describe: "
        "use JSONValue for the inner part"
    )


def test_a_model_may_occur_twice_side_by_side() -> None:
    class Example(Model):
        first: Port
        second: Port

    assert cast("dict[str, Any]", schema_of(Example)["properties"]) == {"first": PORT, "second": PORT}


def test_only_models_have_a_schema() -> None:
    with pytest.raises(ManifestError, match="<class 'int'> is not a Model"):
        schema_of(cast(type[Model], int))


def test_a_dynamic_kind_has_nothing_to_render() -> None:
    with pytest.raises(ManifestError, match=r"Widget is Dynamic and so has no fields to describe: use dict\[str"):
        schema_of(Dynamic.of("example.com/v1", "Widget"))


def test_fields_that_every_kind_has_cannot_be_redeclared() -> None:
    class Example(Object):
        metadata: str = ""  # type: ignore[assignment]  # the mistake this is about

    with pytest.raises(ManifestError, match=r"Example.metadata is the same for every kind and cannot be redeclared"):
        schema_of(Example)


def test_an_annotation_that_cannot_be_resolved_is_an_error_naming_the_class() -> None:
    with pytest.raises(ManifestError, match=r"Example: an annotation cannot be read: name 'Missing' is not defined"):
        schema_of(model_with("Missing"))


def test_the_rendered_schema_is_the_callers_own() -> None:
    class Example(Model):
        quantity: Quantity
        names: ClassVar[int] = 1

    first = cast("dict[str, Any]", schema_of(Example))
    first["properties"]["quantity"]["anyOf"].clear()
    assert cast("dict[str, Any]", schema_of(Example))["properties"]["quantity"]["anyOf"]


def test_a_schema_is_plain_json() -> None:
    rendered = schema_of(PodTemplateSpec)
    assert to_json(rendered) == rendered
