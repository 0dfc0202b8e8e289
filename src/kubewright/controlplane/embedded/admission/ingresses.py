"""DefaultIngressClass: a new ingress that names no class gets the default one."""

from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import inside, mapping, text
from kubewright.controlplane.embedded.rest.call import Call

_CLASSES = "/networking.k8s.io/ingressclasses/"
_DEFAULT = "ingressclass.kubernetes.io/is-default-class"
_CLASS_ANNOTATION = "kubernetes.io/ingress.class"


def give_default_ingress_class(call: Call, ingress: JSONObject) -> None:
    """Of several default classes the newest is taken."""
    annotations = mapping(ingress, "metadata", "annotations")
    if mapping(ingress, "spec").get("ingressClassName") is not None or _CLASS_ANNOTATION in annotations:
        return
    entries = call.services.store.range(_CLASSES).entries
    defaults = [entry.value for entry in entries if text(entry.value, "metadata", "annotations", _DEFAULT) == "true"]
    if defaults:
        # In the order of their names: of those made in the same second the first is taken.
        newest = max(defaults, key=lambda one: text(one, "metadata", "creationTimestamp"))
        inside(ingress, "spec")["ingressClassName"] = text(newest, "metadata", "name")
