"""Fields a kind does not have: dropped, and reported as `fieldValidation` requires."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import copied_object
from kubewright.controlplane.embedded.apimachinery.go_values import html_safe
from kubewright.controlplane.embedded.apimachinery.repetitions import unknown_and_repeated_fields
from kubewright.controlplane.embedded.apimachinery.status import StatusError, bad_request, invalid, invalid_value
from kubewright.controlplane.embedded.apimachinery.structure import Structure
from kubewright.controlplane.embedded.rest.call import Call

_MAX_SHOWN = 100
"""How many fields of a built-in kind the real server complains about at most."""


def check_fields(
    call: Call, obj: JSONObject, complaints: Sequence[str], *, sent: bytes = b"", patched: str = ""
) -> None:
    """Drop unknown fields from `obj`. Strict refuses them, Warn (the default) reports them, Ignore is silent.

    `complaints` are those about the body itself, which is `sent` where it is the object. `patched` shows what a patch
    made of the stored object: then the patch is what is wrong.
    """
    policy = call.query.text("fieldValidation") or "Warn"
    found: list[str] = []
    if call.resource.strategy.prune is not None:
        # With its kind, which a complaint about its metadata names.
        obj |= {"apiVersion": call.resource.gvk.api_version, "kind": call.resource.gvk.kind}
        found = call.resource.strategy.prune(obj)
        del obj["apiVersion"], obj["kind"]
    else:
        drop_unknown(obj, call.resource.structure, "", found)
    if call.resource.custom or not sent or not any(message.startswith("duplicate") for message in complaints):
        complaints = [*complaints, *(f'unknown field "{path}"' for path in found)]
    else:
        complaints = unknown_and_repeated_fields(sent, call.resource.structure)
    if not complaints or policy == "Ignore":
        return
    if not call.resource.custom:
        complaints = complaints[:_MAX_SHOWN]
        if not patched:
            # What is of a wrong type is not even read.
            call.resource.strategy.default(copied_object(obj))
    if policy == "Warn":
        call.warnings += complaints
        return
    gvk = call.resource.gvk
    message = f"strict decoding error: {', '.join(_gathered(complaints))}"
    if patched:
        raise undecodable_patch(patched, message)
    raise bad_request(f'{gvk.kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}: {message}')


def _gathered(complaints: Sequence[str]) -> list[str]:
    """Complaints about lines are those of a reader of YAML, and come in one."""
    lines = [complaint for complaint in complaints if complaint.startswith("line ")]
    others = [complaint for complaint in complaints if complaint not in lines]
    return ["\n  ".join(["yaml: unmarshal errors:", *lines]), *others] if lines else others


def undecodable_patch(patched: str, why: str) -> StatusError:
    """422: what a patch made of an object is no object of its kind."""
    return invalid("", "", "", [invalid_value("patch", patched, why)])


def drop_unknown(value: JSONValue, structure: Structure, path: str, found: list[str]) -> None:
    """Remove fields that the structure does not have, and note their paths."""
    if isinstance(value, dict) and structure.form in ("struct", "map"):
        for name in list(value):
            nested = f"{path}.{name}" if path else name
            field = structure.field(name)
            if field is None:
                found.append(nested)
                if not structure.preserves_unknown:
                    del value[name]
            else:
                drop_unknown(value[name], field, nested, found)
    elif isinstance(value, list) and structure.form == "list":
        for index, item in enumerate(value):
            drop_unknown(item, structure.item, f"{path}[{index}]", found)


def in_order(patched: JSONObject) -> str:
    """The JSON of an object as Go writes maps: keys in order."""
    return html_safe(msgspec.json.encode(patched, order="sorted")).decode()
