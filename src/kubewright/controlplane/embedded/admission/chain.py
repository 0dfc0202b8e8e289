"""Admission: those of the real server's plugins whose effect users notice, in its order.

First those that change a write: namespaces must exist, pods are completed, claims and ingresses get a class, and the
mutating policies, which come last. After the rules of its kind those that judge it: pods stay within the limits of
their namespace, claims grow only where their class allows that, then the validating policies, and quotas last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.admission.certificates import CERTIFICATE_REQUESTS, check_certificate_request
from kubewright.controlplane.embedded.admission.claims import check_growth, give_default_class
from kubewright.controlplane.embedded.admission.ingresses import give_default_ingress_class
from kubewright.controlplane.embedded.admission.limit_ranges import check_limits, give_limits
from kubewright.controlplane.embedded.admission.mutating_policies import MutatingPolicy, Mutator
from kubewright.controlplane.embedded.admission.parameter_rights import check_parameter_rights
from kubewright.controlplane.embedded.admission.pod_security import check_pod_security
from kubewright.controlplane.embedded.admission.pods import (
    admit_pod,
    check_priority_class,
    displayed_name,
    is_resize,
)
from kubewright.controlplane.embedded.admission.policies import PolicyContext, PolicySource
from kubewright.controlplane.embedded.admission.request import AdmissionRequest
from kubewright.controlplane.embedded.admission.resource_quotas import charge_quotas
from kubewright.controlplane.embedded.admission.runtime_classes import check_overhead, give_runtime_class
from kubewright.controlplane.embedded.admission.validating_policies import ValidatingPolicy, validate_by_policies
from kubewright.controlplane.embedded.apiextensions.termination import is_terminating
from kubewright.controlplane.embedded.apimachinery.document import text
from kubewright.controlplane.embedded.apimachinery.status import StatusError, forbidden, not_found
from kubewright.controlplane.embedded.auth.escalation import RoleWrite, escalation
from kubewright.controlplane.embedded.auth.rbac import Authorizer
from kubewright.controlplane.embedded.registry.catalog import Catalog
from kubewright.controlplane.embedded.rest.call import Call, ObjectStore, Operation

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
        "LimitRanger",
        "MutatingAdmissionPolicy",
        "NamespaceLifecycle",
        "PersistentVolumeClaimResize",
        "PodSecurity",
        "ResourceQuota",
        "RuntimeClass",
        "ServiceAccount",
        "ValidatingAdmissionPolicy",
    )
)
"""Those that can be disabled."""


class AdmissionChain:
    """The plugins, in the real server's order, without the disabled ones (see `OPTIONAL_PLUGINS`).

    A request costs nothing more while there are no policies.
    """

    def __init__(
        self, store: ObjectStore, catalog: Catalog, authorizer: Authorizer, disabled: Collection[str] = ()
    ) -> None:
        self._enabled = OPTIONAL_PLUGINS.difference(disabled)
        self._context = PolicyContext(store, catalog, authorizer)
        self._mutating = PolicySource(store, "mutatingadmissionpolicies", MutatingPolicy)
        self._validating = PolicySource(store, "validatingadmissionpolicies", ValidatingPolicy)

    def invalidate(self) -> None:
        """A policy or binding changed."""
        self._mutating.invalidate()
        self._validating.invalidate()

    def enter(self, call: Call, new: JSONObject) -> None:
        """Raise StatusError when nothing may be created where the request leads."""
        if call.resource.custom:
            _check_definition(call, new)
        if "NamespaceLifecycle" in self._enabled:
            _check_namespace(call, new)

    def admit(self, call: Call, new: JSONObject, old: JSONObject | None, operation: Operation) -> bool:
        """Change `new` in place, or raise StatusError. True when policies ran, which may have changed anything."""
        mutated = False
        self._complete(call, new, old, operation)
        if (policies := self._mutating.bound()) and "MutatingAdmissionPolicy" in self._enabled:
            mutator = Mutator(AdmissionRequest(call, operation, new, old), self._context)
            mutator.run(policies)
            mutated = mutator.has_run
            if mutated:
                self._complete(call, new, old, operation)
                mutator.run(policies, again=True)
        if call.resource.gvk.group == _RBAC and call.resource.plural in _GUARDED:
            # Not an admission plugin there, but what comes between those that change and the rules of the kind.
            _check_escalation(call, new, old)
        return mutated

    def _complete(self, call: Call, new: JSONObject, old: JSONObject | None, operation: Operation) -> None:
        resource, enabled = call.resource, self._enabled
        if operation == "CREATE":
            self.enter(call, new)
        resource_name = resource.gvk.group, resource.plural
        if resource_name == ("", "pods") and not call.target.subresource:
            if old is None and "LimitRanger" in enabled:
                give_limits(call, new)
            admit_pod(call, new, old, enabled)
            if old is None and "RuntimeClass" in enabled:
                give_runtime_class(call, new)
        elif resource_name == ("", "pods") and is_resize(call):
            if "LimitRanger" in enabled and not _is_deleted(old):
                give_limits(call, new)
        elif operation == "CREATE" and resource_name in _DEFAULT_CLASSES:
            plugin, give = _DEFAULT_CLASSES[resource_name]
            if plugin in enabled:
                give(call, new)

    def check(self, call: Call, new: JSONObject, old: JSONObject | None, operation: Operation) -> None:
        """Raise StatusError to refuse."""
        if operation == "DELETE" and call.target.subresource:
            # An eviction, which was judged as such.
            return
        self._judge(call, new, old, operation)
        if (policies := self._validating.bound()) and "ValidatingAdmissionPolicy" in self._enabled:
            # Nothing comes after a deletion.
            after = None if operation == "DELETE" else new
            validate_by_policies(policies, AdmissionRequest(call, operation, after, old), self._context)
        if operation != "DELETE" and "ResourceQuota" in self._enabled:
            # The last one: what is refused for another reason is not charged.
            charge_quotas(call, new, old)

    def _judge(self, call: Call, new: JSONObject, old: JSONObject | None, operation: Operation) -> None:
        resource_name, enabled = (call.resource.gvk.group, call.resource.plural), self._enabled
        if operation == "DELETE":
            name = text(new, "metadata", "name")
            guarded = resource_name == ("", "namespaces") and "NamespaceLifecycle" in enabled
            if guarded and name in _UNDELETABLE:
                raise forbidden("namespaces", "", name, "this namespace may not be deleted")
        elif resource_name == ("scheduling.k8s.io", "priorityclasses"):
            check_priority_class(call, new, old)
        elif resource_name == CERTIFICATE_REQUESTS:
            check_certificate_request(call, new, old)
        elif resource_name == ("", "persistentvolumeclaims") and not call.target.subresource:
            if "LimitRanger" in enabled and not _is_deleted(old):
                check_limits(call, new)
            if old is not None and "PersistentVolumeClaimResize" in enabled:
                check_growth(call, new, old)
        elif resource_name == ("", "pods") and old is None and not call.target.subresource:
            if "LimitRanger" in enabled:
                check_limits(call, new)
            if "RuntimeClass" in enabled:
                check_overhead(call, new)
        elif resource_name == ("", "pods") and is_resize(call):
            if "LimitRanger" in enabled and not _is_deleted(old):
                check_limits(call, new)
        elif resource_name[0] == "admissionregistration.k8s.io" and not call.target.subresource:
            check_parameter_rights(call, new, old, self._context)
        if operation != "DELETE" and "PodSecurity" in enabled:
            check_pod_security(call, new, old)


def _is_deleted(old: JSONObject | None) -> bool:
    """Whether an object is being deleted."""
    return old is not None and bool(text(old, "metadata", "deletionTimestamp"))


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
    resource_name = f"{resource.plural}.{resource.gvk.group}"
    definition = call.services.store.get(f"/apiextensions.k8s.io/customresourcedefinitions/{resource_name}")
    if definition is not None and is_terminating(definition.value):
        why = "create not allowed while custom resource definition is terminating"
        raise forbidden(resource.plural, resource.gvk.group, displayed_name(new), why)


def _check_namespace(call: Call, new: JSONObject) -> None:
    """Objects are created in namespaces that exist and are not terminating."""
    if not call.resource.namespaced:
        return
    # Asking what one may do needs no namespace.
    if call.resource.gvk.group == "authorization.k8s.io":
        return
    namespace = call.target.namespace
    entry = call.services.store.get(f"/core/namespaces/{namespace}")
    if entry is None:
        raise not_found("namespaces", "", namespace)
    if text(entry.value, "status", "phase") == "Terminating":
        error = forbidden(
            call.resource.plural,
            call.resource.gvk.group,
            call.target.name or displayed_name(new),
            f"unable to create new content in namespace {namespace} because it is being terminated",
        )
        details = error.details or {}
        details["causes"] = [
            {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
        ]
        raise StatusError(error.code, error.reason, error.message, details=details)
