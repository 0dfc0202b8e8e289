"""The controllers of requests, and what they need."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeVar

from kubewright import Manager, Permission, Request, controller_for, mapped, serve_webhooks
from kubewright.api import Object
from kubewright.api.admissionregistration.v1 import ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding
from kubewright.api.core.v1 import ConfigMap, Namespace, Secret, ServiceAccount
from kubewright.api.rbac.v1 import ClusterRole, RoleBinding
from kubewright.controller import Event, ExponentialBackoff, Handler, RateLimiter, labels_changed
from kubewright.patterns import AuditSink, FileAudit

from .deletion import DeletionReconciler
from .deletion_gate import DeletionGate
from .names import ROLE_NAMES, SYSTEM_NAMESPACE, cluster_role_of, user_of
from .operations import OperationReconciler
from .options import Options
from .request_guard import RECORD, Guard
from .request_policy import POLICY, request_policy
from .request_types import Deleterequest, Operationrequest
from .request_webhooks import one_open_request, stamp_deletion, stamp_operation
from .types import User

NAME = "user-requests"

T = TypeVar("T", OperationReconciler, DeletionReconciler)


class OpenRequests:
    """Finds the requests that a change of something else concerns: of one user, that are not finished."""

    def __init__(self, manager: Manager) -> None:
        self._client = manager.client
        for kind in (Operationrequest, Deleterequest):
            manager.cache.index(kind, "spec.user")

    async def operations(self, user: str) -> list[Request]:
        """The Operationrequests."""
        fields = {"spec.user": user}
        found = await self._client.list(Operationrequest, namespace=SYSTEM_NAMESPACE, fields=fields)
        return [each.key for each in found if not each.status.is_finished]

    async def deletions(self, user: str) -> list[Request]:
        """The Deleterequests."""
        found = await self._client.list(Deleterequest, fields={"spec.user": user})
        return [each.key for each in found if not each.status.is_finished]


def add_requests(manager: Manager, options: Options, audit: AuditSink | None = None) -> None:
    """A controller for each kind of requests, the policy that guards them, and webhooks.

    Audit records go to `audit` rather than to where the options say.
    """
    if audit is None and options.audit_file is not None:
        audit = FileAudit(options.audit_file)
    guard = Guard(manager.client, is_enforced=options.guard_requests)
    gate = DeletionGate(is_closed=options.deletion_gate)

    def made(reconciler: type[T], retention: timedelta, expiry: timedelta) -> T:
        return reconciler(
            manager.client,
            manager.recorder(NAME),
            guard,
            gate,
            grace=options.request_grace_time,
            audit=audit,
            identity=manager.instance,
            retention=retention,
            expiry=expiry,
            retry=options.request_retry_time,
        )

    requests = OpenRequests(manager)
    add_operations(
        manager,
        options,
        requests,
        made(OperationReconciler, options.operation_req_retention_time, options.operation_req_expiration_time),
    )
    add_deletions(
        manager,
        options,
        requests,
        made(DeletionReconciler, options.delete_req_retention_time, options.delete_req_expiration_time),
    )
    if options.guard_requests:
        add_guard(manager, guard)
    manager.require(
        Permission(RoleBinding, "create", "patch", "delete"),
        *(Permission(ClusterRole, "bind", name=cluster_role_of(role)) for role in ROLE_NAMES),
        Permission(User, "patch", "delete"),
        Permission(Namespace, "delete"),
        Permission(Secret, "list", "delete", namespace=SYSTEM_NAMESPACE),
    )
    manager.require_objects(*request_policy())
    serve_webhooks(manager, stamp_operation, stamp_deletion, one_open_request(manager.client))


def add_guard(manager: Manager, guard: Guard) -> None:
    """The policy and its binding, which are recorded when they have changed."""
    named = {"metadata.name": POLICY}
    (
        controller_for(manager, ValidatingAdmissionPolicy, fields=named)
        .watches_metadata(ValidatingAdmissionPolicyBinding, mapped(_policy), fields=named)
        .complete(guard)
    )
    manager.require(
        Permission(ConfigMap, "create", namespace=SYSTEM_NAMESPACE),
        Permission(ConfigMap, "get", "delete", name=RECORD, namespace=SYSTEM_NAMESPACE),
    )


def add_operations(manager: Manager, options: Options, requests: OpenRequests, reconciler: OperationReconciler) -> None:
    """Operationrequests, which fail when the deletion of their User begins."""

    @mapped
    async def of_deletion(deletion: Deleterequest) -> list[Request]:
        has_begun = deletion.status.phase == "Processing"
        return await requests.operations(deletion.spec.user) if has_begun else []

    builder = controller_for(
        manager,
        Operationrequest,
        namespace=SYSTEM_NAMESPACE,
        workers=options.request_workers,
        limiter=_limiter(options),
    )
    builder.watches(Deleterequest, of_deletion).watches(ServiceAccount, _nothing, namespace=SYSTEM_NAMESPACE)
    builder.watches(Namespace, _nothing).watches(RoleBinding, _nothing).watches(User, _nothing)
    builder.complete(reconciler)


def add_deletions(manager: Manager, options: Options, requests: OpenRequests, reconciler: DeletionReconciler) -> None:
    """Deleterequests, which go on when something is gone that they wait for."""

    @mapped
    async def of_user(user: Object) -> list[Request]:
        return await requests.deletions(user.metadata.name)

    @mapped
    async def of_workspace(namespace: Object) -> list[Request]:
        user = user_of(namespace.metadata.name)
        return await requests.deletions(user) if user is not None else []

    @mapped
    async def of_operation(operation: Operationrequest) -> list[Request]:
        return await requests.deletions(operation.spec.user)

    (
        controller_for(manager, Deleterequest, workers=options.request_workers, limiter=_limiter(options))
        .watches_metadata(User, of_user, where=labels_changed)  # by which it may be marked, or when it is gone
        .watches_metadata(Namespace, of_workspace, where=labels_changed)
        .watches(Operationrequest, of_operation, namespace=SYSTEM_NAMESPACE)
        .complete(reconciler)
    )


def _limiter(options: Options) -> RateLimiter:
    first, longest = options.request_min_retry_delay, options.request_max_retry_delay
    return ExponentialBackoff(first.total_seconds(), longest.total_seconds())


async def _policy(_: Object) -> list[Request]:
    return [Request("", POLICY)]


@Handler
def _nothing(_: Event[Object]) -> list[Request]:
    """It is watched to be read from the cache."""
    return []
