"""How a definition comes into force: its names are accepted unless others in the group have them, then it is served."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, items, mapping, text

_KIND_NAMES = (("kind", "KindConflict"), ("listKind", "ListKindConflict"))


def condition_holds(definition: JSONObject, condition: str) -> bool:
    """Whether a condition of a definition holds."""
    return text(_condition(definition, condition), "status") == "True"


def accepted(definition: JSONObject, others: Iterable[JSONObject], now: str) -> JSONObject:
    """The definition with its names accepted or refused, and established once all are accepted.

    `others` are all definitions (this one may be among them); `now` becomes the time of conditions that change. The
    same object is returned when nothing changes.
    """
    names = mapping(definition, "spec", "names")
    changed = definition
    if names != mapping(definition, "status", "acceptedNames"):
        changed = _named(definition, list(others), now)
    if condition_holds(changed, "NamesAccepted") and not condition_holds(changed, "Established"):
        changed = copied_object(changed) if changed is definition else changed
        if _has_unreadable_bundle(changed):
            message = "The conversion webhook CABundle is invalid"
            set_definition_condition(changed, "Established", "False", "InvalidCABundle", message, now)
        else:
            message = "the initial names have been accepted"
            set_definition_condition(changed, "Established", "True", "InitialNamesAccepted", message, now)
    return definition if changed == definition else changed


def is_certificate(bundle: str) -> bool:
    """Whether a base64-encoded bundle seems to hold certificates."""
    try:
        return b"-----BEGIN CERTIFICATE-----" in base64.b64decode(bundle, validate=True)
    except binascii.Error:
        return False


def _has_unreadable_bundle(definition: JSONObject) -> bool:
    bundle = text(definition, "spec", "conversion", "webhook", "clientConfig", "caBundle")
    return bool(bundle) and not is_certificate(bundle)


def _named(definition: JSONObject, others: list[JSONObject], now: str) -> JSONObject:
    wanted = mapping(definition, "spec", "names")
    have = mapping(definition, "status", "acceptedNames")
    resources, kinds = _taken(others, text(definition, "spec", "group"))
    conflict: tuple[str, str] | None = None
    names: JSONObject = dict(have)
    for name, reason in (("plural", "PluralConflict"), ("singular", "SingularConflict")):
        if _is_free(text(wanted, name), text(have, name), resources):
            names[name] = text(wanted, name)
        else:
            conflict = reason, f'"{text(wanted, name)}" is already in use'
    short = [str(name) for name in items(wanted, "shortNames")]
    used = [name for name in short if name not in items(have, "shortNames") and name in resources]
    if used:
        complaints = list(dict.fromkeys(f'"{name}" is already in use' for name in used))
        conflict = "ShortNamesConflict", complaints[0] if len(complaints) == 1 else f"[{', '.join(complaints)}]"
    else:
        _put(names, "shortNames", wanted)
    for name, reason in _KIND_NAMES:
        if _is_free(text(wanted, name), text(have, name), kinds):
            names[name] = text(wanted, name)
        else:
            conflict = reason, f'"{text(wanted, name)}" is already in use'
    _put(names, "categories", wanted)
    changed = copied_object(definition)
    inside(changed, "status")["acceptedNames"] = names
    if conflict is not None:
        set_definition_condition(changed, "NamesAccepted", "False", *conflict, now)
        if not _condition(changed, "Established"):
            set_definition_condition(changed, "Established", "False", "NotAccepted", "not all names are accepted", now)
    else:
        set_definition_condition(changed, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
    return changed


def _taken(definitions: list[JSONObject], group: str) -> tuple[set[str], set[str]]:
    """The resource names and the kinds that definitions of a group have been given."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for definition in definitions:
        if text(definition, "spec", "group") == group:
            names = mapping(definition, "status", "acceptedNames")
            resources |= {text(names, "plural"), text(names, "singular"), *map(str, items(names, "shortNames"))}
            kinds |= {text(names, "kind"), text(names, "listKind")}
    return resources, kinds


def _is_free(wanted: str, have: str, taken: set[str]) -> bool:
    return wanted == have or wanted not in taken


def _put(names: JSONObject, field: str, wanted: JSONObject) -> None:
    names.pop(field, None)
    if items(wanted, field):
        names[field] = [*items(wanted, field)]


def _condition(definition: JSONObject, type_: str) -> JSONObject:
    for condition in items(definition, "status", "conditions"):
        if text(condition, "type") == type_:
            return mapping(condition)
    return {}


def set_definition_condition(
    definition: JSONObject, type_: str, status: str, reason: str, message: str, now: str
) -> None:
    """Set a condition of a definition, with a new time when its status is another one."""
    found = _condition(definition, type_)
    time: JSONValue = found.get("lastTransitionTime") if text(found, "status") == status else now
    condition: JSONObject = {
        "type": type_,
        "status": status,
        "lastTransitionTime": time or now,
        "reason": reason,
        "message": message,
    }
    conditions = items(definition, "status", "conditions")
    kept: list[JSONValue] = [condition if text(each, "type") == type_ else each for each in conditions]
    inside(definition, "status")["conditions"] = kept if found else [*kept, condition]
