"""Config maps, secrets and service accounts, and the limits of a namespace."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.quantity import Quantity
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
)
from kubewright.controlplane.embedded.builtins.container_resources import (
    quota_resource_name,
    resource_amount,
    resource_name,
)
from kubewright.controlplane.embedded.builtins.metadata import validate_content
from kubewright.controlplane.embedded.builtins.names import config_key, qualified_name
from kubewright.controlplane.embedded.builtins.values import Errors, matching, objects, quantity, unchanged
from kubewright.controlplane.embedded.registry.resources import Strategy

_MAX_SIZE = 1024 * 1024
_LOCKED = "field is immutable when `immutable` is set"
_ACCOUNT = "kubernetes.io/service-account.name"
_SCOPES = (
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
)


def _too_large(path: str) -> FieldError:
    return FieldError("FieldValueTooLong", path, None, f"may not be more than {_MAX_SIZE} bytes")


def _decoded_size(value: JSONValue) -> int:
    written = str(value)
    return len(written) * 3 // 4 - written[-2:].count("=")


def _locked(new: JSONObject, old: JSONObject, *fields: str) -> Errors:
    """Once `immutable` is true, it stays true, and these fields stay as they are."""
    if old.get("immutable") is not True:
        return []
    errors = [] if new.get("immutable") is True else [forbidden_field("immutable", _LOCKED)]
    return errors + [forbidden_field(field, _LOCKED) for field in fields if new.get(field) != old.get(field)]


def _validate_config_map(config_map: JSONObject) -> Errors:
    errors: Errors = []
    data, binary = mapping(config_map, "data"), mapping(config_map, "binaryData")
    size = 0
    for key, value in data.items():
        errors += matching(f"data[{key}]", key, config_key)
        if key in binary:
            errors.append(invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData"))
        size += len(str(value).encode())
    for key, value in binary.items():
        errors += matching(f"binaryData[{key}]", key, config_key)
        size += _decoded_size(value)
    return [*errors, _too_large("[]")] if size > _MAX_SIZE else errors


CONFIG_MAP = Strategy(
    validate=_validate_config_map,
    validate_update=lambda new, old: [
        *_locked(new, old, "data", "binaryData"),
        *validate_content(new),
        *_validate_config_map(new),
    ],
    locked_maps=("binaryData",),
)


def _validate_secret(secret: JSONObject) -> Errors:
    data, kind = mapping(secret, "data"), text(secret, "type")
    errors: Errors = []
    for key in data:
        errors += matching(f"data[{key}]", key, config_key)
    if sum(map(_decoded_size, data.values())) > _MAX_SIZE:
        errors.append(_too_large("data"))
    missing: list[str] = []
    if kind == "kubernetes.io/service-account-token":
        if not text(secret, "metadata", "annotations", _ACCOUNT):
            errors.append(required(f"metadata.annotations[{_ACCOUNT}]"))
    elif kind == "kubernetes.io/tls":
        missing = [key for key in ("tls.crt", "tls.key") if key not in data]
    elif kind == "kubernetes.io/basic-auth":
        missing = [] if "username" in data or "password" in data else ["username", "password"]
    elif kind == "kubernetes.io/ssh-auth":
        missing = [] if data.get("ssh-privatekey") else ["ssh-privatekey"]
    elif kind == "kubernetes.io/dockerconfigjson":
        errors += _json_object(data, ".dockerconfigjson")
    elif kind == "kubernetes.io/dockercfg":
        errors += _json_object(data, ".dockercfg")
    return errors + [required(f"data[{key}]") for key in missing]


def _json_object(data: JSONObject, key: str) -> Errors:
    path = f"data[{key}]"
    if key not in data:
        return [required(path)]
    redacted = "<secret contents redacted>"
    try:
        content = base64.b64decode(str(data[key])).decode()
        parsed = json.loads(content)
    except (binascii.Error, UnicodeDecodeError, json.JSONDecodeError):
        content = base64.b64decode(str(data[key])).decode(errors="replace").strip()
        complaint = "unexpected end of JSON input"
        if content and content[0] not in '{["-0123456789tfn':
            complaint = f"invalid character '{content[0]}' looking for beginning of value"
        return [invalid_value(path, redacted, complaint)]
    if not isinstance(parsed, dict):
        kind = {list: "array", str: "string", bool: "bool"}.get(type(parsed), "number")
        complaint = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        return [invalid_value(path, redacted, complaint)]
    return []


def _validate_secret_update(new: JSONObject, old: JSONObject) -> Errors:
    errors = unchanged("type", new.get("type"), old.get("type"))
    return [*errors, *_locked(new, old, "data"), *validate_content(new), *_validate_secret(new)]


def _fields(secret: JSONObject) -> Mapping[str, str]:
    return {"type": text(secret, "type")}


SECRET = Strategy(
    validate=_validate_secret,
    validate_update=_validate_secret_update,
    locked_maps=("data",),
    selectable_fields=_fields,
    selectable=frozenset(("type",)),
)

SERVICE_ACCOUNT = Strategy(returns_deleted_object=True)


def _validate_quota(quota: JSONObject) -> Errors:
    errors: Errors = []
    for name, amount in mapping(quota, "spec", "hard").items():
        errors += quota_resource_name(name, f"spec.hard[{name}]")
        errors += resource_amount(name, amount, f"spec.hard[{name}]")
    scopes = items(quota, "spec", "scopes")
    errors += [invalid_value("spec.scopes", scopes, "unsupported scope") for scope in scopes if scope not in _SCOPES]
    for scope in ("Terminating", "BestEffort"):
        if scope in scopes and f"Not{scope}" in scopes:
            errors.append(invalid_value("spec.scopes", scopes, "conflicting scopes"))
    return errors


def _validate_quota_update(new: JSONObject, old: JSONObject) -> Errors:
    scopes = items(new, "spec", "scopes")
    errors = _validate_quota(new)
    if {str(scope) for scope in scopes} != {str(scope) for scope in items(old, "spec", "scopes")}:
        errors.append(invalid_value("spec.scopes", scopes or None, "field is immutable"))
    return errors


RESOURCE_QUOTA = Strategy(validate=_validate_quota, validate_update=_validate_quota_update, returns_deleted_object=True)


def _validate_limits(limits: JSONObject) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, limit in objects(limits, "spec", "limits"):
        path = f"spec.limits[{index}]"
        kind = text(limit, "type")
        errors += matching(f"{path}.type", kind, qualified_name)
        if kind in seen:
            errors.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
        amounts: dict[str, dict[str, Quantity]] = {}
        for field in ("max", "min", "default", "defaultRequest"):
            given = mapping(limit, field)
            if kind == "Pod" and field.startswith("default"):
                if given:
                    errors.append(forbidden_field(f"{path}.{field}", "may not be specified when `type` is 'Pod'"))
                given = {}
            for name in given:
                errors += resource_name(name, f"{path}.{field}[{name}]")
            amounts[field] = {name: quantity(amount) for name, amount in given.items()}
        errors += _ordered(amounts, path)
    return errors


# Which amount may not be greater than which: the field and value that are complained about, and how they are called.
_ORDER = (
    ("min", "max", "min", "min", "min", "max"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest", "min", "default request"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest", "default request", "max"),
    ("defaultRequest", "default", "defaultRequest", "defaultRequest", "default request", "default limit"),
    ("min", "default", "default", "min", "min", "default"),
    ("default", "max", "default", "max", "default", "max"),
)


def _ordered(amounts: Mapping[str, Mapping[str, Quantity]], path: str) -> Errors:
    errors: Errors = []
    for name in dict.fromkeys(name for given in amounts.values() for name in given):
        for low, high, field, shown, low_words, high_words in _ORDER:
            small, large = amounts[low].get(name), amounts[high].get(name)
            if small is not None and large is not None and small > large:
                complaint = f"{low_words} value {small} is greater than {high_words} value {large}"
                errors.append(invalid_value(f"{path}.{field}[{name}]", str(amounts[shown][name]), complaint))
    return errors


LIMIT_RANGE = Strategy(
    validate=_validate_limits,
    validate_update=lambda new, old: _validate_limits(new),
    create_on_update=True,
)
