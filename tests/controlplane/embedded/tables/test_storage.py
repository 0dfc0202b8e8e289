from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.tables.storage import PRINTERS


def cells(group: str, plural: str, obj: JSONObject) -> list[JSONValue]:
    return PRINTERS[group, plural].cells({"metadata": {"name": "n"}, **obj}, 0.0)


STATUS: JSONObject = {
    "phase": "Bound",
    "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
    "capacity": {"storage": "2Gi"},
}


def test_a_claim_shows_its_size_when_it_has_a_volume() -> None:
    assert cells("", "persistentvolumeclaims", {"spec": {}, "status": STATUS})[1:5] == ["Bound", "", "", ""]
    bound: JSONObject = {"spec": {"volumeName": "v"}, "status": STATUS}
    assert cells("", "persistentvolumeclaims", bound)[1:5] == ["Bound", "v", "2Gi", "RWO,RWX"]


def test_a_deleted_volume_is_terminating() -> None:
    obj: JSONObject = {"metadata": {"name": "n", "deletionTimestamp": "1970-01-01T00:00:00Z"}, "status": STATUS}
    assert cells("", "persistentvolumes", obj)[4] == "Terminating"


def test_the_class_in_the_annotation_takes_precedence_over_the_one_in_the_spec() -> None:
    annotations: JSONObject = {"volume.beta.kubernetes.io/storage-class": ""}
    spec: JSONObject = {"storageClassName": "fast"}
    assert cells("", "persistentvolumeclaims", {"spec": spec})[5] == "fast"
    both: JSONObject = {"metadata": {"name": "n", "annotations": annotations}, "spec": spec}
    assert cells("", "persistentvolumeclaims", both)[5] == ""


def test_the_default_class_of_volumes_is_marked() -> None:
    annotations: JSONObject = {"storageclass.kubernetes.io/is-default-class": "true"}
    obj: JSONObject = {"metadata": {"name": "n", "annotations": annotations}}
    assert cells("storage.k8s.io", "storageclasses", obj)[:5] == ["n (default)", "", "Delete", "Immediate", False]
