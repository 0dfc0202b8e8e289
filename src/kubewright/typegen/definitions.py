"""CustomResourceDefinitions as files have them: YAML or JSON, alone, among other manifests, or in a List."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
import yaml
from msgspec import Struct, field

from kubewright.api.errors import KubernetesError
from kubewright.api.markers import JSONValue
from kubewright.manifest.schema import Schema
from kubewright.manifest.yaml_reader import compose
from kubewright.manifest.yaml_values import value_of

_API_VERSION: Final = "apiextensions.k8s.io/v1"
_KIND: Final = "CustomResourceDefinition"


class TypeGenerationError(KubernetesError):
    """No types can be made of what was given; the message names the file, the document and the field."""


class Names(Struct, rename="camel"):
    """What a kind is called."""

    kind: str
    plural: str
    singular: str = ""
    short_names: list[str] = []
    categories: list[str] = []


class Column(Struct, rename="camel"):
    """A column of `kubectl get`."""

    name: str
    type: str
    json_path: str
    description: str = ""
    format: str = ""
    priority: int = 0


class ScaleSubresource(Struct, rename="camel"):
    """The paths of the scale subresource."""

    spec_replicas_path: str
    status_replicas_path: str
    label_selector_path: str = ""


class Subresources(Struct):
    """The subresources of a version."""

    status: dict[str, object] | None = None
    scale: ScaleSubresource | None = None


class SelectableField(Struct, rename="camel"):
    """A field that field selectors may name."""

    json_path: str


class Validation(Struct):
    """The schema of a version."""

    open_api_v3_schema: Schema = field(name="openAPIV3Schema")


class Version(Struct, rename="camel"):
    """One version of a kind."""

    name: str
    served: bool
    storage: bool
    schema: Validation
    deprecated: bool = False
    deprecation_warning: str = ""
    subresources: Subresources = field(default_factory=Subresources)
    additional_printer_columns: list[Column] = []
    selectable_fields: list[SelectableField] = []


class _Spec(Struct):
    group: str
    names: Names
    scope: str
    versions: list[Version]


class Definition(Struct):
    """What a CustomResourceDefinition says of its kind."""

    spec: _Spec

    @property
    def name(self) -> str:
        """`widgets.example.com`."""
        return f"{self.spec.names.plural}.{self.spec.group}"


def read_definitions(text: str, source: str) -> list[Definition]:
    """The definitions among the documents of a text. Raises `TypeGenerationError` when there is none, or one is wrong.

    Manifests of other kinds are ignored, as an installation file has many. `source` is where the text is from.
    """
    definitions: list[Definition] = []
    others: list[str] = []
    for where, document in _manifests(text, source):
        if isinstance(document, dict) and document.get("kind") == _KIND:
            definitions.append(definition(document, where))
        elif isinstance(document, dict) and document.get("kind"):
            others.append(str(document["kind"]))
        else:
            raise TypeGenerationError(f"{where} is no Kubernetes manifest: expected one with apiVersion and kind")
    if not definitions:
        found = f"found {', '.join(dict.fromkeys(others))}" if others else "it is empty"
        raise TypeGenerationError(f"{source}: there is no {_KIND} in it: {found}")
    return definitions


def definition(document: JSONValue, where: str) -> Definition:
    """One definition from its JSON. `where` is how errors call it."""
    api_version = document.get("apiVersion") if isinstance(document, dict) else None
    if api_version != _API_VERSION:
        raise TypeGenerationError(
            f"{where} is a {_KIND} of {api_version or 'no apiVersion'}: expected {_API_VERSION}, which a server of "
            "Kubernetes 1.16 or newer converts it to (kubectl get crd NAME -o yaml)"
        )
    try:
        found = msgspec.convert(document, Definition)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise TypeGenerationError(
            f"{where}: {path.removesuffix('`').lstrip('.') or 'the document'}: {problem}"
        ) from None
    if not found.spec.versions:
        raise TypeGenerationError(f"{where}: spec.versions: there is no version in it")
    return found


def _manifests(text: str, source: str) -> Iterator[tuple[str, JSONValue]]:
    """Each manifest, with how to call it. The items of a List are manifests of their own."""
    for number, document in enumerate(_documents(text, source), 1):
        where = f"{source}: document {number}"
        if isinstance(document, dict) and str(document.get("kind", "")).endswith("List") and "items" in document:
            items = document["items"]
            for index, item in enumerate(items if isinstance(items, list) else []):
                yield f"{where}, items[{index}]", item
        elif document is not None:
            yield where, document


def _documents(text: str, source: str) -> Iterator[JSONValue]:
    try:
        loader = yaml.CSafeLoader(text)
        try:
            while (node := compose(loader)) is not None:
                yield value_of(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        raise TypeGenerationError(f"{source}{place}: not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError):
        raise TypeGenerationError(f"{source}: not YAML: it holds characters that YAML does not allow") from None
