"""Create and update: from the body of a request to what is stored.

The order is the real server's: defaults, tracking of managed fields, the kind's preparation, admission, validation,
whether a PUT or an apply may create, the store. A write that changes nothing is not stored: no revision, no event.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, mapping, text
from kubewright.controlplane.embedded.apimachinery.gotext import bounded_integer, quoted
from kubewright.controlplane.embedded.apimachinery.numbers import settle_numbers
from kubewright.controlplane.embedded.apimachinery.status import (
    MODIFIED,
    FieldError,
    StatusError,
    already_exists,
    conflict,
    invalid,
    invalid_value,
    not_found,
    required,
)
from kubewright.controlplane.embedded.auth.attributes import Attributes
from kubewright.controlplane.embedded.builtins.metadata import validate_metadata, validate_metadata_update
from kubewright.controlplane.embedded.managedfields import same_but_for_times, track_update
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.metadata import (
    begin,
    check_identity,
    check_name,
    check_uid,
    count_generation,
    generate_name,
    is_finished,
    keep,
    place_in_namespace,
    refuse,
    take_revision,
    without_repeated_owners,
)
from kubewright.controlplane.embedded.rest.tracking import tracking
from kubewright.controlplane.embedded.storage.store import KeyExists, RevisionConflict, StoredObject

_NAME_ATTEMPTS = 8


def create(call: Call, obj: JSONObject, *, tracked: bool = True) -> StoredObject:
    """Store a new object. `obj` belongs to the store afterwards; its kind has been checked.

    `tracked=False` when its managed fields are right already, as after an apply.
    """
    resource, strategy = call.resource, call.resource.strategy
    place_in_namespace(call, obj)
    strategy.default(obj)
    without_repeated_owners(call, obj)
    begin(call, obj)
    if tracked:
        _track(call, None, obj)
    if call.services.admission.admit(call, obj, None, "CREATE"):
        place_in_namespace(call, obj)
        take_revision(call, obj)
    generated = generate_name(call, obj)
    if not call.is_status:
        strategy.begin_create(obj)
    strategy.prepare_create(obj)
    if strategy.note_requester is not None:
        strategy.note_requester(obj, call.user)
    name = text(obj, "metadata", "name")
    if not name:
        raise invalid(
            resource.gvk.kind, resource.gvk.group, "", [required("metadata.name", "name or generateName is required")]
        )
    refuse(
        resource,
        name,
        [
            *validate_metadata(obj, namespaced=resource.namespaced, validate_name=strategy.validate_name),
            *strategy.validate(obj),
        ],
    )
    _warn(call, obj, None)
    _require_create(call)
    call.services.admission.check(call, obj, None, "CREATE")
    if resource.custom:
        settle_numbers(obj)
    call.services.store.prepare(obj)
    call.services.admission.charge(call, obj, None)
    for attempt in range(_NAME_ATTEMPTS):
        key = resource.key(text(obj, "metadata", "namespace"), text(obj, "metadata", "name"))
        if call.query.dry_run:
            if call.services.store.get(key) is None:
                return StoredObject(key, obj, 0, 0)
        else:
            try:
                return call.services.store.create(key, obj)
            except KeyExists:
                pass
        if not generated or attempt == _NAME_ATTEMPTS - 1:
            break
        mapping(obj, "metadata").pop("name")
        generate_name(call, obj)
    raise _taken(call, key)


def _require_create(call: Call) -> None:
    """Creating by a PUT or an apply needs the permission to create, too. Raises the 403."""
    if call.target.verb != "create":
        call.services.authorizer.require(Attributes.of(call.target, call.user)._replace(verb="create"))


def _taken(call: Call, key: str) -> StatusError:
    """409: the name belongs to an object, possibly to one that is being deleted."""
    error = already_exists(call.resource.plural, call.resource.gvk.group, key.rpartition("/")[2])
    try:
        existing = call.services.store.get(key)
    except StatusError:
        return error  # it cannot be read, but is there
    if existing is not None and text(existing.value, "metadata", "deletionTimestamp"):
        return StatusError(error.code, error.reason, f"object is being deleted: {error.message}", details=error.details)
    return error


def update(call: Call, obj: JSONObject) -> tuple[StoredObject, bool]:
    """Replace an object by a PUT. True when it was created instead, which few kinds allow."""
    resource = call.resource
    check_name(call, obj)
    entry = call.services.store.get(resource.key(call.target.namespace, call.target.name))
    if entry is None:
        # What cannot be decoded is refused before the object is read.
        resource.strategy.default(copied_object(obj))
        if not resource.strategy.create_on_update or call.target.subresource not in ("", "status"):
            raise not_found(resource.plural, resource.gvk.group, call.target.name)
        check_uid(call, text(obj, "metadata", "uid"), {})
        sent = inside(obj, "metadata").pop("resourceVersion", None)
        created = create(call, obj)
        if call.query.dry_run and sent:
            # Nothing is stored that could give it another.
            inside(created.value, "metadata")["resourceVersion"] = sent
        return created, True
    return replace(call, obj, entry), False


def replace(
    call: Call, obj: JSONObject, entry: StoredObject, *, tracked: bool = True, found: Sequence[FieldError] = ()
) -> StoredObject:
    """Replace `entry` by `obj`, or the part of it that the endpoint changes. `found` are errors found before.

    Raises the 409 when `obj` was made from an older revision, or when the store has moved on from `entry`.
    """
    resource, strategy, old = call.resource, call.resource.strategy, entry.value
    place_in_namespace(call, obj)
    check_identity(call, obj, old)
    _check_revision(call, obj, entry)
    emptied: JSONObject = {name: {} for name in strategy.locked_maps if obj.get(name) == {}}
    strategy.default(obj)
    without_repeated_owners(call, obj)
    keep(obj, old)
    if tracked:
        _track(call, old, obj)
    if call.services.admission.admit(call, obj, old, "UPDATE"):
        # What the server decides, it decides for policies as for clients.
        place_in_namespace(call, obj)
        _check_revision(call, obj, entry)
        keep(obj, old)
    if call.is_status:
        strategy.prepare_status(obj, old)
    else:
        strategy.begin_update(obj, old)
        strategy.prepare_update(obj, old)
        count_generation(resource, obj, old)
    rules = strategy.validate_status if call.is_status else strategy.validate_update
    errors = [*validate_metadata_update(obj, old), *rules({**emptied, **obj}, old), *found]
    call.warnings += [str(error) for error in errors if error.tolerated]
    refuse(resource, text(obj, "metadata", "name"), [error for error in errors if not error.tolerated])
    _warn(call, obj, old)
    call.services.admission.check(call, obj, old, "UPDATE")
    if resource.custom:
        settle_numbers(obj)
    call.services.store.prepare(obj)
    call.services.admission.charge(call, obj, old)
    return _store(call, obj, entry)


def _store(call: Call, obj: JSONObject, entry: StoredObject) -> StoredObject:
    inside(obj, "metadata")["resourceVersion"] = text(entry.value, "metadata", "resourceVersion")
    if not entry.adapted and same_but_for_times(obj, entry.value):
        return entry
    if call.query.dry_run:
        return StoredObject(entry.key, obj, entry.revision, entry.created)
    try:
        if is_finished(obj):
            call.services.store.delete(entry.key, expected=entry.revision, final=copied_object(obj))
            # Only watchers get the revision of the deletion.
            return StoredObject(entry.key, obj, entry.revision, entry.created)
        return call.services.store.update(entry.key, obj, expected=entry.revision)
    except RevisionConflict:
        raise modified(call) from None


def modified(call: Call) -> StatusError:
    """409: the object has been modified."""
    return conflict(call.resource.plural, call.resource.gvk.group, call.target.name, MODIFIED)


def _check_revision(call: Call, obj: JSONObject, entry: StoredObject) -> None:
    resource = call.resource
    revision = text(obj, "metadata", "resourceVersion")
    if not revision or revision == "0":
        if resource.custom or not resource.strategy.unconditional_update:
            # The real server names the resource here, not the kind.
            raise invalid(
                resource.plural,
                resource.gvk.group,
                call.target.name,
                [invalid_value("metadata.resourceVersion", 0, "must be specified for an update")],
            )
        return
    if not revision.isdecimal() or not revision.isascii():
        raise StatusError(500, "", f"strconv.ParseUint: parsing {quoted(revision)}: invalid syntax")
    if (number := bounded_integer(revision)) >= 2**64:
        raise StatusError(500, "", f"strconv.ParseUint: parsing {quoted(revision)}: value out of range")
    if number != entry.revision:
        raise modified(call)


def _warn(call: Call, obj: JSONObject, old: JSONObject | None) -> None:
    warnings = call.resource.strategy.warnings
    if warnings is not None and not call.is_status:
        call.warnings += warnings(obj, old)


def _track(call: Call, old: JSONObject | None, new: JSONObject) -> None:
    track_update(old, new, manager=call.manager, **tracking(call))


def begin_from(entry: StoredObject) -> JSONObject:
    """A copy of what is stored, to be changed."""
    return copied_object(entry.value)
