"""The options of a write, which come in its query: checked before the body is read."""

from __future__ import annotations

from collections.abc import Iterator

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    forbidden_field,
    invalid,
    invalid_value,
    not_supported,
    required,
)
from kubewright.controlplane.embedded.rest.call import Call

APPLY = "application/apply-patch+yaml"
_MAX_MANAGER_LENGTH = 128
_KINDS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}


def check_options(call: Call, content_type: str) -> None:
    """Raises 422 for options of a create, update or patch that make no sense; other verbs have none of these."""
    kind = _KINDS.get(call.target.verb)
    if kind is None:
        return
    errors = list(_errors(call, content_type.partition(";")[0].strip()))
    if errors:
        raise invalid(kind, "meta.k8s.io", "", errors)


def _errors(call: Call, content_type: str) -> Iterator[FieldError]:
    query = call.query
    manager = query.text("fieldManager")
    if call.target.verb == "patch":
        if content_type == APPLY:
            if not manager:
                yield required("fieldManager", "is required for apply patch")
        elif query.text("force"):
            yield forbidden_field("force", "may not be specified for non-apply patch")
    if len(manager.encode()) > _MAX_MANAGER_LENGTH:
        yield FieldError("FieldValueTooLong", "fieldManager", None, f"may not be more than {_MAX_MANAGER_LENGTH} bytes")
    for position, character in enumerate(manager):
        if not character.isprintable():
            why = f"invalid character U+{ord(character):04X} (at position {position})"
            yield invalid_value("fieldManager", manager, why)
    yield from dry_run_errors(list(query.repeated.get("dryRun", ())))
    policy = query.text("fieldValidation")
    if policy not in ("", "Ignore", "Strict", "Warn"):
        yield not_supported("fieldValidation", policy, ["", "Ignore", "Strict", "Warn"])


def dry_run_errors(stages: list[JSONValue]) -> Iterator[FieldError]:
    """What is wrong with the stages of a dry run: there is but one."""
    if any(stage != "All" for stage in stages):
        yield not_supported("dryRun", stages, ["All"])
