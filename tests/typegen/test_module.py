"""Generated modules: their types mean what the definition says, and mypy and ruff accept their source."""

from __future__ import annotations

import ast
import copy
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import msgspec
import pytest
from tests.manifest.test_unions_on_a_server import Copy
from tests.typegen.conftest import CRDS, Load, canonical_definition, kinds

from kubewright.api.apiextensions.v1 import JSONSchemaProps
from kubewright.api.codec import decode, encode, from_json
from kubewright.api.markers import JSONValue
from kubewright.api.meta import Condition
from kubewright.api.origin import joined, merged
from kubewright.api.quantity import Quantity
from kubewright.api.resources import resource_info
from kubewright.client.errors import DecodeError
from kubewright.manifest.crd import crd_of
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.schema import schema_of
from kubewright.typegen import Definition, definition, generate, read_definitions
from kubewright.typegen.prose import docstring

SCHEMAS = {"items", "additionalProperties", "not", "allOf", "anyOf", "oneOf"}
NOT_STRUCTURAL = {
    *("$ref", "$schema", "id", "definitions", "dependencies", "patternProperties", "additionalItems", "uniqueItems")
}


def read(path: Path) -> list[Definition]:
    return read_definitions(path.read_text(), path.name)


@pytest.mark.parametrize("path", CRDS, ids=lambda path: path.stem)
def test_the_definition_of_a_generated_kind_is_the_original(path: Path, load: Load) -> None:
    """Schema, descriptions, rules, columns, names: all but what `canonical` lists."""
    for original in read(path):
        versions = [version.name for version in original.spec.versions]
        rendered = crd_of(*kinds(load(generate([original], versions=versions))))
        again = definition(rendered, "rendered")
        assert canonical_definition(again) == canonical_definition(original)


def test_the_definitions_hold_every_keyword_of_a_structural_schema() -> None:
    found: set[str] = set()

    def walk(schema: JSONValue) -> None:
        for keyword, value in schema.items() if isinstance(schema, dict) else ():
            found.add(keyword)
            if isinstance(value, dict):
                for nested in value.values() if keyword == "properties" else [value] if keyword in SCHEMAS else ():
                    walk(nested)
            elif isinstance(value, list) and keyword in SCHEMAS:
                for nested in value:
                    walk(nested)

    for path in CRDS:
        for each in read(path):
            for version in each.spec.versions:
                walk(version.schema.open_api_v3_schema)
    assert found == {field.encode_name for field in msgspec.structs.fields(JSONSchemaProps)} - NOT_STRUCTURAL


def test_rules_are_kubewrights_own_and_only_its_own_rule_is_immutable() -> None:
    source = generate(read(Path(__file__).parent / "crds/gadgets.yaml"), line_length=120)

    assert "x-kubernetes-validations" not in source
    assert "    owner: Annotated[str, Immutable()]\n" in source
    assert '    zone: Annotated[str, Immutable(), Meta(title="Zone", examples=["eu"])] | None = None\n' in source
    assert '            Rule("self == oldSelf", message="the region stays"),\n' in source
    assert (
        '    rules=[Rule("self.size > 0 || !has(self.zone)", reason="FieldValueForbidden", field_path=".zone")],\n'
        in source
    )
    assert '        Rule("self.metadata.name != \'admin\'", message="this name is reserved"),\n' in source


def test_the_descriptions_of_one_class_used_twice_are_those_of_its_fields(load: Load) -> None:
    module = load(generate(read(Path(__file__).parent / "crds/gadgets.yaml")))

    fields = schema_of(module.GadgetSpec)["properties"]
    assert isinstance(fields, dict)
    assert [field.get("description") for field in fields.values() if isinstance(field, dict)][-3:] == [
        "The first.",
        "The second.",
        None,
    ]
    assert module.GadgetFirst.__doc__ is None


