"""The rules of a pod's volumes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import mapping, text
from kubewright.controlplane.embedded.apimachinery.status import duplicate, forbidden_field, invalid_value, required
from kubewright.controlplane.embedded.builtins.field_references import (
    CONTAINER_RESOURCES,
    VOLUME_FIELDS,
    validate_field_reference,
    validate_resource_reference,
)
from kubewright.controlplane.embedded.builtins.names import dns_label, qualified_name
from kubewright.controlplane.embedded.builtins.values import (
    Errors,
    inward_path,
    local_unreserved_path,
    matching,
    number,
    objects,
    one_of,
    present,
    quantity,
)

_HIGHEST_MODE = 0o777
_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)


def validate_volumes(spec: JSONObject, path: str) -> tuple[Mapping[str, JSONObject], Errors]:
    """The volumes of a pod by name, and what is wrong with them."""
    errors: Errors = []
    found: dict[str, JSONObject] = {}
    for index, volume in objects(spec, "volumes"):
        where = f"{path}[{index}]"
        name = text(volume, "name")
        wrong = _source(volume, where)
        if not name:
            wrong.append(required(f"{where}.name"))
        else:
            wrong += matching(f"{where}.name", name, dns_label)
            if name in found:
                wrong.append(duplicate(f"{where}.name", name))
        if not wrong:
            found[name] = volume
        errors += wrong
    return found, errors


def _source(volume: JSONObject, path: str) -> Errors:
    """Exactly one source is given; those Kubernetes still has plugins for are validated."""
    errors: Errors = []
    given = [kind for kind in (*_SOURCES, *volume) if kind in volume and kind != "name"]
    for position, kind in enumerate(dict.fromkeys(given)):
        where = f"{path}.{kind}"
        if position:
            errors.append(forbidden_field(where, "may not specify more than 1 volume type"))
        elif kind in _SOURCES:
            errors += _SOURCES[kind](mapping(volume, kind), where)
    if not given:
        errors.append(required(path, "must specify a volume type"))
    return errors


def _empty_dir(source: JSONObject, path: str) -> Errors:
    if quantity(source.get("sizeLimit")) < quantity(0):
        return [forbidden_field(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def host_path(source: JSONObject, path: str) -> Errors:
    """A path of the node, without `..`, and what is expected there."""
    path_on_host = text(source, "path")
    if not path_on_host:
        return [required(f"{path}.path")]
    errors = inward_path(f"{path}.path", path_on_host)
    return errors + one_of(f"{path}.type", source.get("type", ""), _HOST_PATH_TYPES)


def _mode(source: JSONObject, field: str, path: str) -> Errors:
    mode = source.get(field)
    if mode is not None and not 0 <= number(mode) <= _HIGHEST_MODE:
        return [invalid_value(f"{path}.{field}", mode, _MODE)]
    return []


def _key_to_path(item: JSONObject, path: str) -> Errors:
    errors = [] if text(item, "key") else [required(f"{path}.key")]
    errors += present(f"{path}.path", text(item, "path"), lambda _: [])
    if text(item, "path"):
        errors += local_unreserved_path(f"{path}.path", text(item, "path"))
    return errors + _mode(item, "mode", path)


def _keys(source: JSONObject, path: str) -> Errors:
    return [error for index, item in objects(source, "items") for error in _key_to_path(item, f"{path}.items[{index}]")]


def _secret(source: JSONObject, path: str) -> Errors:
    errors = [] if text(source, "secretName") else [required(f"{path}.secretName")]
    return errors + _mode(source, "defaultMode", path) + _keys(source, path)


def _config_map(source: JSONObject, path: str) -> Errors:
    errors = [] if text(source, "name") else [required(f"{path}.name")]
    return errors + _mode(source, "defaultMode", path) + _keys(source, path)


def _claim(source: JSONObject, path: str) -> Errors:
    return [] if text(source, "claimName") else [required(f"{path}.claimName")]


def nfs(source: JSONObject, path: str) -> Errors:
    """A server and an absolute path on it."""
    errors = [required(f"{path}.{field}") for field in ("server", "path") if not text(source, field)]
    if not text(source, "path").startswith("/"):
        errors.append(invalid_value(f"{path}.path", text(source, "path"), "must be an absolute path"))
    return errors


def _downward_file(file: JSONObject, path: str) -> Errors:
    errors: Errors = []
    if not text(file, "path"):
        errors.append(required(f"{path}.path"))
    else:
        errors += local_unreserved_path(f"{path}.path", text(file, "path"))
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if isinstance(field, dict):
        errors += validate_field_reference(field, VOLUME_FIELDS, f"{path}.fieldRef")
        if resource is not None:
            complaint = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid_value(path, "resource", complaint))
    elif isinstance(resource, dict):
        errors += validate_resource_reference(resource, CONTAINER_RESOURCES, f"{path}.resourceFieldRef")
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + _mode(file, "mode", path)


def _downward(source: JSONObject, path: str) -> Errors:
    errors = _mode(source, "defaultMode", path)
    for _, file in objects(source, "items"):
        errors += _downward_file(file, path)
    return errors


def _projected(source: JSONObject, path: str) -> Errors:
    errors = _mode(source, "defaultMode", path)
    for index, part in objects(source, "sources"):
        where = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            if isinstance(inner := part.get(kind), dict):
                if not text(inner, "name"):
                    errors.append(required(f"{where}.{kind}.name"))
                errors += _keys(inner, f"{where}.{kind}")
        for _, file in objects(part, "downwardAPI", "items"):
            errors += _downward_file(file, f"{where}.downwardAPI")
        if isinstance(token := part.get("serviceAccountToken"), dict):
            seconds = number(token.get("expirationSeconds"))
            field = f"{where}.serviceAccountToken.expirationSeconds"
            if seconds < 600:
                errors.append(invalid_value(field, seconds, "may not specify a duration less than 10 minutes"))
            if seconds > 1 << 32:
                errors.append(invalid_value(field, seconds, "may not specify a duration larger than 2^32 seconds"))
            if not text(token, "path"):
                errors.append(required(f"{path}.path"))
            else:
                errors += local_unreserved_path(f"{path}.path", text(token, "path"))
        if len(part) > 1:
            errors.append(forbidden_field(where, "may not specify more than 1 volume type per source"))
    return errors


def csi_driver(source: JSONObject, path: str) -> Errors:
    """The name of a CSI driver is a short domain."""
    return present(f"{path}.driver", text(source, "driver"), qualified_name)


def _ephemeral(source: JSONObject, path: str) -> Errors:
    return [] if source.get("volumeClaimTemplate") else [required(f"{path}.volumeClaimTemplate")]


def _iscsi(source: JSONObject, path: str) -> Errors:
    return [required(f"{path}.{field}") for field in ("targetPortal", "iqn") if not text(source, field)]


def local(source: JSONObject, path: str) -> Errors:
    """A path of one node."""
    return inward_path(f"{path}.path", text(source, "path")) if text(source, "path") else [required(f"{path}.path")]


def _image(source: JSONObject, path: str) -> Errors:
    errors = one_of(f"{path}.pullPolicy", source.get("pullPolicy"), ("Always", "IfNotPresent", "Never"))
    return errors if text(source, "reference") else [required(f"{path}.reference"), *errors]


# In the order in which kube-apiserver checks them: the first counts, the others are too many.
_SOURCES: Mapping[str, Callable[[JSONObject, str], Errors]] = {
    "emptyDir": _empty_dir,
    "hostPath": host_path,
    "secret": _secret,
    "nfs": nfs,
    "iscsi": _iscsi,
    "persistentVolumeClaim": _claim,
    "configMap": _config_map,
    "downwardAPI": _downward,
    "projected": _projected,
    "csi": csi_driver,
    "ephemeral": _ephemeral,
    "image": _image,
}
