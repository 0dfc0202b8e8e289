"""References to fields of the own pod, as environment variables and downward API volumes make them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import text
from kubewright.controlplane.embedded.apimachinery.status import invalid_value, not_supported, required
from kubewright.controlplane.embedded.builtins.names import label_value, qualified_name
from kubewright.controlplane.embedded.builtins.values import Errors, matching

ENVIRONMENT_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
CONTAINER_RESOURCES = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_KNOWN = {*ENVIRONMENT_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "spec.hostNetwork"}
_SUBSCRIPT = re.compile(r"(metadata\.(?:annotations|labels))\['(.*)'\]", re.DOTALL)


def validate_field_reference(reference: JSONObject, allowed: Sequence[str], path: str) -> Errors:
    """What is wrong with a `fieldRef`."""
    if not text(reference, "apiVersion"):
        return [required(f"{path}.apiVersion")]
    field = text(reference, "fieldPath")
    where = f"{path}.fieldPath"
    if not field:
        return [required(where)]
    subscript = _SUBSCRIPT.fullmatch(field)
    if subscript is not None:
        errors = matching(path, subscript[2].lower() if "annotations" in subscript[1] else subscript[2], qualified_name)
        if "labels" in subscript[1] and not errors:
            errors = matching(path, "", label_value)
        return errors
    if field not in _KNOWN:
        return [invalid_value(where, field, f"error converting fieldPath: field label not supported: {field}")]
    return [] if field in allowed else [not_supported(where, field, allowed)]


def validate_resource_reference(reference: JSONObject, allowed: Sequence[str], path: str) -> Errors:
    """What is wrong with a `resourceFieldRef`."""
    resource = text(reference, "resource")
    if not resource:
        return [required(f"{path}.resource")]
    if resource in allowed or resource.startswith(("limits.hugepages-", "requests.hugepages-")):
        return []
    return [not_supported(f"{path}.resource", resource, allowed)]