def test_the_source_passes_mypy_strict_and_is_formatted(tmp_path: Path) -> None:
    for path in CRDS:
        for width in (88, 120):
            module = generate(read(path), line_length=width)
            (tmp_path / f"w{width}").mkdir(exist_ok=True)
            (tmp_path / f"w{width}" / f"{path.stem.replace('-', '_')}.py").write_text(module)

    for width in (88, 120):
        folder = tmp_path / f"w{width}"
        ruff = ["ruff", "format", "--isolated", "--no-cache", "--diff", "--line-length", str(width), str(folder)]
        assert subprocess.run([sys.executable, "-m", *ruff], capture_output=True, text=True).stdout == ""
        lint = ["ruff", "check", "--isolated", "--no-cache", "--line-length", str(width), "--select", "F,I,E4,E7,E9"]
        checked = subprocess.run(
            [sys.executable, "-m", *lint, str(folder)], capture_output=True, text=True, cwd=folder, check=False
        )
        assert checked.returncode == 0, checked.stdout
    mypy = ["mypy", "--strict", "--config-file=", "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "w88")]
    typed = subprocess.run([sys.executable, "-m", *mypy], capture_output=True, text=True, cwd=tmp_path)
    assert typed.returncode == 0, typed.stdout


@pytest.mark.parametrize("path", CRDS, ids=lambda path: path.stem)
def test_the_same_definitions_give_the_same_bytes(path: Path) -> None:
    assert generate(read(path)) == generate(read(path))


def test_an_update_keeps_the_fields_that_the_types_do_not_know(widgets: ModuleType) -> None:
    """A newer definition than the one that the types were generated from has fields in every structure."""
    sent: dict[str, JSONValue] = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "a", "newest": 1},
        "spec": {
            "mode": "Turbo",
            "from": "a.b",
            "payload": {"deep": [1]},
            "template": {"image": "nginx", "newest": {"x": 1}},
            "ports": [{"port": 1, "protocol": "TCP", "newest": True}, {"port": 2, "protocol": "TCP"}],
            "newest": "kept",
        },
        "status": {"conditions": [], "newest": 3},
        "newest": [1],
    }
    widget = decode(widgets.Widget, json.dumps(sent).encode())

    widget.spec.template.image = "httpd"
    widget.spec.ports[0], widget.spec.ports[1] = widget.spec.ports[1], widget.spec.ports[0]

    expected = json.loads(json.dumps(sent))
    expected["spec"]["template"]["image"] = "httpd"
    expected["spec"]["ports"].reverse()
    written = json.loads(joined(merged(widget)))
    assert written == expected


def test_names_that_python_cannot_have_are_found_under_their_json_name(widgets: ModuleType) -> None:
    names: dict[str, JSONValue] = {
        "from": "a.b",
        "class": "c",
        "list": ["l"],
        "str": True,
        "field": "f",
        "$ref": "r",
        "x-y": "z",
        "2fa": "t",
        "clusterIP": "1",
        "clusterIp": "2",
        "überall": "u",
    }
    spec: dict[str, JSONValue] = {"mode": "Fast", "payload": None, "template": {"image": "i"}, **names}

    widget = from_json(widgets.Widget, {"metadata": {"name": "a"}, "spec": spec})

    read = widget.spec
    assert (read.from_, read.class_, read.list_, read.str_, read.field_) == ("a.b", "c", ["l"], True, "f")
    assert (read.ref, read.x_y, read.field_2fa) == ("r", "z", "t")
    assert (read.cluster_ip, read.cluster_ip2) == ("1", "2")
    made = copy.copy(read)
    assert {name: json.loads(encode(made))[name] for name in names} == names


def test_structures_of_the_same_name_are_distinguished_by_the_fields_around_them(widgets: ModuleType) -> None:
    spec = widgets.WidgetSpec.__annotations__
    assert (spec["template"], widgets.WidgetBackup.__annotations__["template"]) == (
        "WidgetSpecTemplate",
        "WidgetBackupTemplate | None",
    )
    assert widgets.WidgetSource.__annotations__ == {"git": "WidgetGit | None", "image": "WidgetGit | None"}


def test_values_have_the_types_that_kubewright_has_for_them(widgets: ModuleType) -> None:
    widget = from_json(
        widgets.Widget,
        {
            "metadata": {"name": "a"},
            "spec": {"mode": "Fast", "from": "a.b", "payload": 1, "template": {"image": "i"}, "limits": {"cpu": "1"}},
            "status": {
                "conditions": [
                    {"type": "Ready", "status": "True", "reason": "A", "lastTransitionTime": "2026-01-01T00:00:00Z"}
                ]
            },
        },
    )
    assert (widget.spec.memory, widget.spec.limits) == (Quantity("64Mi"), {"cpu": Quantity(1)})
    assert isinstance(widget.status.conditions[0], Condition)
    assert widget.spec.template.resources == widgets.WidgetResources()


def test_descriptions_are_docstrings(widgets: ModuleType) -> None:
    assert widgets.Widget.__doc__.splitlines()[0] == "Widget is a part of a machine."
    assert '"""quotes"""' in widgets.Widget.__doc__
    assert "C:\\path" in widgets.Widget.__doc__


