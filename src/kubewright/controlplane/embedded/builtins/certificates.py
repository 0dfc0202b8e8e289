"""Certificate signing requests: created by an authenticated user, approved and signed by others.

The spec never changes. The conditions that approve and deny are set by the endpoint `approval`, certificate
and failure by `status`; neither is ever removed.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
)
from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.embedded.builtins.metadata import validate_change
from kubewright.controlplane.embedded.builtins.names import dns_label, dns_subdomain, first_complaint, path_segment
from kubewright.controlplane.embedded.builtins.pem import check_certificates, check_request
from kubewright.controlplane.embedded.builtins.values import Errors, objects, one_of
from kubewright.controlplane.embedded.registry.resources import Strategy

_REQUESTER = ("username", "uid", "groups", "extra")
_LEGACY_SIGNER = "kubernetes.io/legacy-unknown"
_USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
_MIN_LIFETIME = 600
_DECISIONS = ("Approved", "Denied")
# Conditions that are true or are not there.
_FINAL = (*_DECISIONS, "Failed")
_MAX_DOMAIN_LENGTH, _MAX_SIGNER_LENGTH = 253, 253 + 1 + 253 + 1 + 63


# The spec


def _note_requester(request: JSONObject, user: UserInfo) -> None:
    """The requesting user is recorded by the server, whatever the body has."""
    spec = inside(request, "spec")
    for field in _REQUESTER:
        spec.pop(field, None)
    spec.update(user.document())


def _keep_spec(new: JSONObject, old: JSONObject) -> None:
    new["spec"] = mapping(old, "spec")


def _validate(request: JSONObject) -> Errors:
    spec = mapping(request, "spec")
    errors: Errors = []
    try:
        check_request(base64.b64decode(text(spec, "request")))
    except ValueError as error:
        errors.append(invalid_value("spec.request", text(spec, "request") or None, str(error)))
    usages = items(spec, "usages")
    if not usages:
        errors.append(required("spec.usages"))
    for index, usage in enumerate(usages):
        errors += one_of(f"spec.usages[{index}]", usage, _USAGES)
    errors += [
        duplicate(f"spec.usages[{index}]", usage) for index, usage in enumerate(usages) if usage in usages[:index]
    ]
    errors += _validate_signer_name(text(spec, "signerName"))
    seconds = spec.get("expirationSeconds")
    if isinstance(seconds, int) and seconds < _MIN_LIFETIME:
        why = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(invalid_value("spec.expirationSeconds", seconds, why))
    return errors


def _validate_signer_name(name: str) -> Errors:
    """A domain of at least two labels, a slash, and a path that has dots instead of slashes."""
    field = "spec.signerName"
    if not name:
        return [required(field)]
    if name == _LEGACY_SIGNER:
        return [invalid_value(field, name, "the legacy signerName is not allowed via this API version")]
    domain, *paths = name.split("/")
    if len(paths) != 1:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid_value(field, name, why)]
    errors: Errors = []
    if len(domain) > _MAX_DOMAIN_LENGTH:
        errors.append(_too_long(field, _MAX_DOMAIN_LENGTH))
    errors += _first_wrong_label(field, domain, dns_label)
    if "." not in domain:
        errors.append(invalid_value(field, domain, "should be a domain with at least two segments separated by dots"))
    errors += _first_wrong_label(field, paths[0], dns_subdomain)
    if len(name) > _MAX_SIGNER_LENGTH:
        errors.append(_too_long(field, _MAX_SIGNER_LENGTH))
    return errors


def _first_wrong_label(field: str, dotted: str, rule: Callable[[str], list[str]]) -> Errors:
    for label in dotted.split("."):
        if wrong := rule(label):
            return [invalid_value(field, dotted, f'validating label "{label}": {why}') for why in wrong]
    return []


def _too_long(field: str, limit: int) -> FieldError:
    return FieldError("FieldValueTooLong", field, None, f"may not be more than {limit} bytes")


def _fields(request: JSONObject) -> Mapping[str, str]:
    return {"spec.signerName": text(request, "spec", "signerName")}


# What became of it


def _conditions(request: JSONObject, type_: str) -> list[JSONObject]:
    return [condition for _, condition in objects(request, "status", "conditions") if text(condition, "type") == type_]


def _keep_decisions(new: JSONObject, old: JSONObject) -> None:
    """Conditions that approve or deny are as they were, unless some came or went, which is refused later."""
    for type_ in _DECISIONS:
        kept, sent = _conditions(old, type_), _conditions(new, type_)
        if len(kept) == len(sent):
            for before, after in zip(kept, sent, strict=True):
                after.clear()
                after.update(copied_object(before))


def _date_conditions(new: JSONObject, old: JSONObject, moment: JSONValue) -> None:
    """A condition without times is from now; since when it has its status may be known from before."""
    for _, condition in objects(new, "status", "conditions"):
        since = [
            time
            for before in _conditions(old, text(condition, "type"))
            if before.get("status") == condition.get("status") and (time := before.get("lastTransitionTime"))
        ]
        condition["lastUpdateTime"] = condition.get("lastUpdateTime") or moment
        condition["lastTransitionTime"] = condition.get("lastTransitionTime") or (since[0] if since else moment)


def _validate_conditions(new: JSONObject, old: JSONObject) -> Errors:
    errors: Errors = []
    seen: list[str] = []
    for index, condition in objects(new, "status", "conditions"):
        path, type_ = f"status.conditions[{index}]", text(condition, "type")
        if not type_:
            errors.append(required(f"{path}.type"))
        if not text(condition, "status"):
            errors.append(required(f"{path}.status"))
        else:
            known = ("True",) if type_ in _FINAL else ("False", "True", "Unknown")
            errors += one_of(f"{path}.status", condition.get("status"), known)
        if type_ in _DECISIONS and any(decision in seen for decision in _DECISIONS if decision != type_):
            why = "Approved and Denied conditions are mutually exclusive"
            errors.append(invalid_value("status.conditions", type_, why))
        if type_ in seen:
            errors.append(duplicate(f"{path}.type", type_))
        seen.append(type_)
    return errors + [
        forbidden_field("status.conditions", f'updates may not remove a condition of type "{type_}"')
        for type_ in _FINAL
        if len(_conditions(new, type_)) < len(_conditions(old, type_))
    ]


def _validate_approval(new: JSONObject, old: JSONObject) -> Errors:
    return [*_validate_conditions(new, old), *validate_change(new, old)]


def _validate_status(new: JSONObject, old: JSONObject) -> Errors:
    certificate, before = text(new, "status", "certificate"), text(old, "status", "certificate")
    errors = _validate_conditions(new, old)
    if certificate != before:
        try:
            check_certificates(base64.b64decode(certificate))
        except ValueError as error:
            errors.append(invalid_value("status.certificate", "<certificate data>", str(error)))
    errors += [
        forbidden_field("status.conditions", f'updates may not add a condition of type "{type_}"')
        for type_ in _DECISIONS
        if len(_conditions(new, type_)) > len(_conditions(old, type_))
    ]
    if certificate != before and before:
        errors.append(forbidden_field("status.certificate", "updates may not modify existing certificate content"))
    return errors


def certificate_signing_request_strategy(now: Callable[[], datetime]) -> Strategy:
    """The rules of certificate signing requests, whose conditions are dated."""

    def prepare_status(new: JSONObject, old: JSONObject) -> None:
        _keep_decisions(new, old)
        _date_conditions(new, old, _moment(now))

    return Strategy(
        note_requester=_note_requester,
        prepare_update=_keep_spec,
        prepare_status=prepare_status,
        validate=_validate,
        validate_status=_validate_status,
        validate_name=first_complaint(path_segment),
        selectable_fields=_fields,
        selectable=frozenset(_fields({})),
        reset={
            "": (("spec",), ("status",)),
            "status": (("spec",), ("status", "conditions")),
            "approval": (("spec",), ("status", "certificate")),
        },
    )


def approving(requests: Strategy, now: Callable[[], datetime]) -> Strategy:
    """The rules of the endpoint `approval`, which changes only the conditions."""

    def prepare_update(new: JSONObject, old: JSONObject) -> None:
        _date_conditions(new, old, _moment(now))
        conditions = items(new, "status", "conditions")
        _keep_spec(new, old)
        status = copied_object(mapping(old, "status"))
        status.pop("conditions", None)
        new["status"] = {"conditions": conditions, **status} if conditions else status

    return replace(requests, prepare_update=prepare_update, validate_update=_validate_approval)


def _moment(now: Callable[[], datetime]) -> str:
    return f"{now().astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
