"""Custom resource definitions as objects: their defaults, what is wrong with one, and what may change.

The real server moves what all versions have in common to the top of the spec before it validates it. That shows in the
paths of its errors (`spec.validation.openAPIV3Schema…`), so it is done here too.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apiextensions.conversion_rules import check_choice, check_conversion
from kubewright.controlplane.embedded.apiextensions.internal_form import shown_version
from kubewright.controlplane.embedded.apiextensions.names import condition_holds
from kubewright.controlplane.embedded.apiextensions.termination import begin_termination
from kubewright.controlplane.embedded.apiextensions.version_rules import (
    check_columns,
    check_deprecation,
    check_selectable,
    check_subresources,
    check_validation,
)
from kubewright.controlplane.embedded.apimachinery.document import copied, inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    invalid_value,
    required,
)
from kubewright.controlplane.embedded.builtins.names import dns_subdomain, old_dns_label
from kubewright.controlplane.embedded.registry.resources import Strategy
from kubewright.controlplane.embedded.schema.formats import recognized
from kubewright.controlplane.embedded.schema.structural import everywhere

_APPROVED = "api-approved.kubernetes.io"
_APPROVAL_RULES = "see https://github.com/kubernetes/enhancements/pull/1111"
# What is moved to the top when all versions agree on it: the field of a version, and its name at the top.
_SHARED = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}


def definition_strategy() -> Strategy:
    """The rules of the kind CustomResourceDefinition."""
    return Strategy(
        default=default_definition,
        prepare_create=prepare_create,
        prepare_update=prepare_update,
        prepare_status=prepare_status,
        validate=validate_definition,
        validate_update=validate_definition_update,
        validate_status=validate_definition_status,
        has_generation=True,
        unconditional_update=False,
        warnings=definition_warnings,
        begin_deletion=begin_termination,
    )


def default_definition(definition: JSONObject) -> None:
    """Fill in names, conversion and the port of a conversion webhook."""
    spec = inside(definition, "spec")
    names = inside(spec, "names")
    kind = text(names, "kind")
    if not text(names, "singular") and kind:
        names["singular"] = kind.lower()
    if not text(names, "listKind") and kind:
        names["listKind"] = f"{kind}List"
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}
    service = mapping(spec, "conversion", "webhook", "clientConfig", "service")
    if service and service.get("port") is None:
        service["port"] = 443
    if spec.get("preserveUnknownFields") is False:
        del spec["preserveUnknownFields"]
    stored = _storage_version(definition)
    if stored and not items(definition, "status", "storedVersions"):
        inside(definition, "status")["storedVersions"] = [stored]


def prepare_create(definition: JSONObject) -> None:
    """A new definition has no status but the version it stores."""
    stored = _storage_version(definition)
    definition["status"] = {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": [stored] if stored else None,
    }


def prepare_update(new: JSONObject, old: JSONObject) -> None:
    """The status stays, except that a new storage version joins the stored ones."""
    new["status"] = copied(mapping(old, "status"))
    status = inside(new, "status")
    stored = _storage_version(new)
    known = items(status, "storedVersions")
    if stored and stored not in known:
        status["storedVersions"] = [*known, stored]


def prepare_status(new: JSONObject, old: JSONObject) -> None:
    """Only the status changes."""
    new["spec"] = copied(mapping(old, "spec"))


def definition_warnings(new: JSONObject, old: JSONObject | None = None) -> list[str]:
    """Warnings for formats in the schemas that are not checked, unless they were there before."""
    before = set(_unrecognized(old)) if old is not None else set()
    return [f'unrecognized format "{name}"' for name in _unrecognized(new) if name not in before]


def _unrecognized(definition: JSONObject) -> Iterator[str]:
    spec = _merged(mapping(definition, "spec"))
    validations = [spec.get("validation"), *(mapping(version).get("schema") for version in items(spec, "versions"))]
    for validation in validations:
        for schema in everywhere(mapping(validation, "openAPIV3Schema")):
            format_ = text(schema, "format")
            if format_ and not recognized(format_, text(schema, "type")):
                yield format_


def _storage_version(definition: JSONObject) -> str:
    versions = items(definition, "spec", "versions")
    return next((text(version, "name") for version in versions if mapping(version).get("storage") is True), "")


def validate_definition(new: JSONObject) -> list[FieldError]:
    """What is wrong with a new definition."""
    return [*_validate(new, None)]


def validate_definition_update(new: JSONObject, old: JSONObject) -> list[FieldError]:
    """What is wrong with a changed definition. Group and plural never change, kind and scope not once established."""
    return [*_validate(new, old)]


def validate_definition_status(new: JSONObject, old: JSONObject) -> list[FieldError]:
    """What is wrong with a new status."""
    return [*_names(mapping(new, "status", "acceptedNames"), "status.acceptedNames")]


def _validate(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    spec = _merged(mapping(new, "spec"))
    group, plural = text(spec, "group"), text(spec, "names", "plural")
    name = text(new, "metadata", "name")
    if old is None and name != f"{plural}.{group}":
        yield invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    yield from _group(group)
    yield from check_choice("spec.scope", text(spec, "scope"), ("Cluster", "Namespaced"))
    yield from _versions(spec)
    yield from _spec_names(mapping(spec, "names"))
    yield from _shared(spec)
    yield from check_conversion(mapping(spec, "conversion"), old)
    if old is not None:
        yield from _immutable(
            mapping(new, "spec"), mapping(old, "spec"), established=condition_holds(old, "Established")
        )
    yield from _names(mapping(new, "status", "acceptedNames"), "status.acceptedNames")
    yield from _stored_versions(new)
    yield from _approval(new, old)
    if spec.get("preserveUnknownFields") is True and mapping(old, "spec").get("preserveUnknownFields") is not True:
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        yield invalid_value("spec.preserveUnknownFields", True, detail)


def _merged(spec: JSONObject) -> JSONObject:
    """The spec with what all versions share at its top, and no longer in the versions."""
    versions = [mapping(version) for version in items(spec, "versions")]
    merged = dict(spec)
    if not versions:
        return merged
    shared = [name for name in _SHARED if all(version.get(name) == versions[0].get(name) for version in versions)]
    for name in shared:
        merged[_SHARED[name]] = versions[0].get(name)
    merged["versions"] = [
        {name: value for name, value in version.items() if name not in shared} for version in versions
    ]
    return merged


def _group(group: str) -> Iterator[FieldError]:
    if not group:
        yield required("spec.group")
    elif wrong := dns_subdomain(group):
        yield invalid_value("spec.group", group, ",".join(wrong))
    elif "." not in group:
        yield invalid_value("spec.group", group, "should be a domain with at least one dot")


def _versions(spec: JSONObject) -> Iterator[FieldError]:
    versions = [mapping(version) for version in items(spec, "versions")]
    if not isinstance(mapping(spec, "validation").get("openAPIV3Schema"), dict):
        for index, version in enumerate(versions):
            if not isinstance(mapping(version, "schema").get("openAPIV3Schema"), dict):
                yield required(f"spec.versions[{index}].schema.openAPIV3Schema")
    if spec.get("preserveUnknownFields") is True and _has_defaults(spec):
        detail = "must be false in order to use defaults in the schema"
        yield invalid_value("spec.preserveUnknownFields", True, detail)
    separate = any(version.get("subresources") is not None for version in versions)
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        if wrong := old_dns_label(text(version, "name")):
            yield invalid_value(f"{path}.name", text(version, "name"), ",".join(wrong))
        subresources = version.get("subresources") if separate else spec.get("subresources")
        yield from check_deprecation(version, path)
        has_status = mapping(subresources).get("status") is not None
        yield from check_validation(version.get("schema"), f"{path}.schema", has_status=has_status)
        yield from check_subresources(version.get("subresources"), f"{path}.subresources")
        yield from check_columns(items(version, "additionalPrinterColumns"), f"{path}.additionalPrinterColumns")
        yield from _selectable(version, version.get("schema"), path)
    listed: JSONValue = [shown_version(version) for version in versions] if spec.get("versions") is not None else None
    if len({text(version, "name") for version in versions}) < len(versions):
        yield invalid_value("spec.versions", listed, "must contain unique version names")
    if sum(version.get("storage") is True for version in versions) != 1:
        yield invalid_value("spec.versions", listed, "must have exactly one version marked as storage version")
    # The name of the first version is at the top as well.
    if versions and (wrong := old_dns_label(text(versions[0], "name"))):
        yield invalid_value("spec.version", text(versions[0], "name"), ",".join(wrong))


def _has_defaults(spec: JSONObject) -> bool:
    validations = [spec.get("validation"), *(mapping(version).get("schema") for version in items(spec, "versions"))]
    return any(
        schema.get("default") is not None
        for validation in validations
        for schema in everywhere(mapping(validation, "openAPIV3Schema"))
    )


def _selectable(holder: JSONObject, validation: JSONValue, path: str) -> Iterator[FieldError]:
    fields = items(holder, "selectableFields")
    if not fields:
        return
    schema = mapping(validation).get("openAPIV3Schema")
    if isinstance(schema, dict):
        yield from check_selectable(fields, schema, f"{path}.selectableFields")
    else:
        detail = (
            "may only be set when validations.schema is included"
            if path == "spec"
            else "may only be set when `version.schema.openAPIV3Schema` is not included"
        )
        yield invalid_value(f"{path}.selectableFields", "", detail)


def _spec_names(names: JSONObject) -> Iterator[FieldError]:
    for name in ("plural", "singular", "kind", "listKind"):
        if not text(names, name):
            yield required(f"spec.names.{name}")
    yield from _names(names, "spec.names")


def _names(names: JSONObject, path: str) -> Iterator[FieldError]:
    for name in ("plural", "singular"):
        value = text(names, name)
        if value and (wrong := old_dns_label(value)):
            yield invalid_value(f"{path}.{name}", value, ",".join(wrong))
    for name in ("kind", "listKind"):
        value = text(names, name)
        if value and (wrong := old_dns_label(value.lower())):
            detail = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
            yield invalid_value(f"{path}.{name}", value, detail)
    yield from _labels(names, "shortNames", path)
    if text(names, "kind") and text(names, "kind") == text(names, "listKind"):
        yield invalid_value(f"{path}.listKind", text(names, "listKind"), "kind and listKind may not be the same")
    yield from _labels(names, "categories", path)


def _labels(names: JSONObject, field: str, path: str) -> Iterator[FieldError]:
    for index, value in enumerate(items(names, field)):
        if wrong := old_dns_label(str(value)):
            yield invalid_value(f"{path}.{field}[{index}]", value, ",".join(wrong))


def _shared(spec: JSONObject) -> Iterator[FieldError]:
    """What the versions have in common, as it stands at the top."""
    subresources = [spec.get("subresources"), *(mapping(one).get("subresources") for one in items(spec, "versions"))]
    has_status = any(mapping(each).get("status") is not None for each in subresources)
    yield from check_validation(spec.get("validation"), "spec.validation", has_status=has_status)
    yield from check_subresources(spec.get("subresources"), "spec.subresources")
    yield from check_columns(items(spec, "additionalPrinterColumns"), "spec.additionalPrinterColumns")
    yield from _selectable(spec, spec.get("validation"), "spec")


def _immutable(new: JSONObject, old: JSONObject, *, established: bool) -> Iterator[FieldError]:
    paths: list[tuple[str, ...]] = [("scope",), ("names", "kind")] if established else []
    for path in (*paths, ("group",), ("names", "plural")):
        value = text(new, *path)
        if value != text(old, *path):
            yield invalid_value(".".join(("spec", *path)), value, "field is immutable")


def _stored_versions(definition: JSONObject) -> Iterator[FieldError]:
    path = "status.storedVersions"
    stored = items(definition, "status", "storedVersions")
    if not stored:
        yield invalid_value(
            path, mapping(definition, "status").get("storedVersions"), "must have at least one stored version"
        )
        return
    unseen = {str(version): index for index, version in enumerate(stored)}
    for version in items(definition, "spec", "versions"):
        name = text(version, "name")
        if mapping(version).get("storage") is True and name not in unseen:
            yield invalid_value(path, stored, f"must have the storage version {name}")
        unseen.pop(name, None)
    for name, index in unseen.items():
        detail = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
            f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
            "status.storedVersions"
        )
        yield invalid_value(f"{path}[{index}]", name, detail)


def _approval(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    group = text(new, "spec", "group")
    if not group.endswith((".k8s.io", ".kubernetes.io")) and group not in ("k8s.io", "kubernetes.io"):
        return
    state = _approval_state(new)
    if state in ("approved", "bypassed") or (old is not None and _approval_state(old) == state):
        return
    path = f"metadata.annotations[{_APPROVED}]"
    if state == "missing":
        yield required(path, f'protected groups must have approval annotation "{_APPROVED}", {_APPROVAL_RULES}')
    else:
        detail = (
            f'protected groups must have approval annotation "{_APPROVED}" with either a URL or a reason starting '
            f'with "unapproved", {_APPROVAL_RULES}'
        )
        yield invalid_value(path, _approval_text(new), detail)


def _approval_text(definition: JSONObject) -> str:
    return text(definition, "metadata", "annotations", _APPROVED)


def _approval_state(definition: JSONObject) -> str:
    approval = _approval_text(definition)
    if not approval:
        return "missing"
    if approval.startswith("unapproved"):
        return "bypassed"
    parts = urlsplit(approval)
    return "approved" if parts.scheme and parts.netloc else "invalid"
