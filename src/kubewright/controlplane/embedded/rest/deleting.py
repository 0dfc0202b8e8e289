"""Deleting: at once, or marked and left to finalizers, grace periods and the garbage collector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import at, copied_object, inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.go_values import json_kind
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    bad_request,
    conflict,
    invalid,
    invalid_value,
    not_found,
    not_supported,
)
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.metadata import is_kept
from kubewright.controlplane.embedded.rest.options import dry_run_errors
from kubewright.controlplane.embedded.rest.reading import MANY, Listed
from kubewright.controlplane.embedded.rest.writing import modified
from kubewright.controlplane.embedded.storage.store import RevisionConflict, StoredObject

_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_POLICIES = ("Foreground", "Background", "Orphan")
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a deletion."""

    propagation: str = ""
    grace: int | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False
    cascading: bool = False
    """Asked for by `orphanDependents: false`, the old way, which is answered with 202 while the object is there."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """The result of a deletion: the last state of the object, and whether it was removed."""

    entry: StoredObject
    is_gone: bool


def options_of(call: Call, body: JSONObject | None) -> Options:
    """From the body of a request, or from its query when it has none: a body overrides the query, its `dryRun` too."""
    content = call.deletion = body if body is not None else _queried(call)
    policy, orphan = content.get("propagationPolicy"), content.get("orphanDependents")
    grace, stages = content.get("gracePeriodSeconds"), items(content, "dryRun")
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
        raise bad_request(
            f"json: cannot unmarshal {json_kind(grace)} into Go struct field DeleteOptions.gracePeriodSeconds of type "
            "int64"
        )
    errors: list[FieldError] = []
    if policy is not None and orphan is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid_value("propagationPolicy", policy, why))
    if policy not in (None, *_POLICIES):
        errors.append(not_supported("propagationPolicy", policy, [*_POLICIES, "nil"]))
    errors += dry_run_errors(stages)
    if errors:
        raise invalid("DeleteOptions", "meta.k8s.io", "", errors)
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    return Options(
        propagation=str(policy or ""),
        grace=grace,
        uid=text(content, "preconditions", "uid"),
        resource_version=text(content, "preconditions", "resourceVersion"),
        dry_run=bool(stages),
        cascading=orphan is False,
    )


def _queried(call: Call) -> JSONObject:
    """The options in a query, as a body would have them."""
    query = call.query
    content: JSONObject = {"dryRun": list(query.repeated.get("dryRun", ()))}
    if query.text("propagationPolicy"):
        content["propagationPolicy"] = query.text("propagationPolicy")
    if query.text("orphanDependents"):
        content["orphanDependents"] = query.flag("orphanDependents")
    if query.text("gracePeriodSeconds"):
        content["gracePeriodSeconds"] = query.number("gracePeriodSeconds")
    return content


def delete(call: Call, options: Options) -> Deleted:
    """Delete the object a request names."""
    key = call.resource.key(call.target.namespace, call.target.name)
    for _ in range(_ATTEMPTS):
        entry = call.services.store.get(key)
        if entry is None:
            raise not_found(call.resource.plural, call.resource.gvk.group, call.target.name)
        check_preconditions(call, options, entry)
        call.services.admission.check(call, entry.value, entry.value, "DELETE")
        try:
            return _delete_entry(call, options, entry)
        except RevisionConflict:
            continue
    raise modified(call)


def delete_collection(call: Call, options: Options, listed: Listed) -> Iterator[None]:
    """Delete what a list shows; the iterator pauses after every `MANY` objects."""
    for number, entry in enumerate(listed.entries, 1):
        call.services.admission.check(call, entry.value, entry.value, "DELETE")
        for _ in range(_ATTEMPTS):
            current = call.services.store.get(entry.key)
            if current is None:
                break
            check_preconditions(call, options, current)
            try:
                _delete_entry(call, options, current)
                break
            except RevisionConflict:
                continue
        if number % MANY == 0:
            yield


def check_preconditions(call: Call, options: Options, entry: StoredObject) -> None:
    """Raise StatusError when an object is not the one that is to be deleted."""
    uid, revision = text(entry.value, "metadata", "uid"), text(entry.value, "metadata", "resourceVersion")
    why = ""
    if options.uid and options.uid != uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({uid}). "
            "The object might have been deleted and then recreated"
        )
    elif options.resource_version and options.resource_version != revision:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match "
            f"the ResourceVersion in record ({revision}). The object might have been modified"
        )
    if why and call.resource.strategy.begin_deletion is not None:
        field, sent, found = ("UID", options.uid, uid)
        if options.uid in ("", uid):
            field, sent, found = ("ResourceVersion", options.resource_version, revision)
        why = f"Precondition failed: {field} in precondition: {sent}, {field} in object meta: {found}"
        raise conflict(call.resource.plural, call.resource.gvk.group, text(entry.value, "metadata", "name"), why)
    if why:
        # The real server names the kind here, not the resource.
        name = text(entry.value, "metadata", "name")
        raise conflict(call.resource.gvk.kind, call.resource.gvk.group, name, why)


def _delete_entry(call: Call, options: Options, entry: StoredObject) -> Deleted:
    strategy = call.resource.strategy
    new = copied_object(entry.value)
    metadata = inside(new, "metadata")
    was_marked = bool(text(metadata, "deletionTimestamp"))
    if strategy.terminates and was_marked and items(new, "spec", "finalizers"):
        return Deleted(entry, is_gone=False)
    if strategy.begin_deletion is not None and not was_marked:
        if strategy.terminates:
            _propagate(metadata, options.propagation, strategy.default_propagation)
        strategy.begin_deletion(new, call.services.now())
        if options.dry_run:
            return Deleted(StoredObject(entry.key, new, entry.revision, entry.created), is_gone=False)
        return Deleted(call.services.store.update(entry.key, new, expected=entry.revision), is_gone=False)
    remaining = at(metadata, "deletionGracePeriodSeconds")
    is_running_out = strategy.graceful_deletion is not None and was_marked and isinstance(remaining, int)
    # Time that is running out already can be made shorter only.
    if is_running_out and (options.grace is None or (isinstance(remaining, int) and options.grace >= remaining)):
        return Deleted(entry, is_gone=False)
    _propagate(metadata, options.propagation or "", strategy.default_propagation)
    grace = strategy.graceful_deletion(new, options.grace) if strategy.graceful_deletion is not None else 0
    if not is_kept(new) and grace == 0:
        revision, is_graceful = entry.revision, strategy.graceful_deletion is not None
        final = new if was_marked else copied_object(entry.value)
        if is_graceful:
            _mark(call, metadata, 0, was_marked)
        if options.dry_run:
            return Deleted(StoredObject(entry.key, new, entry.revision, entry.created), is_gone=True)
        if is_graceful:
            # Watchers see that it is being deleted before they see that it is gone.
            revision = call.services.store.update(entry.key, copied_object(new), expected=revision).revision
        gone = call.services.store.delete(entry.key, expected=revision, final=None if is_graceful else final)
        metadata["resourceVersion"] = str(gone.revision)
        return Deleted(StoredObject(entry.key, new, gone.revision, entry.created), is_gone=True)
    _mark(call, metadata, grace, was_marked)
    if new == entry.value or options.dry_run:
        return Deleted(StoredObject(entry.key, new, entry.revision, entry.created), is_gone=False)
    return Deleted(call.services.store.update(entry.key, new, expected=entry.revision), is_gone=False)


def _propagate(metadata: JSONObject, requested: str, default: str) -> None:
    """Orphan and Foreground are finalizers; another request with another policy exchanges them."""
    finalizers = items(metadata, "finalizers")
    policy = requested
    if not policy:
        if _ORPHAN in finalizers or _FOREGROUND in finalizers:
            return
        policy = default
    kept = [name for name in finalizers if name not in (_ORPHAN, _FOREGROUND)]
    if policy == "Orphan":
        kept.append(_ORPHAN)
    elif policy == "Foreground":
        kept.append(_FOREGROUND)
    if kept:
        metadata["finalizers"] = kept
    else:
        metadata.pop("finalizers", None)


def _mark(call: Call, metadata: JSONObject, grace: int, was_marked: bool) -> None:
    if was_marked:
        remaining = at(metadata, "deletionGracePeriodSeconds")
        if isinstance(remaining, int) and grace < remaining:
            _set_deadline(call, metadata, grace)
        elif remaining is None:
            metadata["deletionGracePeriodSeconds"] = grace
        return
    _set_deadline(call, metadata, grace)
    generation = metadata.get("generation")
    if isinstance(generation, int) and generation > 0:
        metadata["generation"] = generation + 1


def _set_deadline(call: Call, metadata: JSONObject, grace: int) -> None:
    moment = datetime.fromtimestamp(call.services.clock() + grace, UTC)
    metadata["deletionTimestamp"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata["deletionGracePeriodSeconds"] = grace


def success(call: Call, deleted: Deleted) -> JSONObject:
    """The Status that answers a deletion that removed the object."""
    details: JSONObject = {"name": call.target.name}
    if call.resource.gvk.group:
        details["group"] = call.resource.gvk.group
    details["kind"] = call.resource.plural
    details["uid"] = mapping(deleted.entry.value, "metadata").get("uid")
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
