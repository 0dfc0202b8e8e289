"""Descriptions that are cut, and definitions that are too large to be stored."""

from typing import Annotated, Any, cast

import pytest
from msgspec import Meta

from kubewright.api.model import Model
from kubewright.api.resources import Object, Resource, resource
from kubewright.manifest.crd import crd_of, crd_yaml, definition_of
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.size import MAX_STORED_SIZE, shorten_descriptions

LONG = "The first sentence. The second one,\nwhich is longer. And a third."


class Part(Model):
    """The first sentence. The second one."""

    description: Annotated[str, Meta(description=LONG)] = ""


class Spec(Model):
    part: Part | None = None
    parts: list[Part] = []
    by_name: dict[str, Part] = {}


@resource("sizes.example.com/v1")
class Sized(Resource[Spec, None]):
    """The first sentence. The second one."""


def spec_of(definition: dict[str, Any]) -> dict[str, Any]:
    (version,) = definition["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    assert schema.get("description") in (None, "The first sentence.")
    return cast("dict[str, Any]", schema["properties"]["spec"]["properties"])


def test_descriptions_are_cut_everywhere_and_fields_of_that_name_are_kept() -> None:
    spec = spec_of(cast("dict[str, Any]", crd_of(Sized, max_description=30)))
    for part in (spec["part"], spec["parts"]["items"], spec["byName"]["additionalProperties"]):
        assert part["description"] == part["properties"]["description"]["description"] == "The first sentence."

    bare = spec_of(cast("dict[str, Any]", crd_of(Sized, max_description=0)))
    assert bare["part"] == {"type": "object", "properties": {"description": {"type": "string", "default": ""}}}
    assert "sentence" not in crd_yaml(Sized, max_description=0)
    assert definition_of(Sized, max_description=0) != definition_of(Sized)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (1000, LONG),
        (len(LONG), LONG),
        (len(LONG) - 1, "The first sentence. The second one,\nwhich is longer."),
        (19, "The first sentence."),
        (18, "The first…"),
        (3, "Th…"),
    ],
)
def test_a_description_is_cut_after_a_sentence_or_else_a_word(limit: int, expected: str) -> None:
    schema = {"description": LONG}
    shorten_descriptions(cast("dict[str, Any]", schema), limit)
    assert schema == {"description": expected}
    assert len(expected) <= limit


def test_a_definition_that_etcd_would_refuse_is_an_error_naming_its_largest_part() -> None:
    def sized(length: int) -> type[Object]:
        class Large(Model):
            text: Annotated[str, Meta(description="x" * length)] = ""

        class LargeSpec(Model):
            small: str = ""
            large: Large | None = None

        @resource("sizes.example.com/v1", kind="Large")
        class LargeKind(Resource[LargeSpec, None]):
            pass

        return LargeKind

    crd_of(sized(MAX_STORED_SIZE - 2000))
    with pytest.raises(ManifestError) as caught:
        crd_of(sized(2 * 1024 * 1024))
    assert str(caught.value).startswith(
        "LargeKind: its definition has 2.0 MiB, more than the 1.5 MiB that etcd stores (its largest part is "
        "v1: .spec.large.text): shorten the descriptions with max_description="
    )
    crd_of(sized(2 * 1024 * 1024), max_description=100)
