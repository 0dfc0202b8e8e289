"""Unions of models: one structure with the fields of all, and rules that keep them apart."""

from typing import Annotated, Any, Generic, Literal, TypeVar, Union, cast

import pytest
from hypothesis import given, settings
from msgspec import UNSET, UnsetType

from kubewright.api.codec import decode_model, encode, to_json
from kubewright.api.errors import DecodeError
from kubewright.api.markers import AtMostOneOf, Immutable, Int32, JSONValue, ListMap, Rule
from kubewright.api.model import Model, ModelMeta
from kubewright.api.resources import Resource, resource
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.keywords import Schema, rules
from kubewright.manifest.schema import schema_of
from kubewright.testing.strategies import contents_of

T = TypeVar("T")


class File(Model, tag="File"):
    """Read from a volume."""

    path: str
    """Where it is."""
    mode: Int32 = 0o644
    retries: int = 3


class Url(Model, tag="URL"):
    """Fetched with HTTP."""

    url: str
    headers: dict[str, str] = {}
    retries: int = 3


class Directory(Model, tag="Directory"):
    path: str | None = None
    """Or the root."""
    retries: int = 3


Source = File | Url | Directory


class Copy(Model):
    """Copies something."""

    source: Source
    """Where from."""
    fallback: Source | None = None
    others: list[Source] = []
    by_name: dict[str, Source | None] = {}
    preset: File | Url = File(path="/etc/hosts")


def property_of(cls: type[Model], name: str) -> dict[str, Any]:
    return cast("dict[str, Any]", cast("dict[str, Any]", schema_of(cls))["properties"][name])


