"""Admission: those of the real server's plugins whose effect users notice.

Namespaces must exist, pods are completed and stay within the limits of their namespace, claims and ingresses get a
class, claims grow only where it allows that, and users grant only rights that they have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.admission.certificates import CERTIFICATE_REQUESTS, check_certificate_request
from kubewright.controlplane.embedded.admission.claims import check_growth, give_default_class
from kubewright.controlplane.embedded.admission.ingresses import give_default_ingress_class
from kubewright.controlplane.embedded.admission.limit_ranges import check_limits, give_limits
from kubewright.controlplane.embedded.admission.pod_security import check_pod_security
from kubewright.controlplane.embedded.admission.pods import admit_pod, check_priority_class, displayed_name
from kubewright.controlplane.embedded.admission.resource_quotas import charge_quotas
from kubewright.controlplane.embedded.admission.runtime_classes import check_overhead, give_runtime_class
from kubewright.controlplane.embedded.apiextensions.termination import is_terminating
from kubewright.controlplane.embedded.apimachinery.document import text
from kubewright.controlplane.embedded.apimachinery.status import StatusError, forbidden, not_found
from kubewright.controlplane.embedded.auth.escalation import RoleWrite, escalation
from kubewright.controlplane.embedded.rest.call import Call

_RBAC = "rbac.authorization.k8s.io"
_GUARDED = frozenset(("roles", "rolebindings", "clusterroles", "clusterrolebindings"))
_DEFAULT_CLASSES: Mapping[tuple[str, str], tuple[str, Callable[[Call, JSONObject], None]]] = {
    ("", "persistentvolumeclaims"): ("DefaultStorageClass", give_default_class),
    ("networking.k8s.io", "ingresses"): ("DefaultIngressClass", give_default_ingress_class),
}
_UNDELETABLE = frozenset(("default", "kube-system", "kube-public"))


OPTIONAL_PLUGINS = frozenset(
    (
        "DefaultIngressClass",
        "DefaultStorageClass",
        "DefaultTolerationSeconds",
        "LimitRanger",
        "NamespaceLifecycle",
        "PersistentVolumeClaimResize",
        "PodSecurity",
        "Priority",
        "ResourceQuota",
        "RuntimeClass",
        "ServiceAccount",
    )
)
"""Those that can be disabled."""


class AdmissionChain:
    """The plugins, in the real server's order, without the disabled ones (see `OPTIONAL_PLUGINS`)."""

    def __init__(self, disabled: Collection[str] = ()) -> None:
        self._enabled = OPTIONAL_PLUGINS.difference(disabled)

    def admit(self, call: Call, new: JSONObject, old: JSONObject | None, operation: str) -> None:
        """Change `new` in place, or raise StatusError."""
        resource, enabled = call.resource, self._enabled
        if operation == "CREATE":
            _check_definition(call, new)
            if "NamespaceLifecycle" in enabled:
                _check_namespace(call, new)
        resource_name = resource.gvk.group, resource.plural
        if resource_name == ("", "pods") and not call.target.subresource:
            if old is None and "LimitRanger" in enabled:
                give_limits(call, new)
            admit_pod(call, new, old, enabled)
            if old is None and "RuntimeClass" in enabled:
                give_runtime_class(call, new)
        elif operation == "CREATE" and resource_name in _DEFAULT_CLASSES:
            plugin, give = _DEFAULT_CLASSES[resource_name]
            if plugin in enabled:
                give(call, new)
        if resource.gvk.group == _RBAC and resource.plural in _GUARDED:
            # Not an admission plugin there, but what comes between those that change and the rules of the kind.
            _check_escalation(call, new, old)

    def check(self, call: Call, new: JSONObject, old: JSONObject | None, operation: str) -> None:
        """Raise StatusError to refuse."""
        resource_name, enabled = (call.resource.gvk.group, call.resource.plural), self._enabled
        if operation == "DELETE":
            name = text(new, "metadata", "name")
            guarded = resource_name == ("", "namespaces") and "NamespaceLifecycle" in enabled
            if guarded and name in _UNDELETABLE:
                raise forbidden("namespaces", "", name, "this namespace may not be deleted")
        elif resource_name == ("scheduling.k8s.io", "priorityclasses"):
            if "Priority" in enabled:
                check_priority_class(call, new, old)
        elif resource_name == CERTIFICATE_REQUESTS:
            check_certificate_request(call, new, old)
        elif resource_name == ("", "persistentvolumeclaims") and not call.target.subresource:
            if "LimitRanger" in enabled and (old is None or not text(old, "metadata", "deletionTimestamp")):
                check_limits(call, new)
            if old is not None and "PersistentVolumeClaimResize" in enabled:
                check_growth(call, new, old)
        elif resource_name == ("", "pods") and old is None and not call.target.subresource:
            if "LimitRanger" in enabled:
                check_limits(call, new)
            if "RuntimeClass" in enabled:
                check_overhead(call, new)
        if operation != "DELETE":
            if "PodSecurity" in enabled:
                check_pod_security(call, new, old)
            # The last one: what is refused for another reason is not charged.
            if "ResourceQuota" in enabled:
                charge_quotas(call, new, old)


def _check_escalation(call: Call, new: JSONObject, old: JSONObject | None) -> None:
    refused = escalation(
        call.services.authorizer,
        RoleWrite(
            user=call.user,
            plural=call.resource.plural,
            new=new,
            old=old,
            namespace=call.target.namespace,
            name=call.target.name,
        ),
    )
    if refused is not None:
        raise refused


def _check_definition(call: Call, new: JSONObject) -> None:
    """No object is created of a custom kind whose definition is being deleted."""
    resource = call.resource
    if not resource.custom:
        return
    resource_name = f"{resource.plural}.{resource.gvk.group}"
    definition = call.services.store.get(f"/apiextensions.k8s.io/customresourcedefinitions/{resource_name}")
    if definition is not None and is_terminating(definition.value):
        why = "create not allowed while custom resource definition is terminating"
        raise forbidden(resource.plural, resource.gvk.group, text(new, "metadata", "name"), why)


def _check_namespace(call: Call, new: JSONObject) -> None:
    """Objects are created in namespaces that exist and are not terminating."""
    if not call.resource.namespaced:
        return
    # Asking what one may do needs no namespace.
    if call.resource.gvk.group == "authorization.k8s.io":
        return
    name = call.target.namespace
    entry = call.services.store.get(f"/core/namespaces/{name}")
    if entry is None:
        raise not_found("namespaces", "", name)
    if text(entry.value, "status", "phase") == "Terminating":
        error = forbidden(
            call.resource.plural,
            call.resource.gvk.group,
            call.target.name or displayed_name(new),
            f"unable to create new content in namespace {name} because it is being terminated",
        )
        details = error.details or {}
        details["causes"] = [
            {
                "reason": "NamespaceTerminating",
                "message": f"namespace {name} is being terminated",
                "field": "metadata.namespace",
            }
        ]
        raise StatusError(error.code, error.reason, error.message, details=details)
