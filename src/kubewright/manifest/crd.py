"""From a kind to its CustomResourceDefinition.

    print(crd_yaml(PodManager))

Several versions of one kind are several classes: `crd_yaml(PodManagerV1, PodManagerV1Beta1)`. What the server would
refuse is refused here as far as it follows from the types, with the class and the fix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kubewright.api.codec import from_json
from kubewright.api.field_path import FieldPath, FieldPathError
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Column, Object, ResourceInfo, Scale, resource_info
from kubewright.manifest.constraints import EXTRA_KEYWORDS, add_keywords
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.keywords import Schema
from kubewright.manifest.path import PathError, schema_at
from kubewright.manifest.rules import add_rules
from kubewright.manifest.schema import schema_of
from kubewright.manifest.size import check_size, shorten_descriptions
from kubewright.manifest.yaml import to_yaml

if TYPE_CHECKING:
    from kubewright.api.apiextensions.v1 import CustomResourceDefinition

_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_PROTECTED: Final = ("k8s.io", "kubernetes.io")
_APPROVED: Final = "api-approved.kubernetes.io"
_VERSION: Final = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?")
_STAGES: Final = {"alpha": 1, "beta": 2, None: 3}

_OBJECT_FIELDS: Final = ("apiVersion", "kind", "metadata")
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_AGE: Final = Column("Age", ".metadata.creationTimestamp", type="date")
_MAX_SELECTABLE_FIELDS: Final = 8
_MAX_WARNING_LENGTH: Final = 256


def crd_of(*types: type[Object], max_description: int | None = None) -> dict[str, JSONValue]:
    """The CustomResourceDefinition of one kind, given one class for each of its versions.

    A version with columns also gets the column Age, which kubectl shows otherwise only for kinds without columns;
    unless it has `age_column=False`. Descriptions are cut to `max_description` characters, and left out when it is 0.
    Raises `ManifestError` when the server would refuse the definition because of the types or of its size.
    """
    if not types:
        raise ManifestError("a CustomResourceDefinition needs at least one type")
    versions = sorted(((_named(cls), cls) for cls in types), key=lambda version: _priority(version[0]), reverse=True)
    info, cls = versions[0]
    _check_names(info, cls)
    for other_info, other in versions[1:]:
        _check_agreement(info, cls, other_info, other)
    _check_storage(versions)
    names: dict[str, JSONValue] = {
        "kind": info.gvk.kind,
        "listKind": f"{info.gvk.kind}List",
        "plural": info.plural,
        "singular": info.singular,
    }
    if info.short_names:
        names["shortNames"] = list(info.short_names)
    if info.categories:
        names["categories"] = list(info.categories)
    metadata: dict[str, JSONValue] = {"name": f"{info.plural}.{info.gvk.group}"}
    if info.definition_annotations:
        metadata["annotations"] = {**info.definition_annotations}
    if info.definition_labels:
        metadata["labels"] = {**info.definition_labels}
    schemas = {info.gvk.version: _schema(info, cls) for info, cls in versions}
    rendered: list[JSONValue] = [_version(info, cls, schemas[info.gvk.version]) for info, cls in versions]
    if max_description is not None:
        for schema in schemas.values():
            shorten_descriptions(schema, max_description)
    definition: dict[str, JSONValue] = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": info.gvk.group,
            "names": names,
            "scope": "Namespaced" if info.namespaced else "Cluster",
            "versions": rendered,
        },
    }
    check_size(definition, schemas, cls.__name__)
    return definition


def definition_of(*types: type[Object], max_description: int | None = None) -> CustomResourceDefinition:
    """The same as an object, to be applied by a client."""
    for each in types:
        given: object = each
        if isinstance(given, Object):
            raise TypeError(f"definition_of({given.kind} {given.key}): give the class {type(given).__name__}")
    from kubewright.api.apiextensions.v1 import CustomResourceDefinition

    return from_json(CustomResourceDefinition, crd_of(*types, max_description=max_description))


def crd_yaml(*types: type[Object], max_description: int | None = None) -> str:
    """`crd_of` as YAML. The same types give the same bytes."""
    return to_yaml(crd_of(*types, max_description=max_description))


def _named(cls: type[Object]) -> ResourceInfo:
    try:
        return resource_info(cls)
    except TypeError as error:
        raise ManifestError(str(error)) from None


def _priority(info: ResourceInfo) -> tuple[int, int, int, str]:
    """The order in which kubectl prefers versions: v2, v1, v1beta1, v1alpha1, and others by name."""
    version = _VERSION.fullmatch(info.gvk.version)
    if version is None:
        return 0, 0, 0, info.gvk.version
    return _STAGES[version[2]], int(version[1]), int(version[3] or 0), ""


def _check_names(info: ResourceInfo, cls: type[Object]) -> None:
    group = info.gvk.group
    if "." not in group:
        raise ManifestError(
            f'{cls.__name__}: the group "{group}" of a custom resource must be a domain with a dot: '
            f'write @resource("{group or "apps"}.example.com/{info.gvk.version}") with a domain of yours'
        )
    is_protected = group.endswith(tuple(f".{domain}" for domain in _PROTECTED)) or group in _PROTECTED
    if is_protected and not info.definition_annotations.get(_APPROVED):
        raise ManifestError(
            f'{cls.__name__}: the group "{group}" is reserved for the Kubernetes project: use a domain of yours'
        )
    names = [("plural", info.plural), ("singular", info.singular), ("kind", info.gvk.kind.lower())]
    names += [("kind with List", f"{info.gvk.kind.lower()}list")]
    names += [("short name", name) for name in info.short_names]
    names += [("category", name) for name in info.categories]
    for what, name in names:
        if not _LABEL.fullmatch(name):
            raise ManifestError(
                f'{cls.__name__}: the {what} "{name}" is not a name: expected at most 63 lower-case letters, digits '
                "and dashes, a letter first (a kind may have capitals)"
            )


def _check_agreement(info: ResourceInfo, cls: type[Object], other_info: ResourceInfo, other: type[Object]) -> None:
    for what, one, another in (
        ("the group", info.gvk.group, other_info.gvk.group),
        ("the kind", info.gvk.kind, other_info.gvk.kind),
        ("plural", info.plural, other_info.plural),
        ("singular", info.singular, other_info.singular),
        ("short_names", info.short_names, other_info.short_names),
        ("categories", info.categories, other_info.categories),
        ("namespaced", info.namespaced, other_info.namespaced),
        ("definition_annotations", info.definition_annotations, other_info.definition_annotations),
        ("definition_labels", info.definition_labels, other_info.definition_labels),
    ):
        if one != another:
            raise ManifestError(
                f"{cls.__name__} and {other.__name__} are not versions of one kind: {what} is {one!r} in the one and "
                f"{another!r} in the other; make them equal in both @resource(...)"
            )


def _check_storage(versions: list[tuple[ResourceInfo, type[Object]]]) -> None:
    names = [info.gvk.version for info, _ in versions]
    if len(set(names)) < len(names):
        classes = ", ".join(f"{cls.__name__} ({info.gvk.version})" for info, cls in versions)
        raise ManifestError(f"{classes}: every version of a kind has one class")
    stored = [f"{cls.__name__} ({info.gvk.version})" for info, cls in versions if info.storage]
    if len(stored) > 1:
        raise ManifestError(
            f"{', '.join(stored)} all have storage=True: objects are stored in one version only; "
            "give @resource(..., storage=False) to the others"
        )
    if not stored:
        raise ManifestError(
            f"none of {', '.join(cls.__name__ for _, cls in versions)} is the version objects are stored in: "
            "give @resource(..., storage=True) to one"
        )


def _schema(info: ResourceInfo, cls: type[Object]) -> Schema:
    schema = schema_of(cls)
    _add_extra(schema, info, cls)
    add_rules(schema, info.rules, cls.__name__)
    return schema


def _version(info: ResourceInfo, cls: type[Object], schema: Schema) -> dict[str, JSONValue]:
    # Paths may lead into the metadata, which the schema of a kind must not describe.
    whole: Schema = {**schema, "properties": {**_properties(schema), "metadata": schema_of(ObjectMeta)}}
    version: dict[str, JSONValue] = {
        "name": info.gvk.version,
        "served": info.served,
        "storage": info.storage,
        "schema": {"openAPIV3Schema": schema},
    }
    if info.deprecated is not None:
        version |= _deprecation(info.deprecated, cls)
    subresources = _subresources(info, whole, cls)
    if subresources:
        version["subresources"] = subresources
    if info.columns:
        version["additionalPrinterColumns"] = list(_columns(info, whole, cls))
    if info.selectable_fields:
        version["selectableFields"] = list(_selectable_fields(info, whole, cls))
    return version


def _add_extra(schema: Schema, info: ResourceInfo, cls: type[Object]) -> None:
    """Add the `extra_json_schema` of a kind, whose properties are those that no class declares: metadata has a name."""
    extra, properties = {**info.extra_json_schema}, _properties(schema)
    for name, field in _properties({"properties": extra.pop("properties", {})}).items():
        declared = properties.get(name)
        if name not in _OBJECT_FIELDS or not isinstance(declared, dict) or not isinstance(field, dict):
            raise ManifestError(
                f'@resource of {cls.__name__}: extra_json_schema has the property "{name}": it can have '
                f"{', '.join(_OBJECT_FIELDS)}, all others are fields of the class"
            )
        properties[name] = {**declared, **field}
    add_keywords(schema, extra, EXTRA_KEYWORDS, f"@resource of {cls.__name__}")


def _properties(schema: Schema) -> dict[str, JSONValue]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _deprecation(warning: str, cls: type[Object]) -> dict[str, JSONValue]:
    if not warning:
        return {"deprecated": True}
    if len(warning.encode()) > _MAX_WARNING_LENGTH or not warning.isprintable():
        raise ManifestError(
            f"{cls.__name__}: the warning in deprecated= must be one line of at most {_MAX_WARNING_LENGTH} printable "
            "bytes"
        )
    return {"deprecated": True, "deprecationWarning": warning}


def _subresources(info: ResourceInfo, whole: Schema, cls: type[Object]) -> dict[str, JSONValue]:
    unknown = info.subresources - {"status", "scale"}
    if unknown:
        raise ManifestError(
            f'{cls.__name__}: a custom resource cannot have the subresource "{min(unknown)}", only status and scale'
        )
    subresources: dict[str, JSONValue] = {}
    if info.has_status:
        subresources["status"] = {}
    if "scale" in info.subresources:
        if info.scale is None:
            raise ManifestError(f"{cls.__name__}: the subresource scale needs its paths: give scale=Scale(...)")
        subresources["scale"] = _scale(info.scale, whole, cls)
    return subresources


def _scale(scale: Scale, whole: Schema, cls: type[Object]) -> dict[str, JSONValue]:
    rendered: dict[str, JSONValue] = {}
    for keyword, name, text, roots, type_ in (
        ("specReplicasPath", "spec_replicas", scale.spec_replicas, ("spec",), "integer"),
        ("statusReplicasPath", "status_replicas", scale.status_replicas, ("status",), "integer"),
        ("labelSelectorPath", "selector", scale.selector, ("spec", "status"), "string"),
    ):
        if keyword == "labelSelectorPath" and not text:
            continue
        what = f"{cls.__name__}: {name} of Scale"
        path, found = _found(text, whole, what, plain=True)
        if path.steps[0] not in roots:
            raise ManifestError(f'{what}: "{text}" must begin with {" or ".join(f".{root}." for root in roots)}')
        if found.get("type", type_) != type_:
            raise ManifestError(f'{what}: "{text}" is of type {found["type"]}, but must be {type_}')
        rendered[keyword] = str(path)
    return rendered


def _selectable_fields(info: ResourceInfo, whole: Schema, cls: type[Object]) -> Iterator[JSONValue]:
    paths = info.selectable_fields
    if len(paths) > _MAX_SELECTABLE_FIELDS or len(set(paths)) < len(paths):
        raise ManifestError(
            f"{cls.__name__}: selectable_fields has {len(paths)} paths: at most {_MAX_SELECTABLE_FIELDS} different "
            "ones are possible"
        )
    for text in paths:
        what = f"{cls.__name__}: selectable field"
        path, found = _found(text, whole, what, plain=True)
        if path.steps[0] == "metadata" or found.get("type") not in ("string", "boolean", "integer"):
            raise ManifestError(f'{what}: "{text}" must be a string, boolean or integer outside of the metadata')
        yield {"jsonPath": str(path)}


def _found(text: str, whole: Schema, what: str, *, plain: bool = False) -> tuple[FieldPath, Schema]:
    """A path, and the schema of what it leads to. A `plain` one has nothing but names."""
    try:
        path = FieldPath(text)
        if plain:
            _ = path.names
        return path, schema_at(whole, path)
    except (FieldPathError, PathError) as error:
        raise ManifestError(f"{what}: {error}") from None


def _columns(info: ResourceInfo, whole: Schema, cls: type[Object]) -> Iterator[JSONValue]:
    columns = info.columns
    if info.age_column and all(column.name != _AGE.name for column in columns):
        columns = (*columns, _AGE)
    for column in columns:
        what = f'{cls.__name__}: column "{column.name}"'
        path, found = _found(column.path, whole, what)
        if not column.name:
            raise ManifestError(f"{what}: every column needs a name")
        if column.type not in ("", *_COLUMN_TYPES):
            raise ManifestError(f'{what}: the type "{column.type}" is none of {", ".join(_COLUMN_TYPES)}')
        if column.format not in ("", *_COLUMN_FORMATS):
            raise ManifestError(f'{what}: the format "{column.format}" is none of {", ".join(_COLUMN_FORMATS)}')
        rendered: dict[str, JSONValue] = {
            "name": column.name,
            "type": column.type or _column_type(found),
            "jsonPath": str(path),
        }
        if column.description:
            rendered["description"] = column.description
        if column.format:
            rendered["format"] = column.format
        if column.priority:
            rendered["priority"] = column.priority
        yield rendered


def _column_type(found: Schema) -> str:
    if found.get("format") == "date-time":
        return "date"
    type_ = found.get("type")
    return type_ if type_ in ("boolean", "integer", "number") and isinstance(type_, str) else "string"
