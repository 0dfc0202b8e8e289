"""The table of markers in docs/definitions.md: complete, and each line of it renders what it says."""

import enum
import re
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import pytest
import yaml
from msgspec import UNSET, Meta, UnsetType

from kubewright import api
from kubewright.api.core.v1 import ConfigMap, ContainerPort, ResourceClaim
from kubewright.api.model import Model
from kubewright.api.resources import Resource, resource
from kubewright.manifest.crd import crd_of
from kubewright.manifest.schema import schema_of

HERE = Path(__file__).parent
DOC = (HERE.parents[1] / "docs" / "definitions.md").read_text()
TABLE = re.search(r"\| controller-gen \|.*?\n\n", DOC, re.DOTALL)
ROWS = [
    tuple(cell.replace(r"\|", "|").strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
    for line in (TABLE[0] if TABLE else "").splitlines()[2:]
    if line
]


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class ExampleSpec(Model):
    name: str = ""
    replicas: int = 1


class ExampleStatus(Model):
    replicas: int = 0
    selector: str = ""


NAMES: dict[str, object] = {
    **{name: getattr(api, name) for name in api.__all__},
    **{cls.__name__: cls for cls in (Color, Meta, UnsetType, ConfigMap, ContainerPort, ResourceClaim)},
    "Annotated": Annotated,
    "Literal": Literal,
    "UNSET": UNSET,
}


def test_every_marker_of_controller_gen_is_in_the_table_once() -> None:
    named = [marker for markers, _, _ in ROWS for marker in re.findall("`(.+?)`", markers)]
    assert sorted(named) == (HERE / "controller_gen" / "markers.txt").read_text().split()


@pytest.mark.parametrize(("marker", "python", "rendered"), [row for row in ROWS if row[2]], ids=lambda cell: cell[:40])
def test_a_line_of_the_table_renders_what_it_says(marker: str, python: str, rendered: str) -> None:
    code = python.split("`")[1]
    expected = yaml.safe_load(rendered.strip("`"))
    if code.startswith("@resource"):
        places = of_a_kind(code)
    elif code.startswith("rules="):
        places = of_a_structure(
            f"class Example(Model, {code}):\n    file: str | None = None\n    url: str | None = None"
        )
    else:
        places = of_a_structure(f"class Example(Model):\n    {code}")
    assert any(includes(place, expected) for place in places), yaml.dump(places[-1])


def test_the_table_is_not_empty_of_code() -> None:
    assert len([row for row in ROWS if row[2]]) > 50


def of_a_structure(source: str) -> list[object]:
    """The schemas of the structure and of its fields."""
    names: dict[str, object] = {**NAMES, "__name__": __name__}
    exec(source, names)
    schema = cast("dict[str, Any]", schema_of(cast("type[Model]", names["Example"])))
    return [schema, *schema["properties"].values()]


def of_a_kind(code: str) -> list[object]:
    """The parts of the definition of a kind."""

    class Example(Resource[ExampleSpec, ExampleStatus]):
        pass

    decorate = eval(code[1:].replace("(...", '("docs.example.com/v1"'), {**NAMES, "resource": resource})
    definition = cast("dict[str, Any]", crd_of(decorate(Example)))
    return [definition["metadata"], definition["spec"], definition["spec"]["versions"][0]]


def includes(found: object, expected: object) -> bool:
    if isinstance(found, dict) and isinstance(expected, dict):
        return all(key in found and includes(found[key], value) for key, value in expected.items())
    return found == expected
