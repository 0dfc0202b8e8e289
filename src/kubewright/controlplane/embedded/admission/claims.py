"""Admission of persistent volume claims: the default storage class, and where they may grow."""

from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import at, inside, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import forbidden
from kubewright.controlplane.embedded.builtins.values import quantity
from kubewright.controlplane.embedded.rest.call import Call

_CLASSES = "/storage.k8s.io/storageclasses/"
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def give_default_class(call: Call, claim: JSONObject) -> None:
    """A new claim that says nothing of a class gets the default one; of several the newest."""
    spec = mapping(claim, "spec")
    if "storageClassName" in spec or _CLASS_ANNOTATION in mapping(claim, "metadata", "annotations"):
        return
    defaults = [
        entry.value
        for entry in call.services.store.range(_CLASSES).entries
        if any(text(entry.value, "metadata", "annotations", each) == "true" for each in _DEFAULT)
    ]
    if defaults:
        # In the order of their names: of those made in the same second the first is taken.
        newest = max(defaults, key=lambda one: text(one, "metadata", "creationTimestamp"))
        inside(claim, "spec")["storageClassName"] = text(newest, "metadata", "name")


def check_growth(call: Call, new: JSONObject, old: JSONObject) -> None:
    """A claim grows only if its class allows expansion. That it is bound is checked by the rules of the kind."""
    size, earlier = (quantity(at(claim, "spec", "resources", "requests", "storage")) for claim in (new, old))
    if size <= earlier:
        return
    name, before = _storage_class(new), _storage_class(old)
    entry = call.services.store.get(f"{_CLASSES}{name}") if name and name == before else None
    if entry is None or entry.value.get("allowVolumeExpansion") is not True:
        why = (
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
            "support resize"
        )
        raise forbidden("persistentvolumeclaims", "", text(new, "metadata", "name"), why)


def _storage_class(claim: JSONObject) -> str:
    annotations = mapping(claim, "metadata", "annotations")
    return (
        text(annotations, _CLASS_ANNOTATION)
        if _CLASS_ANNOTATION in annotations
        else text(claim, "spec", "storageClassName")
    )
