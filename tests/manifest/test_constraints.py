"""`Meta` on a field and the keywords it becomes."""

from typing import Annotated, Any, Literal, cast

import pytest
from msgspec import Meta

from kubewright.api.int_or_string import IntOrString
from kubewright.api.markers import Int32, JSONValue
from kubewright.api.model import Model, ModelMeta
from kubewright.api.quantity import Quantity
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.schema import schema_of


class Inner(Model):
    name: str = ""


def schema_with(annotation: object) -> dict[str, JSONValue]:
    namespace: dict[str, object] = {"__annotations__": {"value": annotation}, "__module__": __name__}
    example = cast(type[Model], ModelMeta("Example", (Model,), namespace))
    return cast("dict[str, Any]", schema_of(example))["properties"]["value"]  # type: ignore[no-any-return]


INTEGER: dict[str, JSONValue] = {"type": "integer"}
STRING: dict[str, JSONValue] = {"type": "string"}
INNER: dict[str, JSONValue] = {"type": "object", "properties": {"name": {"type": "string", "default": ""}}}


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (Annotated[int, Meta(ge=1, le=9)], INTEGER | {"minimum": 1, "maximum": 9}),
        (
            Annotated[int, Meta(gt=1, lt=9)],
            INTEGER | {"minimum": 1, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": True},
        ),
        (Annotated[float, Meta(ge=0.5)], {"type": "number", "minimum": 0.5}),
        (Annotated[int, Meta(multiple_of=5)], INTEGER | {"multipleOf": 5}),
        (Annotated[float, Meta(multiple_of=5)], {"type": "number", "multipleOf": 5}),
        (Annotated[str, Meta(min_length=1, max_length=3)], STRING | {"minLength": 1, "maxLength": 3}),
        (Annotated[str, Meta(pattern="^[a-z]+$")], STRING | {"pattern": "^[a-z]+$"}),
        (
            Annotated[list[str], Meta(min_length=1, max_length=3)],
            {"type": "array", "items": STRING, "minItems": 1, "maxItems": 3},
        ),
        (
            Annotated[dict[str, str], Meta(min_length=1, max_length=3)],
            {"type": "object", "additionalProperties": STRING, "minProperties": 1, "maxProperties": 3},
        ),
        (
            Annotated[int, Meta(ge=1)] | Annotated[str, Meta(pattern="%$", max_length=4)],
            {
                "anyOf": [INTEGER, STRING],
                "x-kubernetes-int-or-string": True,
                "minimum": 1,
                "pattern": "%$",
                "maxLength": 4,
            },
        ),
        (Annotated[int | None, Meta(title="Size")], INTEGER | {"title": "Size", "nullable": True}),
        (Annotated[int, Meta(ge=1)] | None, INTEGER | {"minimum": 1, "nullable": True}),
        (list[Annotated[int, Meta(ge=1)]], {"type": "array", "items": INTEGER | {"minimum": 1}}),
        (Annotated[Annotated[int, Meta(ge=1)], Meta(le=9)], INTEGER | {"minimum": 1, "maximum": 9}),
        (
            Annotated[int, Meta(title="Size", description="How many.", examples=[3, 4])],
            INTEGER | {"title": "Size", "description": "How many.", "example": 3},
        ),
        (Annotated[str, Meta(extra_json_schema={"format": "ipv4"})], STRING | {"format": "ipv4"}),
        (
            Annotated[str, Meta(extra_json_schema={"default": "of the server", "nullable": True})],
            STRING | {"default": "of the server", "nullable": True},
        ),
        (
            Annotated[Inner, Meta(extra_json_schema={"x-kubernetes-validations": [{"rule": "self.name != ''"}]})],
            INNER | {"x-kubernetes-validations": [{"rule": "self.name != ''"}]},
        ),
    ],
    ids=str,
)
def test_limits_and_prose_become_keywords(annotation: object, expected: dict[str, JSONValue]) -> None:
    assert schema_with(annotation) == expected


@pytest.mark.parametrize(
    ("annotation", "complaint"),
    [
        (Annotated[str, Meta(ge=1)], "Meta(ge=1) does not fit the type of the field: there are pattern, min_length"),
        (Annotated[int, Meta(max_length=1)], "Meta(max_length=1) does not fit the type of the field: there are ge, gt"),
        (Annotated[bool, Meta(ge=1)], "Meta(ge=1) does not fit the type of the field: it cannot be limited"),
        (Annotated[bytes, Meta(max_length=3)], "Meta(max_length=3) does not fit the type of the field"),
        (Annotated[Quantity, Meta(ge=1)], "Meta(ge=1) does not fit the type of the field: it cannot be limited"),
        (Annotated[Inner, Meta(min_length=1)], "Meta(min_length=1) does not fit the type of the field"),
        (Annotated[Literal["a"], Meta(min_length=1)], "Meta(min_length=1) does not fit the type of the field"),
        (Annotated[float, Meta(multiple_of=0.5)], "Meta(multiple_of=0.5): the API server refuses whole numbers where"),
        (Annotated[int | None, Meta(ge=1)], "Meta(ge=...) limits one type, and not a union: write Annotated[int, Meta"),
        (
            Annotated[IntOrString, Meta(pattern="%$")],
            "limits one type, and not a union: write Annotated[int, Meta(...)",
        ),
        (Int32 | str, "markers are for all of a union, not for one of its members: write Annotated[int | str, ...]"),
        (
            Annotated[str, Meta(pattern="^(?!kube-)")],
            "the pattern '^(?!kube-)' uses negative look-ahead (?!...), which the API server does not understand",
        ),
        (
            Annotated[str, Meta(extra_json_schema={"$ref": "#/x"})],
            'extra_json_schema has "$ref", which the schema of a custom resource cannot have (it can have additionalP',
        ),
        (
            Annotated[list[str], Meta(extra_json_schema={"uniqueItems": True})],
            "the server refuses uniqueItems, which it would have to check in quadratic time: use Annotated",
        ),
    ],
    ids=str,
)
def test_a_constraint_that_does_not_fit_is_an_error_naming_the_field(annotation: object, complaint: str) -> None:
    with pytest.raises(ManifestError) as caught:
        schema_with(annotation)
    assert str(caught.value).startswith("Example.value: ")
    assert complaint in str(caught.value)
