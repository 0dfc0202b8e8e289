"""Definitions rendered from types, held to those that controller-gen renders from the same types in Go."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import yaml
from tests.manifest.controller_gen.gadget import Gadget, OldestGadget, OldGadget
from tools.controller_gen.__main__ import digest

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.client import Client
from kubewright.manifest.crd import crd_of, definition_of

HERE = Path(__file__).parent / "controller_gen"
GO = Path(__file__).parents[2] / "tools" / "controller_gen"
VERSIONS = (Gadget, OldGadget, OldestGadget)

SPEC = "versions[v1].spec"
BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
DELIBERATE = {
    # The server's check of this format refuses the empty string.
    f"{SPEC}.data.format": ("byte", None),
    f"{SPEC}.data.pattern": (None, BASE64),
    # Merging field by field is what the server does anyway.
    f"{SPEC}.merged.x-kubernetes-map-type": ("granular", None),
    f"{SPEC}.window.x-kubernetes-map-type": ("granular", None),
    # Kubernetes' own structures leave out zero values, here as everywhere.
    f"{SPEC}.key.name.default": ("", None),
    f"{SPEC}.reference.name.default": ("", None),
    # A condition without a message is accepted.
    "versions[v1].status.conditions.[].message.default": (None, ""),
    "versions[v1].status.conditions.[].required": (
        ["lastTransitionTime", "message", "reason", "status", "type"],
        ["lastTransitionTime", "reason", "status", "type"],
    ),
    # Messages are ours.
    f"{SPEC}.source.x-kubernetes-validations[0].message": (
        "exactly one of the fields in [file url secret] must be set",
        "exactly one of file, url, secret must be set",
    ),
    f"{SPEC}.limit.x-kubernetes-validations[0].message": (
        "at most one of the fields in [soft hard] may be set",
        "at most one of soft, hard may be set",
    ),
    f"{SPEC}.contact.x-kubernetes-validations[0].message": (
        "at least one of the fields in [mail phone] must be set",
        "at least one of mail, phone must be set",
    ),
    f"{SPEC}.x-kubernetes-validations[0].message": (
        "field keptOnce is immutable once set",
        "keptOnce is immutable once it is set",
    ),
}
UNUSED = {
    "kubebuilder:skip",  # of packages that have no kinds
    "kubebuilder:skipversion",  # of a type that gives no version
    "kubebuilder:validation:UniqueItems",  # which the server refuses
    "kubebuilder:validation:items:UniqueItems",
}


def meaning(schema: dict[str, Any], path: str) -> Iterator[tuple[str, object]]:
    """What a schema says, keyword by keyword. Descriptions are prose, and white space in rules has no meaning."""
    for keyword, value in schema.items():
        if keyword == "properties":
            for name, field in value.items():
                yield from meaning(field, f"{path}.{name}")
        elif keyword in ("items", "additionalProperties"):
            yield from meaning(value, f"{path}.[]" if keyword == "items" else f"{path}.{{}}")
        elif keyword == "x-kubernetes-validations":
            for index, rule in enumerate(value):
                for option, said in rule.items():
                    yield f"{path}.{keyword}[{index}].{option}", re.sub(r"\s", "", said) if option == "rule" else said
        elif keyword != "description":
            yield f"{path}.{keyword}", value


def meaning_of(definition: dict[str, Any]) -> dict[str, object]:
    metadata, spec = definition["metadata"], {**definition["spec"]}
    found: dict[str, object] = {f"metadata.{name}": metadata[name] for name in ("name", "labels")}
    found["metadata.annotations"] = {
        name: value for name, value in metadata["annotations"].items() if "controller-gen" not in name
    }
    for version in spec.pop("versions"):
        path = f"versions[{version['name']}]"
        found |= meaning(version.pop("schema")["openAPIV3Schema"], path)
        found |= {f"{path}.{name}": value for name, value in version.items()}
    return found | {f"spec.{name}": value for name, value in spec.items()}


def theirs() -> dict[str, Any]:
    return cast("dict[str, Any]", yaml.safe_load((HERE / "shapes.example.com_gadgetry.yaml").read_text()))


def test_a_definition_means_what_that_of_controller_gen_means_but_for_listed_differences() -> None:
    go, python = meaning_of(theirs()), meaning_of(cast("dict[str, Any]", crd_of(*VERSIONS)))
    differing = {path for path in go.keys() | python.keys() if go.get(path) != python.get(path)}
    assert {path: (go.get(path), python.get(path)) for path in differing} == DELIBERATE


def test_the_compared_kind_has_at_least_60_different_fields_and_all_markers_of_controller_gen() -> None:
    fields = theirs()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert len({yaml.dump(field) for field in fields.values()}) >= 60

    source = "".join(path.read_text() for path in GO.glob("*/types.go"))
    used = set(re.findall(r"// \+([\w:]+)", source))
    # Fields of a marker follow its name after a colon, too.
    used |= {name.rpartition(":")[0] for name in used}
    assert set((HERE / "markers.txt").read_text().split()) - used == UNUSED


def test_the_compared_definition_is_that_of_the_types_in_go() -> None:
    assert (HERE / "digest.txt").read_text().strip() == digest(), "run make generate"


async def test_both_definitions_are_accepted_by_servers(admin: Client) -> None:
    for definition in (from_json(CustomResourceDefinition, theirs()), definition_of(*VERSIONS)):
        created = await admin.create(definition, dry_run=True)
        assert {version.name for version in created.spec.versions} == {"v1", "v1beta1", "v1alpha1"}
