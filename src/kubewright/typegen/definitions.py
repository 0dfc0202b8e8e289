"""CustomResourceDefinitions as files have them: YAML or JSON, alone, among other manifests, or in a List."""

from __future__ import annotations

import re
from typing import Final

import msgspec
from msgspec import Struct, field

from kubewright.api.markers import JSONValue
from kubewright.manifest.documents import documents
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.keywords import Schema

_API_VERSION: Final = "apiextensions.k8s.io/v1"
APPROVED: Final = "api-approved.kubernetes.io"
_KIND: Final = "CustomResourceDefinition"
_SCOPES: Final = ("Namespaced", "Cluster")
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_KIND_NAME: Final = re.compile(r"[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?")
_IN_NO_FIELD: Final = re.compile(r'["\\\x00-\x1f\ud800-\udfff]')


class Names(Struct, rename="camel"):
    """The names of a kind."""

    kind: str
    plural: str
    singular: str = ""
    short_names: list[str] = []
    categories: list[str] = []


class DefinedColumn(Struct, rename="camel"):
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


class DefinedSubresources(Struct):
    """The subresources of a version."""

    status: dict[str, object] | None = None
    scale: ScaleSubresource | None = None


class SelectableField(Struct, rename="camel"):
    """A field that field selectors may name."""

    json_path: str


class Validation(Struct):
    """The schema of a version."""

    open_api_v3_schema: Schema = field(name="openAPIV3Schema")


class DefinedVersion(Struct, rename="camel"):
    """One version of a kind."""

    name: str
    served: bool
    storage: bool
    schema: Validation
    deprecated: bool = False
    deprecation_warning: str = ""
    subresources: DefinedSubresources = field(default_factory=DefinedSubresources)
    additional_printer_columns: list[DefinedColumn] = []
    selectable_fields: list[SelectableField] = []


class _Spec(Struct):
    group: str
    names: Names
    scope: str
    versions: list[DefinedVersion]


class _Metadata(Struct):
    annotations: dict[str, str] = {}


class Definition(Struct):
    """What a CustomResourceDefinition says of its kind."""

    spec: _Spec
    metadata: _Metadata = field(default_factory=_Metadata)

    @property
    def approved(self) -> str:
        """Where the Kubernetes project has approved the kind, as those in its own groups need; empty for others."""
        return self.metadata.annotations.get(APPROVED, "")

    @property
    def name(self) -> str:
        """`widgets.example.com`."""
        return f"{self.spec.names.plural}.{self.spec.group}"


def read_definitions(text: str, source: str) -> list[Definition]:
    """The definitions among the documents of a text. Raises `ManifestError` when there is none, or one is wrong.

    Manifests of other kinds are ignored, as an installation file has many. `source` is where the text is from.
    """
    definitions: list[Definition] = []
    others: list[str] = []
    for where, document in documents(text, source):
        kind = document.get("kind") if isinstance(document, dict) else None
        if not kind:
            raise ManifestError(f"{where} is not a Kubernetes manifest: expected one with apiVersion and kind")
        if kind == _KIND:
            definitions.append(definition(document, where))
        else:
            others.append(str(kind))
    if not definitions:
        found = f"found {', '.join(dict.fromkeys(others))}" if others else "it is empty"
        raise ManifestError(f"{source}: there is no {_KIND} in it: {found}")
    return definitions


def definition(document: JSONValue, where: str) -> Definition:
    """One definition from its JSON. `where` names it in errors."""
    api_version = document.get("apiVersion") if isinstance(document, dict) else None
    if api_version != _API_VERSION:
        raise ManifestError(
            f"{where}: apiVersion: expected {_API_VERSION}, found {api_version or 'none'}; a server that has the "
            "definition converts it: kubectl get crd NAME -o yaml"
        )
    try:
        found = msgspec.convert(document, Definition)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise ManifestError(f"{where}: {path.removesuffix('`').lstrip('.') or 'the document'}: {problem}") from None
    if not found.spec.versions:
        raise ManifestError(f"{where}: spec.versions: there is no version in it")
    _check_names(found, where)
    for number, version in enumerate(found.spec.versions):
        path = f"spec.versions[{number}].schema.openAPIV3Schema"
        _check_schema(version.schema.open_api_v3_schema, f"{where}: {path}")
    return found


def _check_names(found: Definition, where: str) -> None:
    """Refuse names that a class could not have, so that the module can be imported."""
    spec = found.spec
    if spec.scope not in _SCOPES:
        raise ManifestError(f'{where}: spec.scope: expected {" or ".join(_SCOPES)}, found "{spec.scope}"')
    versions = [(f"versions[{number}].name", version.name) for number, version in enumerate(spec.versions)]
    for path, name in (("group", spec.group), ("names.plural", spec.names.plural), *versions):
        if not _NAME.fullmatch(name) or ("." in name and path != "group"):
            raise ManifestError(f'{where}: spec.{path}: "{name}" is not a DNS name in lower case')
    if not _KIND_NAME.fullmatch(spec.names.kind):
        raise ManifestError(
            f'{where}: spec.names.kind: "{spec.names.kind}" is not a kind: expected a name such as "Widget"'
        )


def _check_schema(schema: JSONValue, path: str) -> None:
    if not isinstance(schema, dict):
        raise ManifestError(f"{path}: expected a schema, found {schema!r}")
    type_ = schema.get("type")
    if type_ not in (None, "", *_TYPES):
        raise ManifestError(f"{path}.type: {type_!r} is none of {', '.join(_TYPES)}")
    properties = schema.get("properties")
    for name, value in properties.items() if isinstance(properties, dict) else ():
        if found := _IN_NO_FIELD.search(name):
            raise ManifestError(f"{path}.properties: no field of a Python type is called {name!r}, with {found[0]!r}")
        _check_schema(value, f"{path}.properties.{name}")
    for keyword in ("items", "additionalProperties"):
        if schema.get(keyword) not in (None, True, False):
            _check_schema(schema[keyword], f"{path}.{keyword}")
