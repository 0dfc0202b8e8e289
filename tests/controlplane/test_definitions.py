"""Control planes that begin with definitions: what is installed, and the errors of what cannot be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kubewright.api.core.v1 import Pod
from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.model import Model
from kubewright.api.resources import Resource, resource
from kubewright.client import Client
from kubewright.controlplane import ControlPlane, InvalidDefinition
from kubewright.controlplane.definitions import install_definitions, load_definitions
from kubewright.manifest.crd import crd_of, definition_of
from kubewright.manifest.yaml import to_yaml
from kubewright.testing.namespaces import unique_name


class Spec(Model):
    size: int = 0


@resource("definitions.example.com/v1")
class Gadget(Resource[Spec, None]):
    """Served from its class."""


@resource("definitions.example.com/v1beta1", kind="Gadget", storage=False)
class OldGadget(Resource[Spec, None]):
    """Another version of it."""


def manifest(
    plural: str, group: str = "definitions.example.com", spec: Mapping[str, JSONValue] = {}
) -> dict[str, JSONValue]:
    kind = plural.removesuffix("s").capitalize()
    version: JSONValue = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
            **spec,
        },
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As controller-gen and kustomize leave one behind: definitions beside what is none."""
    (tmp_path / "first.yaml").write_text(to_yaml(manifest("apples")) + "---\n" + to_yaml(manifest("pears")))
    (tmp_path / "second.json").write_text(json.dumps(manifest("plums")))
    (tmp_path / "kustomization.yaml").write_text("resources: [first.yaml]\n")
    (tmp_path / "README.md").write_text("not: [yaml")
    (tmp_path / "patches").mkdir()
    return tmp_path


@pytest.mark.parametrize("make", [ControlPlane.embedded, ControlPlane.real], ids=["embedded", "real"])
async def test_kinds_are_served_when_the_control_plane_is_ready(
    make: Callable[..., ControlPlane], folder: Path, tmp_path: Path, real_control_plane: ControlPlane
) -> None:
    alone = tmp_path / "patches" / "alone.yml"
    alone.write_text(to_yaml(manifest("cherries")))
    sources = [folder, str(alone), OldGadget, Gadget, definition_of(_named("Berry"))]
    async with make(definitions=sources) as plane, plane.client() as client:
        found = {resource.name for resource in await client.discover("definitions.example.com/v1")}
        assert {"apples", "pears", "plums", "cherries", "gadgets", "berries"} <= found
        assert {each.name for each in await client.discover("definitions.example.com/v1beta1")} >= {"gadgets"}
        gadget = Gadget(metadata=ObjectMeta(name="a", namespace="default"), spec=Spec(size=3))
        assert (await client.create(gadget)).spec.size == 3
        pear = Dynamic.of("definitions.example.com/v1", "Pear", plural="pears", namespaced=True)
        assert await client.list(pear, namespace="default") == []


def _named(kind: str) -> type[Resource[Spec, None]]:
    @resource("definitions.example.com/v1", kind=kind, plural="berries")
    class Named(Resource[Spec, None]):
        pass

    return Named


def test_classes_of_one_kind_are_versions_of_one_definition() -> None:
    [loaded] = load_definitions([OldGadget, Gadget])
    assert [version.name for version in loaded.value.spec.versions] == ["v1", "v1beta1"]


def write(path: Path, *documents: JSONValue | str) -> Path:
    path.write_text("---\n".join(each if isinstance(each, str) else to_yaml(each) for each in documents))
    return path


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("config/crd", "definitions='config/crd': expected a list, such as ['config/crd']"),
        (Pod, "definitions=Pod: expected a list, such as [Pod]"),
        (None, "definitions=None: expected a list"),
        (
            [{"kind": "CustomResourceDefinition"}],
            "expected files, folders, classes of kinds or definitions, not a dict",
        ),
        ([Path], "definitions: Path is not a kind: derive it from Resource"),
    ],
)
def test_what_are_no_definitions_is_refused_with_the_fix(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        load_definitions(given)


def test_a_path_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        load_definitions([tmp_path / "crds"])
    assert str(raised.value) == f"cannot read definitions from {tmp_path}/crds: No such file or directory"


@pytest.mark.parametrize("make_path", [lambda folder: folder, lambda folder: write(folder / "a.yaml", {"kind": "Pod"})])
def test_a_source_without_a_definition_is_an_error(make_path: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make_path(tmp_path)
    with pytest.raises(InvalidDefinition, match=f"there is no CustomResourceDefinition in {path}"):
        load_definitions([path])


def _of_wrong_type() -> dict[str, JSONValue]:
    return manifest("pears", spec={"names": {"plural": "pears", "kind": 7}})


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([manifest("apples"), "a: ["], "document 2, line 21, column 1: not YAML"),
        (
            [manifest("apples"), {**manifest("pears"), "apiVersion": "apiextensions.k8s.io/v1beta1"}],
            "document 2: apiVersion: expected apiextensions.k8s.io/v1, found apiextensions.k8s.io/v1beta1",
        ),
        ([manifest("apples"), _of_wrong_type()], "document 2: spec.names.kind: Expected `str`, got `int`"),
        (
            [manifest("apples"), manifest("apples")],
            "document 2: apples.definitions.example.com is defined in FILE,",
        ),
    ],
)
def test_a_bad_file_is_an_error_with_its_document_and_field(
    documents: Sequence[JSONValue | str], message: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "bad.yaml", *documents)
    with pytest.raises(InvalidDefinition) as raised:
        load_definitions([file])
    assert f"{file}, {message.replace('FILE', str(file))}" in str(raised.value)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"scope": "Everywhere"}, 'spec.scope: Unsupported value: "Everywhere"'),
        ({"scop": "Namespaced"}, 'unknown field "spec.scop"'),
    ],
    ids=["invalid", "misspelt"],
)
async def test_what_the_server_refuses_is_an_error_with_its_document_and_field(
    admin: Client, spec: dict[str, JSONValue], problem: str, tmp_path: Path
) -> None:
    plural = unique_name("apples").replace("-", "")
    file = write(tmp_path / "bad.yaml", {"kind": "Other"}, manifest(plural, spec=spec))
    with pytest.raises(InvalidDefinition) as raised:
        await install_definitions(admin, load_definitions([file]), timeout=60)
    assert str(raised.value).startswith(f"{file}, document 2: ")
    assert problem in str(raised.value)


async def test_names_that_another_definition_has_are_an_error(admin: Client, tmp_path: Path) -> None:
    group = f"{unique_name('names')}.example.com"
    names: JSONValue = {"plural": "pears", "kind": "Apple"}
    file = write(tmp_path / "a.yaml", manifest("apples", group), manifest("pears", group, {"names": names}))
    with pytest.raises(InvalidDefinition, match=r"document 2: spec\.names: \"AppleList\" is already in use"):
        await install_definitions(admin, load_definitions([file]), timeout=60)


async def test_a_start_that_failed_can_be_made_again(tmp_path: Path) -> None:
    file = write(tmp_path / "bad.yaml", manifest("apples", spec={"scope": "Everywhere"}))
    plane = ControlPlane.embedded(definitions=[file])
    with pytest.raises(InvalidDefinition, match=r"spec\.scope"):
        await plane.start()
    write(file, crd_of(Gadget))
    async with plane, plane.client() as client:
        assert await client.serves(Gadget)
