"""Rows of volumes and of what provides them."""

from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, items, text
from kubewright.controlplane.embedded.tables.printer import (
    AGE,
    NAME,
    Cells,
    Printer,
    PrinterColumn,
    age_of,
    boolean,
    integer,
    name_of,
    wide,
)

_UNSET = "<unset>"
_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_ACCESS_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _access_modes(modes: list[JSONValue]) -> str:
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in modes)


def _storage_class_name(obj: JSONObject) -> str:
    annotations = at(obj, "metadata", "annotations")
    if isinstance(annotations, dict) and _CLASS in annotations:
        return text(annotations, _CLASS)
    return text(obj, "spec", "storageClassName")


def _phase(obj: JSONObject) -> str:
    return "Terminating" if text(obj, "metadata", "deletionTimestamp") else text(obj, "status", "phase")


def _or_unset(value: JSONValue) -> JSONValue:
    return _UNSET if value is None else value


def _volume(obj: JSONObject, now: float) -> Cells:
    claim = at(obj, "spec", "claimRef")
    return [
        name_of(obj),
        str(at(obj, "spec", "capacity", "storage") or "0"),
        _access_modes(items(obj, "spec", "accessModes")),
        text(obj, "spec", "persistentVolumeReclaimPolicy"),
        _phase(obj),
        "" if claim is None else f"{text(claim, 'namespace')}/{text(claim, 'name')}",
        _storage_class_name(obj),
        _or_unset(at(obj, "spec", "volumeAttributesClassName")),
        text(obj, "status", "reason"),
        age_of(obj, now),
        _or_unset(at(obj, "spec", "volumeMode")),
    ]


def _claim(obj: JSONObject, now: float) -> Cells:
    volume = text(obj, "spec", "volumeName")
    return [
        name_of(obj),
        _phase(obj),
        volume,
        str(at(obj, "status", "capacity", "storage") or "0") if volume else "",
        _access_modes(items(obj, "status", "accessModes")) if volume else "",
        _storage_class_name(obj),
        _or_unset(at(obj, "spec", "volumeAttributesClassName")),
        age_of(obj, now),
        _or_unset(at(obj, "spec", "volumeMode")),
    ]


def _storage_class(obj: JSONObject, now: float) -> Cells:
    is_default = any(text(obj, "metadata", "annotations", name) == "true" for name in _DEFAULT_CLASS)
    return [
        f"{name_of(obj)} (default)" if is_default else name_of(obj),
        text(obj, "provisioner"),
        text(obj, "reclaimPolicy") or "Delete",
        text(obj, "volumeBindingMode") or "Immediate",
        at(obj, "allowVolumeExpansion") is True,
        age_of(obj, now),
    ]


def _attributes_class(obj: JSONObject, now: float) -> Cells:
    return [name_of(obj), text(obj, "driverName"), age_of(obj, now)]


def _attachment(obj: JSONObject, now: float) -> Cells:
    return [
        name_of(obj),
        text(obj, "spec", "attacher"),
        text(obj, "spec", "source", "persistentVolumeName"),
        text(obj, "spec", "nodeName"),
        at(obj, "status", "attached") is True,
        age_of(obj, now),
    ]


def _csi_node(obj: JSONObject, now: float) -> Cells:
    return [name_of(obj), len(items(obj, "spec", "drivers")), age_of(obj, now)]


def _csi_driver(obj: JSONObject, now: float) -> Cells:
    requests = at(obj, "spec", "tokenRequests")
    audiences = ",".join(text(request, "audience") for request in items(obj, "spec", "tokenRequests"))
    modes = ",".join(str(mode) for mode in items(obj, "spec", "volumeLifecycleModes"))
    return [
        name_of(obj),
        at(obj, "spec", "attachRequired") is not False,
        at(obj, "spec", "podInfoOnMount") is True,
        at(obj, "spec", "storageCapacity") is True,
        _UNSET if requests is None else audiences,
        at(obj, "spec", "requiresRepublish") is True,
        modes or "<none>",
        age_of(obj, now),
    ]


PRINTERS: dict[tuple[str, str], Printer] = {
    ("", "persistentvolumes"): Printer(
        (
            NAME,
            PrinterColumn("Capacity"),
            PrinterColumn("Access Modes"),
            PrinterColumn("Reclaim Policy"),
            PrinterColumn("Status"),
            PrinterColumn("Claim"),
            PrinterColumn("StorageClass"),
            PrinterColumn("VolumeAttributesClass"),
            PrinterColumn("Reason"),
            AGE,
            wide("VolumeMode"),
        ),
        _volume,
    ),
    ("", "persistentvolumeclaims"): Printer(
        (
            NAME,
            PrinterColumn("Status"),
            PrinterColumn("Volume"),
            PrinterColumn("Capacity"),
            PrinterColumn("Access Modes"),
            PrinterColumn("StorageClass"),
            PrinterColumn("VolumeAttributesClass"),
            AGE,
            wide("VolumeMode"),
        ),
        _claim,
    ),
    ("storage.k8s.io", "storageclasses"): Printer(
        (
            NAME,
            PrinterColumn("Provisioner"),
            PrinterColumn("ReclaimPolicy"),
            PrinterColumn("VolumeBindingMode"),
            PrinterColumn("AllowVolumeExpansion"),
            AGE,
        ),
        _storage_class,
    ),
    ("storage.k8s.io", "volumeattributesclasses"): Printer((NAME, PrinterColumn("DriverName"), AGE), _attributes_class),
    ("storage.k8s.io", "volumeattachments"): Printer(
        (
            NAME,
            PrinterColumn("Attacher", format="name"),
            PrinterColumn("PV"),
            PrinterColumn("Node"),
            boolean("Attached"),
            AGE,
        ),
        _attachment,
    ),
    ("storage.k8s.io", "csinodes"): Printer((NAME, integer("Drivers"), AGE), _csi_node),
    ("storage.k8s.io", "csidrivers"): Printer(
        (
            NAME,
            boolean("AttachRequired"),
            boolean("PodInfoOnMount"),
            boolean("StorageCapacity"),
            PrinterColumn("TokenRequests"),
            boolean("RequiresRepublish"),
            PrinterColumn("Modes"),
            AGE,
        ),
        _csi_driver,
    ),
}
