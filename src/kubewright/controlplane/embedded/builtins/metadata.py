"""The rules of `metadata`, the same for every kind, custom ones too."""

from __future__ import annotations

from collections.abc import Callable

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.apimachinery.status import FieldError, forbidden_field, invalid_value, required
from kubewright.controlplane.embedded.builtins.names import (
    dns_label,
    dns_subdomain,
    first_complaint,
    label_value,
    qualified_name,
)
from kubewright.controlplane.embedded.builtins.values import StructError

IMMUTABLE = "field is immutable"
_ANNOTATIONS_LIMIT = 256 * 1024
_FOREGROUND, _ORPHAN = "foregroundDeletion", "orphan"
STANDARD_FINALIZERS = ("kubernetes", _ORPHAN, _FOREGROUND)
NOT_QUALIFIED = "name is neither a standard finalizer name nor is it fully qualified"
_SUBDOMAIN = first_complaint(dns_subdomain)


def validate_metadata(
    obj: JSONObject,
    *,
    namespaced: bool,
    validate_name: Callable[[str], str | None] | None = None,
    path: str = "metadata",
) -> list[FieldError]:
    """What is wrong with an object's metadata on creation; its name has been generated already.

    `validate_name` is a strategy's; without one, names are DNS subdomains.
    """
    metadata = mapping(obj, "metadata")
    rule = validate_name or _SUBDOMAIN
    errors: list[FieldError] = []
    prefix = text(metadata, "generateName")
    if prefix and (complaint := rule(_masked(prefix))):
        errors.append(invalid_value(f"{path}.generateName", prefix, complaint))
    name = text(metadata, "name")
    if not name:
        errors.append(required(f"{path}.name", "name or generateName is required"))
    elif complaint := rule(name):
        errors.append(invalid_value(f"{path}.name", name, complaint))
    namespace = text(metadata, "namespace")
    if not namespaced:
        if namespace:
            errors.append(forbidden_field(f"{path}.namespace", "not allowed on this type"))
    elif not namespace:
        errors.append(required(f"{path}.namespace"))
    else:
        errors += [invalid_value(f"{path}.namespace", namespace, wrong) for wrong in dns_label(namespace)]
    return errors + _content(metadata, path)


def validate_metadata_update(new: JSONObject, old: JSONObject, *, path: str = "metadata") -> list[FieldError]:
    """What is wrong with a change of metadata: by the rules of a creation, then by `validate_metadata_change`."""
    metadata = mapping(new, "metadata")
    errors = _changed_content(new, old, path)
    if metadata.get("finalizers") != mapping(old, "metadata").get("finalizers"):
        errors += _finalizers(items(metadata, "finalizers"), f"{path}.finalizers")
    return errors + validate_metadata_change(new, old, path=path)


def validate_metadata_change(new: JSONObject, old: JSONObject, *, path: str = "metadata") -> list[FieldError]:
    """The rules of an update. Each kind has them among its own as well, so that one mistake has several causes.

    That updates carry a resourceVersion is the handlers' rule.
    """
    return _kept(mapping(new, "metadata"), mapping(old, "metadata"), path) + _changed_content(new, old, path)


def _changed_content(new: JSONObject, old: JSONObject, path: str) -> list[FieldError]:
    """What has not changed was right when it came."""
    metadata, before = mapping(new, "metadata"), mapping(old, "metadata")
    errors: list[FieldError] = []
    if metadata.get("labels") != before.get("labels"):
        errors += validate_labels(mapping(metadata, "labels"), f"{path}.labels")
    if metadata.get("annotations") != before.get("annotations"):
        errors += validate_annotations(mapping(metadata, "annotations"), f"{path}.annotations")
    if metadata.get("ownerReferences") != before.get("ownerReferences"):
        errors += _owners(items(metadata, "ownerReferences"), f"{path}.ownerReferences")
    return errors


def validate_content(obj: JSONObject, *, path: str = "metadata") -> list[FieldError]:
    """What is wrong with labels, annotations, owners and finalizers: rules that some kinds repeat among their own."""
    return [*_content(mapping(obj, "metadata"), path), *validate_finalizer_domains(obj)]


def _content(metadata: JSONObject, path: str) -> list[FieldError]:
    return [
        *validate_labels(mapping(metadata, "labels"), f"{path}.labels"),
        *validate_annotations(mapping(metadata, "annotations"), f"{path}.annotations"),
        *_owners(items(metadata, "ownerReferences"), f"{path}.ownerReferences"),
        *_finalizers(items(metadata, "finalizers"), f"{path}.finalizers"),
    ]


