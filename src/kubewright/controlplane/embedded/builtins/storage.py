"""Persistent volumes and claims, storage classes, and what belongs to CSI drivers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from kubewright.api.markers import JSONObject
from kubewright.api.quantity import Quantity
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
)
from kubewright.controlplane.embedded.builtins.names import dns_subdomain, qualified_name
from kubewright.controlplane.embedded.builtins.placement import validate_node_selector
from kubewright.controlplane.embedded.builtins.pods import difference
from kubewright.controlplane.embedded.builtins.values import (
    Errors,
    matching,
    objects,
    one_of,
    present,
    quantity,
    unchanged,
)
from kubewright.controlplane.embedded.builtins.volumes import csi_driver, host_path, local, nfs
from kubewright.controlplane.embedded.registry.resources import Strategy

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
# What a persistent volume's specification has besides its source.
_NO_SOURCES = frozenset(
    (
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "volumeMode",
        "nodeAffinity",
        "volumeAttributesClassName",
    )
)
_SOURCES: Mapping[str, Callable[[JSONObject, str], Errors]] = {
    "hostPath": host_path,
    "nfs": nfs,
    "local": local,
    "csi": csi_driver,
}


def _protect(finalizer: str) -> Callable[[JSONObject], None]:
    def prepare(obj: JSONObject) -> None:
        finalizers = items(obj, "metadata", "finalizers")
        if finalizer not in finalizers:
            inside(obj, "metadata")["finalizers"] = [*finalizers, finalizer]

    return prepare


def _access_modes(spec: JSONObject) -> Errors:
    modes = items(spec, "accessModes")
    errors = [error for mode in modes for error in one_of("spec.accessModes", mode, _MODES)]
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        complaint = "may not use ReadWriteOncePod with other access modes"
        errors.append(forbidden_field("spec.accessModes", complaint))
    return errors


def _class_and_mode(spec: JSONObject) -> Errors:
    """What claims and volumes have in common."""
    errors: Errors = []
    if text(spec, "storageClassName"):
        errors += matching("spec.storageClassName", text(spec, "storageClassName"), dns_subdomain)
    if "volumeMode" in spec:
        errors += one_of("spec.volumeMode", spec["volumeMode"], _VOLUME_MODES)
    return errors


def _validate_claim(claim: JSONObject) -> Errors:
    spec = mapping(claim, "spec")
    errors: Errors = []
    if not items(spec, "accessModes"):
        errors.append(required("spec.accessModes", "at least 1 access mode is required"))
    errors += _access_modes(spec)
    storage = mapping(spec, "resources", "requests").get("storage")
    if storage is None:
        errors.append(required("spec.resources[storage]"))
    elif quantity(storage) <= Quantity(0):
        errors.append(invalid_value("spec.resources[storage]", storage, "must be greater than zero"))
    return errors + _class_and_mode(spec)


def _validate_claim_update(new: JSONObject, old: JSONObject) -> Errors:
    errors = _validate_claim(new)
    spec, before = copied_object(mapping(new, "spec")), copied_object(mapping(old, "spec"))
    size, earlier = (quantity(mapping(part, "resources", "requests").get("storage")) for part in (spec, before))
    if not before.get("volumeName") and "volumeName" in spec:
        before["volumeName"] = spec["volumeName"]
    if "storageClassName" not in before:
        # A default class that came later may be filled in.
        spec.pop("storageClassName", None)
    if text(new, "status", "phase") == "Bound":
        for part in (spec, before):
            mapping(part, "resources", "requests").pop("storage", None)
            part.pop("volumeAttributesClassName", None)
    if spec != before:
        complaint = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
            f"claims\n{difference(before, spec)}"
        )
        errors.append(forbidden_field("spec", complaint))
    capacity = quantity(mapping(old, "status", "capacity").get("storage"))
    if size < earlier and size <= capacity:
        where = "spec.resources.requests.storage"
        errors.append(forbidden_field(where, "field can not be less than status.capacity"))
    return errors + unchanged("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))


PERSISTENT_VOLUME_CLAIM = Strategy(
    prepare_create=_protect("kubernetes.io/pvc-protection"),
    validate=_validate_claim,
    validate_update=_validate_claim_update,
    returns_deleted_object=True,
)


def _source(spec: JSONObject) -> JSONObject:
    return {name: value for name, value in spec.items() if name not in _NO_SOURCES}


def _validate_volume(volume: JSONObject) -> Errors:
    spec = mapping(volume, "spec")
    errors: Errors = [] if items(spec, "accessModes") else [required("spec.accessModes")]
    errors += _access_modes(spec)
    capacity = mapping(spec, "capacity")
    if not capacity:
        errors.append(required("spec.capacity"))
    if list(capacity) != ["storage"]:
        detail = 'supported values: "storage"'
        errors.append(FieldError("FieldValueNotSupported", "spec.capacity", capacity, detail))
    for name, amount in capacity.items():
        if quantity(amount) <= Quantity(0):
            errors.append(invalid_value(f"spec.capacity[{name}]", amount, "must be greater than zero"))
    reclaim = spec.get("persistentVolumeReclaimPolicy")
    errors += one_of("spec.persistentVolumeReclaimPolicy", reclaim, ("Delete", "Recycle", "Retain"))
    if "nodeAffinity" in spec:
        affinity = mapping(spec, "nodeAffinity")
        if "required" in affinity:
            errors += validate_node_selector(mapping(affinity, "required"), "spec.nodeAffinity.required")
        else:
            errors.append(required("spec.nodeAffinity.required", "must specify required node constraints"))
    sources = _source(spec)
    known = [kind for kind in _SOURCES if kind in sources]
    for position, kind in enumerate(dict.fromkeys((*known, *sources))):
        if position:
            errors.append(forbidden_field(f"spec.{kind}", "may not specify more than 1 volume type"))
        elif kind in _SOURCES:
            errors += _SOURCES[kind](mapping(sources, kind), f"spec.{kind}")
    if not sources:
        errors.append(required("spec", "must specify a volume type"))
    return errors + _class_and_mode(spec)


def _validate_volume_update(new: JSONObject, old: JSONObject) -> Errors:
    errors = _validate_volume(new)
    spec, before = mapping(new, "spec"), mapping(old, "spec")
    if _source(spec) != _source(before):
        complaint = (
            f"spec.persistentvolumesource is immutable after creation\n{difference(_source(before), _source(spec))}"
        )
        errors.append(forbidden_field("spec.persistentvolumesource", complaint))
    return errors + unchanged("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))


def persistent_volume_strategy(now: Callable[[], datetime]) -> Strategy:
    """The rules of persistent volumes, which note when their phase changes."""
    protect = _protect("kubernetes.io/pv-protection")

    def note_phase(volume: JSONObject) -> None:
        inside(volume, "status")["lastPhaseTransitionTime"] = f"{now().astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"

    def prepare_create(volume: JSONObject) -> None:
        protect(volume)
        note_phase(volume)

    def prepare_status(new: JSONObject, old: JSONObject) -> None:
        if text(new, "status", "phase") != text(old, "status", "phase"):
            note_phase(new)

    return Strategy(
        prepare_create=prepare_create,
        prepare_status=prepare_status,
        validate=_validate_volume,
        validate_update=_validate_volume_update,
        returns_deleted_object=True,
    )


def _validate_class(storage_class: JSONObject) -> Errors:
    errors = present("provisioner", text(storage_class, "provisioner").lower(), qualified_name)
    if "" in mapping(storage_class, "parameters"):
        errors.append(invalid_value("parameters", "", "field can not be empty."))
    errors += one_of("reclaimPolicy", storage_class.get("reclaimPolicy"), ("Delete", "Retain"))
    binding = storage_class.get("volumeBindingMode")
    return errors + one_of("volumeBindingMode", binding, ("Immediate", "WaitForFirstConsumer"))


def _validate_class_update(new: JSONObject, old: JSONObject) -> Errors:
    errors: Errors = []
    for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        errors += unchanged(field, new.get(field), old.get(field))
    return errors


STORAGE_CLASS = Strategy(validate=_validate_class, validate_update=_validate_class_update, returns_deleted_object=True)


def _validate_attributes_class_update(new: JSONObject, old: JSONObject) -> Errors:
    errors = unchanged("driverName", new.get("driverName"), old.get("driverName"))
    return errors + unchanged("parameters", new.get("parameters"), old.get("parameters"))


def _validate_attributes_class(attributes_class: JSONObject) -> Errors:
    errors = csi_driver({"driver": attributes_class.get("driverName", "")}, "")
    errors = [FieldError(error.type, "driverName", error.value, error.detail) for error in errors]
    if not mapping(attributes_class, "parameters"):
        errors.append(required("parameters", "must contain at least one key/value pair"))
    return errors


VOLUME_ATTRIBUTES_CLASS = Strategy(
    prepare_create=_protect("kubernetes.io/vac-protection"),
    validate=_validate_attributes_class,
    validate_update=_validate_attributes_class_update,
    returns_deleted_object=True,
)


def _validate_csi_driver_update(new: JSONObject, old: JSONObject) -> Errors:
    errors: Errors = []
    for field in ("attachRequired", "fsGroupPolicy", "volumeLifecycleModes"):
        errors += unchanged(f"spec.{field}", mapping(new, "spec").get(field), mapping(old, "spec").get(field))
    return errors


CSI_DRIVER = Strategy(
    validate_update=_validate_csi_driver_update, unconditional_update=False, returns_deleted_object=True
)


def _validate_csi_node(node: JSONObject) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, driver in objects(node, "spec", "drivers"):
        path = f"spec.drivers[{index}]"
        name = text(driver, "name")
        errors += present(f"{path}.name", name, qualified_name)
        if not text(driver, "nodeID"):
            errors.append(required(f"{path}.nodeID"))
        if name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)
    return errors


CSI_NODE = Strategy(
    validate=_validate_csi_node,
    validate_update=lambda new, old: _validate_csi_node(new),
    unconditional_update=False,
    returns_deleted_object=True,
)

CSI_STORAGE_CAPACITY = Strategy(
    validate=lambda new: [] if text(new, "storageClassName") else [required("storageClassName")],
    validate_update=lambda new, old: (
        unchanged("nodeTopology", new.get("nodeTopology"), old.get("nodeTopology"))
        + unchanged("storageClassName", new.get("storageClassName"), old.get("storageClassName"))
    ),
    unconditional_update=False,
)


def _validate_attachment(attachment: JSONObject) -> Errors:
    spec = mapping(attachment, "spec")
    errors = [required(f"spec.{field}") for field in ("attacher", "nodeName") if not text(spec, field)]
    source = mapping(spec, "source")
    if not source:
        errors.append(required("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
    return errors


VOLUME_ATTACHMENT = Strategy(
    validate=_validate_attachment,
    validate_update=lambda new, old: unchanged("spec", new.get("spec"), old.get("spec")),
    unconditional_update=False,
    returns_deleted_object=True,
)