def test_a_union_has_the_fields_of_all_members_and_an_enumeration_of_their_tags() -> None:
    union = property_of(Copy, "source")
    assert union.pop("x-kubernetes-validations")
    assert union == {
        "type": "object",
        "description": "Where from.",
        "required": ["type"],
        "properties": {
            "type": {
                "type": "string",
                "enum": ["File", "URL", "Directory"],
                "description": "File: Read from a volume.\nURL: Fetched with HTTP.",
            },
            "path": {"type": "string", "description": "Where it is.\nOr the root."},
            "mode": {"type": "integer", "format": "int32"},
            "retries": {"type": "integer", "default": 3},
            "url": {"type": "string"},
            "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    }


def test_rules_say_which_fields_go_with_which_tag() -> None:
    def said(name: str) -> list[tuple[str, str, str]]:
        return [(rule["fieldPath"], rule["rule"], rule["message"]) for rule in rules(property_of(Copy, name))]  # type: ignore[misc]

    assert said("preset") == [
        (".path", "has(self.path) == (self.type == 'File')", "must be set when type is File, and only then"),
        (".mode", "!has(self.mode) || self.type == 'File'", "can only be set when type is File"),
        (".url", "has(self.url) == (self.type == 'URL')", "must be set when type is URL, and only then"),
        (".headers", "!has(self.headers) || self.type == 'URL'", "can only be set when type is URL"),
    ]
    assert said("source")[:2] == [
        (
            ".path",
            "!has(self.path) || self.type in ['File', 'Directory']",
            "can only be set when type is File or Directory",
        ),
        (".path", "has(self.path) || self.type != 'File'", "must be set when type is File"),
    ]


def test_unions_are_optional_and_nullable_and_in_lists_and_maps_as_other_types_are() -> None:
    union = {key: value for key, value in property_of(Copy, "source").items() if key != "description"}
    assert property_of(Copy, "fallback") == union
    assert property_of(Copy, "others") == {"type": "array", "items": union, "default": []}
    assert property_of(Copy, "byName") == {
        "type": "object",
        "additionalProperties": {**union, "nullable": True},
        "default": {},
    }
    assert property_of(Copy, "preset")["default"] == {"type": "File", "path": "/etc/hosts", "mode": 420, "retries": 3}
    assert cast("dict[str, Any]", schema_of(Copy))["required"] == ["source"]


def test_each_member_is_decoded_to_its_class_and_encoded_with_its_tag() -> None:
    raw = b'{"source":{"type":"Directory"},"others":[{"type":"URL","url":"a"},{"path":"b","type":"File","mode":1}]}'
    copy = decode_model(Copy, raw)
    assert copy.source == Directory()
    assert copy.others == [Url(url="a"), File(path="b", mode=1)]
    assert to_json(copy) == {
        "source": {"type": "Directory", "retries": 3},
        "others": [
            {"type": "URL", "url": "a", "headers": {}, "retries": 3},
            {"type": "File", "path": "b", "mode": 1, "retries": 3},
        ],
        "byName": {},
        "preset": {"type": "File", "path": "/etc/hosts", "mode": 420, "retries": 3},
    }
    for wrong, complaint in (
        (b'{"source":{"path":"a"}}', "missing required field `type`"),
        (b'{"source":{"type":"Tape"}}', "Invalid value 'Tape' - at `\\$.source.type`"),
        (b'{"source":{"type":"File","url":"a"}}', "missing required field `path`"),
    ):
        with pytest.raises(DecodeError, match=complaint):
            decode_model(Copy, wrong)


@resource("unions.kubewright.test/v1", kind="Copy")
class Copied(Resource[Copy, None]):
    """Has unions everywhere."""


@settings(max_examples=50, derandomize=True, database=None)
@given(contents_of(Copied))
def test_strategies_make_values_of_unions(content: dict[str, JSONValue]) -> None:
    copy = decode_model(Copy, encode(content["spec"]))
    assert decode_model(Copy, encode(copy)) == copy


def test_the_rules_of_a_member_hold_for_that_member_only() -> None:
    class Range(
        Model,
        tag="Range",
        tag_field="kind",
        rules=[
            AtMostOneOf("soft", "hard"),
            Rule("self.size >= oldSelf.size", message="cannot shrink", reason="FieldValueForbidden"),
            Rule("self.size == oldSelf.value().size", optional_old_self=True),
            Rule("self.size > 0 // or there is none"),
        ],
    ):
        size: int
        soft: int | None = None
        hard: Annotated[int | None, Immutable()] = None

    class Nothing(Model, tag="Nothing", tag_field="kind"):
        pass

    class Limited(Model):
        limit: Range | Nothing

    found = rules(property_of(Limited, "limit"))
    guard, unchanged = "self.kind != 'Range' || ", "self.kind != 'Range' || oldSelf.kind != 'Range' || "
    maybe = "self.kind != 'Range' || (oldSelf.hasValue() && oldSelf.value().kind != 'Range') || "
    assert [rule["rule"] for rule in found[3:]] == [
        f"{guard}((has(self.soft) ? 1 : 0) + (has(self.hard) ? 1 : 0) <= 1)",
        f"{unchanged}(self.size >= oldSelf.size)",
        f"{maybe}(self.size == oldSelf.value().size)",
        f"{guard}(self.size > 0 // or there is none\n)",
        f"{unchanged}(!has(oldSelf.hard) || has(self.hard))",
    ]
    assert found[4]["message"] == "cannot shrink"
    assert found[4]["reason"] == "FieldValueForbidden"
    assert found[5]["optionalOldSelf"] is True


def test_a_default_is_the_servers_only_where_all_members_have_it() -> None:
    """It would fill in the field of one member beside the tag of another, and then refuse the object for it."""

    class Fast(Model, tag="Fast"):
        size: int = 1
        zone: str = "a"
        only: str = "x"

    class Slow(Model, tag="Slow"):
        size: int = 1
        zone: str = "b"

    class Speed(Model):
        speed: Fast | Slow

    fields = property_of(Speed, "speed")["properties"]
    assert {name: field.get("default") for name, field in fields.items()} == {
        "type": None,
        "size": 1,
        "zone": None,
        "only": None,
    }


def test_a_tagged_class_on_its_own_can_leave_out_its_tag() -> None:
    class Alone(Model):
        file: File

    assert property_of(Alone, "file")["properties"]["type"] == {"type": "string", "enum": ["File"], "default": "File"}
    assert "type" not in property_of(Alone, "file")["required"]
    assert to_json(decode_model(Alone, b'{"file":{"path":"a"}}')) == {
        "file": {"type": "File", "path": "a", "mode": 420, "retries": 3}
    }


def test_a_spec_can_be_a_union_and_so_can_the_items_of_a_keyed_list() -> None:
    class Step(Model, tag="Step"):
        name: str
        command: str

    class Pause(Model, tag="Pause"):
        name: str

    class Plan(Model, tag="Plan"):
        steps: Annotated[list[Step | Pause], ListMap("name")]

    class Draft(Model, tag="Draft"):
        pass

    @resource("unions.kubewright.test/v1")
    class Job(Resource[Plan | Draft, None]):
        pass

    spec = property_of(Job, "spec")
    assert spec["properties"]["type"]["enum"] == ["Plan", "Draft"]
    steps = spec["properties"]["steps"]
    assert steps["x-kubernetes-list-map-keys"] == ["name"]
    assert steps["items"]["required"] == ["name", "type"]
    assert isinstance(decode_model(Job, b'{"spec":{"type":"Draft"}}').spec, Draft)


def test_generic_members_and_names_that_rules_have_to_escape_are_possible() -> None:
    class Box(Model, Generic[T], tag="Box", tag_field="namespace"):
        for_: T

    class Empty(Model, tag="Empty", tag_field="namespace"):
        pass

    class Boxed(Model):
        content: Box[int] | Empty

    union = property_of(Boxed, "content")
    assert union["properties"]["for"] == {"type": "integer"}
    assert union["x-kubernetes-validations"][0]["rule"] == "has(self.__for__) == (self.__namespace__ == 'Box')"


def test_literals_of_one_type_are_one_enumeration() -> None:
    class Example(Model):
        mode: Literal["a"] | Literal["b", None] = "a"  # what is tested

    assert property_of(Example, "mode") == {
        "type": "string",
        "nullable": True,
        "allOf": [{"enum": ["a", "b"]}],
        "default": "a",
    }


class Plain(Model):
    a: int


class OtherPlain(Model):
    b: int


class FileAgain(Model, tag="File"):
    pass


class ByKind(Model, tag="ByKind", tag_field="kind"):
    pass


class PathOfParts(Model, tag="Parts"):
    path: list[str]


class Anything(Model, tag="Anything"):
    value: list[JSONValue] = []


class MaybeNull(Model, tag="MaybeNull"):
    deadline: int | None


class Recursive(Model, tag="Recursive"):
    inner: Union["Recursive", File, None] = None


@pytest.mark.parametrize(
    ("annotation", "complaint"),
    [
        (
            Plain | OtherPlain,
            'Plain and OtherPlain need tags that distinguish them: write class Plain(Model, tag="...") fo',
        ),
        (File | Plain, 'File and Plain need tags that distinguish them: write class Plain(Model, tag="...") for each'),
        (File | FileAgain, 'more than one of File and FileAgain has the tag "File": give them different ones'),
        (File | ByKind, "File and ByKind have tags in different fields, kind and type: give them one tag_field="),
        (
            File | PathOfParts,
            'the field "path" of File is not that of Parts, but a structural schema has one type for both: give them '
            "the same type, or different names",
        ),
        (File | Anything, 'the field "value" goes with Anything only, which takes a rule, and rules do not see JSONVa'),
        (File | MaybeNull, 'the field "deadline" must be set in MaybeNull only, which takes a rule, and rules do not'),
        (File | Recursive, "Recursive contains itself, which a structural schema cannot describe"),
        (Annotated[File, Rule("true")] | Url, "markers are for all of a union, not for one of its members: write Anno"),
        (File | int, "a structural schema cannot express File or int"),
    ],
    ids=str,
)
def test_members_that_cannot_be_distinguished_are_an_error_with_the_fix(annotation: object, complaint: str) -> None:
    namespace: dict[str, object] = {"__annotations__": {"some_field": annotation}, "__module__": __name__}
    with pytest.raises(ManifestError) as caught:
        schema_of(cast("type[Model]", ModelMeta("Example", (Model,), namespace)))
    assert complaint in str(caught.value)


def test_a_field_that_may_be_null_or_anything_can_be_in_every_member_or_optional() -> None:
    class One(Model, tag="One"):
        value: JSONValue = None
        deadline: int | None
        later: int | UnsetType | None = UNSET

    class Two(Model, tag="Two"):
        value: JSONValue = None
        deadline: int | None

    class Either(Model):
        either: One | Two

    union: Schema = property_of(Either, "either")
    assert union["required"] == ["deadline", "type"]
    assert [rule["rule"] for rule in rules(union)] == ["!has(self.later) || self.type == 'One'"]