@pytest.mark.parametrize("prose", ['"', 'say """x"""', '"""x', 'a\\"""', 'x""""', "ends with \\", 'it is "so"'])
def test_quotes_at_the_end_of_a_description_do_not_end_the_docstring(prose: str) -> None:
    assert ast.literal_eval("\n".join(docstring(prose, "", 88))) == prose


def test_a_multiple_of_a_fraction_is_left_to_the_server(load: Load) -> None:
    """msgspec takes 2.5 for no multiple of 0.1, so that objects could not be read."""
    schema = "{type: object, properties: {ratio: {type: number, multipleOf: 0.1}, five: {type: number, multipleOf: 5}}}"
    module = load(generate(read_definitions(VERSIONS.replace("{type: object}", schema), "ratios.yaml")))
    assert decode(module.ResourceKind, b'{"metadata":{"name":"a"},"ratio":2.5,"five":10}').ratio == 2.5
    properties = schema_of(module.ResourceKind)["properties"]
    assert isinstance(properties, dict)
    assert properties["ratio"] == {"type": "number", "multipleOf": 0.1}
    with pytest.raises(DecodeError, match="multiple"):
        decode(module.ResourceKind, b'{"metadata":{"name":"a"},"five":7.5}')


def test_a_union_is_generated_as_one(load: Load) -> None:
    document = crd_of(Copy)
    text = generate([definition(document, "copies")], line_length=120)
    assert "    source: CopyFile | CopyURL | CopyNothing\n" in text
    assert '    steps: Annotated[list[CopyAlone | CopyWait], ListMap("name")] = []\n' in text
    assert '    preset: CopyFile | CopyURL = CopyFile(path="/etc/hosts", mode=420, retries=3)\n' in text
    assert 'class CopyNothing(Model, tag="Nothing"):\n' in text

    module = load(text)
    assert canonical_definition(definition(crd_of(module.Copy), "it")) == canonical_definition(
        definition(document, "copies")
    )
    copy = decode(module.Copy, b'{"metadata":{"name":"a"},"spec":{"source":{"type":"URL","url":"a"}}}')
    assert copy.spec.source == module.CopyURL(url="a")


def test_a_structure_of_others_that_looks_like_a_union_is_one_class(load: Load) -> None:
    """A rule that says more than those of a union do cannot be kept if it is taken for one of them."""
    document = cast("dict[str, Any]", crd_of(Copy))
    schema = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["source"]["x-kubernetes-validations"][0]["message"] = "no path"
    text = generate([definition(document, "copies")])
    assert "    source: CopySource\n" in text
    assert canonical_definition(definition(crd_of(load(text).Copy), "it")) == canonical_definition(
        definition(document, "copies")
    )


VERSIONS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: resources.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Resource, plural: resources}
  versions:
    - {name: v2alpha1, served: true, storage: false, schema: &schema {openAPIV3Schema: {type: object}}}
    - {name: v1, served: true, storage: false, schema: *schema}
    - {name: v3, served: false, storage: false, schema: *schema}
    - {name: v1beta1, served: true, storage: true, schema: *schema}
"""


def test_the_version_that_kubectl_prefers_is_generated_unless_others_are_named(load: Load) -> None:
    definitions = read_definitions(VERSIONS, "versions")

    (preferred,) = kinds(load(generate(definitions)))
    several = kinds(load(generate(definitions, versions=["v1", "v1beta1"])))

    assert resource_info(preferred).gvk.version == "v1"
    assert [(kind.__name__, *resource_info(kind).gvk) for kind in several] == [
        ("ResourceKind", "example.com", "v1", "Resource"),
        ("ResourceV1beta1", "example.com", "v1beta1", "Resource"),
    ]
    rendered = crd_of(*several)["spec"]
    assert isinstance(rendered, dict)
    versions = rendered["versions"]
    assert isinstance(versions, list)
    assert [(version["name"], version["storage"]) for version in versions if isinstance(version, dict)] == [
        ("v1", False),
        ("v1beta1", True),
    ]


def test_an_unknown_version_is_refused_with_the_existing_ones() -> None:
    expected = 'there is no version "v9": resources.example.com has v2alpha1, v1, v3, v1beta1'
    with pytest.raises(ManifestError, match=f"^{re.escape(expected)}$"):
        generate(read_definitions(VERSIONS, "versions"), versions=["v9"])