def validate_finalizer_domains(obj: JSONObject) -> list[FieldError]:
    """Beyond what holds for every object, finalizers of built-in kinds need a domain, or are Kubernetes' own."""
    return [
        invalid_value(f"metadata.finalizers[{index}]", finalizer, NOT_QUALIFIED)
        for index, finalizer in enumerate(items(obj, "metadata", "finalizers"))
        if "/" not in str(finalizer) and finalizer not in STANDARD_FINALIZERS
    ]


def finalizer_warnings(new: JSONObject, old: JSONObject | None) -> list[str]:
    """Warnings about new finalizers of custom resources that have no domain, which is allowed."""
    known = items(old, "metadata", "finalizers")
    added = {str(finalizer) for finalizer in items(new, "metadata", "finalizers") if finalizer not in known}
    return [
        f"metadata.finalizers: {quoted(finalizer)}: prefer a domain-qualified finalizer name"
        f"{' including a path (/)' if '.' in finalizer else ''} to avoid accidental conflicts with other finalizer "
        "writers"
        for finalizer in sorted(added)
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS
    ]


def validate_change(new: JSONObject, old: JSONObject) -> list[FieldError]:
    """The rules of an update for a built-in kind."""
    same = mapping(new, "metadata").get("finalizers") == mapping(old, "metadata").get("finalizers")
    return [*validate_metadata_change(new, old), *([] if same else validate_finalizer_domains(new))]


def _kept(metadata: JSONObject, before: JSONObject, path: str) -> list[FieldError]:
    """What identifies an object stays, and its finalizers only become fewer once it is being deleted."""
    errors: list[FieldError] = []
    if before.get("deletionTimestamp") is not None:
        known = items(before, "finalizers")
        added = sorted({str(finalizer) for finalizer in items(metadata, "finalizers") if finalizer not in known})
        if added:
            shown = ", ".join(f'"{finalizer}"' for finalizer in added)
            text_ = "no new finalizers can be added if the object is being deleted, found new finalizers []string{%s}"
            errors.append(forbidden_field(f"{path}.finalizers", text_ % shown))
    for field in (
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ):
        value = metadata.get(field)
        if value != before.get(field):
            absent: JSONValue = "" if field in ("name", "namespace", "uid") else None
            errors.append(invalid_value(f"{path}.{field}", absent if value is None else value, IMMUTABLE))
    return errors


def _masked(prefix: str) -> str:
    """A prefix as rules see it: what will be appended makes a trailing dash harmless."""
    return f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def validate_labels(labels: JSONObject, path: str) -> list[FieldError]:
    """Keys are qualified names, values short and plain."""
    errors = []
    for key, value in labels.items():
        errors += [invalid_value(path, key, wrong) for wrong in qualified_name(key)]
        errors += [invalid_value(path, value, wrong) for wrong in label_value(str(value))]
    return errors


def validate_annotations(annotations: JSONObject, path: str) -> list[FieldError]:
    """Keys are qualified names in any case, and all together are not too large."""
    errors = []
    size = 0
    for key, value in annotations.items():
        errors += [invalid_value(path, key, wrong) for wrong in qualified_name(key.lower())]
        size += len(key.encode()) + len(str(value).encode())
    if size > _ANNOTATIONS_LIMIT:
        errors.append(FieldError("FieldValueTooLong", path, None, f"may not be more than {_ANNOTATIONS_LIMIT} bytes"))
    return errors


def _owners(owners: list[JSONValue], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    controller = ""
    for owner in owners:
        api_version, kind = text(owner, "apiVersion"), text(owner, "kind")
        if not api_version.rpartition("/")[2] or api_version.count("/") > 1:
            errors.append(invalid_value(f"{path}.apiVersion", api_version, "version must not be empty"))
        for field in ("kind", "name", "uid"):
            if not text(owner, field):
                errors.append(invalid_value(f"{path}.{field}", "", "must not be empty"))
        if (api_version, kind) == ("v1", "Event"):
            complaint = "/v1, Kind=Event is disallowed from being an owner"
            errors.append(StructError("FieldValueInvalid", path, owner, complaint))
        if mapping(owner).get("controller") is True:
            this = f"{kind}/{text(owner, 'name')}"
            if controller:
                complaint = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {this}"
                )
                errors.append(StructError("FieldValueInvalid", path, owners, complaint))
            else:
                controller = this
    return errors


def _finalizers(finalizers: list[JSONValue], path: str) -> list[FieldError]:
    errors = [
        invalid_value(path, finalizer, wrong) for finalizer in finalizers for wrong in qualified_name(str(finalizer))
    ]
    if _FOREGROUND in finalizers and _ORPHAN in finalizers:
        complaint = f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set"
        errors.append(invalid_value(path, finalizers, complaint))
    return errors
