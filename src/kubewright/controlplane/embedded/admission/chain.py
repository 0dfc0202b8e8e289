"""Admission: those of the real server's plugins whose effect users notice, in its order.

First those that change a write: namespaces must exist, pods are completed, claims and ingresses get a class, then the
mutating policies, and the mutating webhooks last. After the rules of its kind those that judge it: pods stay within the
limits of their namespace, claims grow only where their class allows that, then the validating policies and webhooks,
and quotas last.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.admission.certificates import CERTIFICATE_REQUESTS, check_certificate_request
from kubewright.controlplane.embedded.admission.claims import check_growth, give_default_class
from kubewright.controlplane.embedded.admission.ingresses import give_default_ingress_class
from kubewright.controlplane.embedded.admission.limit_ranges import check_limits, give_limits
from kubewright.controlplane.embedded.admission.mutating_policies import MutatingPolicy, Mutator
from kubewright.controlplane.embedded.admission.mutation import internal_error
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
from kubewright.controlplane.embedded.admission.webhooks import Webhook, WebhookCaller, WebhookMutator, WebhookSource
from kubewright.controlplane.embedded.apiextensions.termination import is_terminating
from kubewright.controlplane.embedded.apimachinery.document import mapping, text
from kubewright.controlplane.embedded.apimachinery.status import NotConverted, StatusError, forbidden, not_found
from kubewright.controlplane.embedded.auth.escalation import RoleWrite, escalation
from kubewright.controlplane.embedded.auth.rbac import Authorizer
from kubewright.controlplane.embedded.registry.catalog import Catalog
from kubewright.controlplane.embedded.rest.call import Call, ObjectStore, Operation
from kubewright.controlplane.embedded.rest.suspension import Outcome, Settled, Settling, Step, Suspended
from kubewright.controlplane.embedded.storage.store import StoredObject

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
        "MutatingAdmissionWebhook",
        "NamespaceLifecycle",
        "PersistentVolumeClaimResize",
        "PodSecurity",
        "ResourceQuota",
        "RuntimeClass",
        "ServiceAccount",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionWebhook",
    )
)
"""Those that can be disabled."""


class AdmissionChain:
    """The plugins, in the real server's order, without the disabled ones (see `OPTIONAL_PLUGINS`).

    A request costs nothing more while there are no policies and webhooks. One that is for a webhook is suspended until
    that has answered, and is handled again then; what the webhook has seen is what is stored.
    """

    def __init__(
        self,
        store: ObjectStore,
        catalog: Catalog,
        authorizer: Authorizer,
        new_uid: Callable[[], str],
        disabled: Collection[str] = (),
    ) -> None:
        self._enabled = OPTIONAL_PLUGINS.difference(disabled)
        self._context = PolicyContext(store, catalog, authorizer)
        self._mutating = PolicySource(store, "mutatingadmissionpolicies", MutatingPolicy)
        self._validating = PolicySource(store, "validatingadmissionpolicies", ValidatingPolicy)
        self._mutating_webhooks = WebhookSource(store, "mutatingwebhookconfigurations")
        self._validating_webhooks = WebhookSource(store, "validatingwebhookconfigurations")
        self._caller = WebhookCaller(store, self._context, new_uid)

    def invalidate(self) -> None:
        """A policy, a binding or a webhook changed."""
        self._mutating.invalidate()
        self._validating.invalidate()
        self._mutating_webhooks.invalidate()
        self._validating_webhooks.invalidate()

    def enter(self, call: Call, new: JSONObject) -> None:
        """Raise StatusError when nothing may be created where the request leads."""
        if call.resource.custom:
            _check_definition(call, new)
        if "NamespaceLifecycle" in self._enabled:
            _check_namespace(call, new)

    def admit(self, call: Call, new: JSONObject, old: JSONObject | None, operation: Operation) -> bool:
        """Change `new` in place, or raise StatusError; Suspended when webhooks have a say.

        True when policies or webhooks ran, which may have changed anything.
        """
        mutated = bool(call.settled) and _settled(call, _step("mutating", call, old, operation), new)
        if not mutated:
            mutated = self._mutate(call, new, old, operation)
        elif operation == "CREATE":
            self.enter(call, new)  # the namespace may be gone since the webhooks were asked
        if call.resource.gvk.group == _RBAC and call.resource.plural in _GUARDED:
            # Not an admission plugin there, but what comes between those that change and the rules of the kind.
            _check_escalation(call, new, old)
        return mutated

    def _mutate(self, call: Call, new: JSONObject, old: JSONObject | None, operation: Operation) -> bool:
        self._complete(call, new, old, operation)
        policies = self._mutating.bound() if "MutatingAdmissionPolicy" in self._enabled else ()
        webhooks = self._mutating_webhooks.all() if "MutatingAdmissionWebhook" in self._enabled else ()
        if not policies and not webhooks:
            return False
        request = AdmissionRequest(call, operation, new, old)
        mutator = Mutator(request, self._context)
        mutator.run(policies)
        if self._concerns("mutating", webhooks, request):

            async def settle() -> None:
                caller = WebhookMutator(self._caller, webhooks, request)
                await caller.run()
                if mutator.has_run or caller.has_changed:
                    self._complete(call, new, old, operation)
                    mutator.run(policies, again=True)
                    await caller.run()

            raise Suspended(_settling(_step("mutating", call, old, operation), request, settle))
        if mutator.has_run:
            self._complete(call, new, old, operation)
            mutator.run(policies, again=True)
        return mutator.has_run

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
        """Raise StatusError to refuse; Suspended when webhooks have a say."""
        if operation == "DELETE" and call.target.subresource:
            # An eviction, which was judged as such.
            return
        # Nothing comes after a deletion.
        after = None if operation == "DELETE" else new
        if self._mutating_webhooks.all() and (after is None or _is_only_checked(call, operation)):
            self._ask_mutating(call, after, old, operation)
        self._judge(call, new, old, operation)
        if (policies := self._validating.bound()) and "ValidatingAdmissionPolicy" in self._enabled:
            validate_by_policies(policies, AdmissionRequest(call, operation, after, old), self._context)
        if self._validating_webhooks.all():
            self._ask_validating(call, after, old, operation)

    def charge(self, call: Call, new: JSONObject, old: JSONObject | None) -> None:
        """Charge quotas, as the last plugin: what is refused for another reason is not charged."""
        if "ResourceQuota" in self._enabled:
            charge_quotas(call, new, old)

    def prepare_deletions(self, call: Call, entries: Sequence[StoredObject]) -> None:
        """Raise Suspended when webhooks have a say about the deletion of any of several objects."""
        if not self._mutating_webhooks.all() and not self._validating_webhooks.all():
            return
        settling: list[Settling] = []
        for entry in entries:
            for ask in (self._ask_mutating, self._ask_validating):
                try:
                    ask(call, None, entry.value, "DELETE")
                except Suspended as suspended:
                    settling += suspended.settling
                except StatusError:
                    break  # raised again when it is the turn of this object
        if settling:
            raise Suspended(*settling)

    def _concerns(self, stage: str, webhooks: Sequence[Webhook], request: AdmissionRequest) -> bool:
        """Whether a request is for any of the webhooks. Raises StatusError or Suspended."""
        try:
            return any(self._caller.match(webhook, request) is not None for webhook in webhooks)
        except NotConverted as error:
            raise _unconverted(error, stage) from None

    def _ask_mutating(self, call: Call, new: JSONObject | None, old: JSONObject | None, operation: Operation) -> None:
        """Ask mutating webhooks about what no other plugin changes."""
        step = _step("mutating", call, old, operation)
        if _settled(call, step, new) or "MutatingAdmissionWebhook" not in self._enabled:
            return
        request, webhooks = AdmissionRequest(call, operation, new, old), self._mutating_webhooks.all()
        if self._concerns("mutating", webhooks, request):
            caller = WebhookMutator(self._caller, webhooks, request)

            async def settle() -> None:
                await caller.run()
                if caller.has_changed:
                    await caller.run()

            raise Suspended(_settling(step, request, settle))

    def _ask_validating(self, call: Call, new: JSONObject | None, old: JSONObject | None, operation: Operation) -> None:
        step = _step("validating", call, old, operation)
        if _settled(call, step, new) or "ValidatingAdmissionWebhook" not in self._enabled:
            return
        request, webhooks = AdmissionRequest(call, operation, new, old), self._validating_webhooks.all()
        if self._concerns("validating", webhooks, request):
            raise Suspended(_settling(step, request, lambda: self._caller.validate(webhooks, request)))

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


def _is_only_checked(call: Call, operation: Operation) -> bool:
    """Whether a request changes no object of its own, such as an eviction: `admit` is not called for it."""
    return operation == "CONNECT" or (operation == "CREATE" and bool(call.target.subresource))


def _step(stage: str, call: Call, old: JSONObject | None, operation: Operation) -> Step:
    """What is asked about: once the stored object has changed, something else."""
    metadata = mapping(old, "metadata")
    name = text(metadata, "name") or call.target.name
    return stage, operation, text(metadata, "namespace"), name, text(metadata, "resourceVersion")


def _settled(call: Call, step: Step, new: JSONObject | None) -> bool:
    """Go on with the outcome of a step, if there is one. Raises its StatusError."""
    outcome = call.settled.get(step) if call.settled else None
    if outcome is None:
        return False
    call.warnings += outcome.warnings
    for name, value in outcome.annotations.items():
        call.annotations.setdefault(name, value)
    if outcome.error is not None:
        raise outcome.error
    if new is not None and outcome.obj is not None:
        new.clear()
        new.update(outcome.obj)
    return True


def _settling(step: Step, request: AdmissionRequest, settle: Callable[[], Awaitable[None]]) -> Settling:
    """The outcome of asking, with everything that was noted about the request until then."""

    async def outcomes() -> Settled:
        refused: StatusError | None = None
        try:
            await settle()
        except NotConverted as error:
            refused = _unconverted(error, step[0])
        except StatusError as error:
            refused = error
        except Suspended as stop:
            # An expression needs the object in another version: with that, all are asked again.
            return {**request.settled, **await stop.outcomes()}
        outcome = Outcome(request.new, refused, tuple(request.call.warnings), dict(request.call.annotations))
        return {**request.settled, step: outcome}

    return outcomes


def _unconverted(error: NotConverted, stage: str) -> StatusError:
    """For webhooks that are for another version of an object, which cannot be made."""
    return internal_error(error.message if stage == "validating" else f"Internal error occurred: {error.message}")


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
