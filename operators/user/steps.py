"""The steps by which a User gets what it has, each reported by a condition; see `pipeline.diagram()`."""

from __future__ import annotations

from contextlib import suppress

from kubewright import AlreadyExists, ObjectMeta
from kubewright.api.core.v1 import Namespace, ServiceAccount
from kubewright.api.rbac.v1 import ClusterRole, Role, RoleBinding
from kubewright.patterns import NotYet, Pipeline, get_condition, step

from .context import UserContext
from .kubeconfig import has_token_of, sync_kubeconfig
from .membership import take_role
from .names import (
    CREATOR,
    OWNER,
    ROLE_NAMES,
    SYSTEM_NAMESPACE,
    RoleName,
    cluster_role_of,
    role_reference,
    subjects_of,
)
from .ownership import check_usable, is_of, take_over

INITIALIZED = "Initialized"

_POD_SECURITY = {"enforce": "baseline", "audit": "restricted", "warn": "restricted"}
_POD_SECURITY_VERSION = "v1.25"


@step(INITIALIZED)
async def initialize(context: UserContext) -> None:
    """Ask the quota about a new User, once; the schema has given it its phase and an empty list of conditions."""
    before = get_condition(context.object, INITIALIZED)
    if context.quota is None or (before is not None and before.status == "True"):
        return
    refusal = await context.quota(context.object)
    if refusal is not None:
        raise NotYet(refusal, after=60, reason="QuotaExceeded", warn=True)


@step("NamespaceSyncReady", needs=[initialize])
async def namespace(context: UserContext) -> None:
    """The workspace, with who owns it and what its pods may be."""
    found = await context.find(Namespace(metadata=ObjectMeta(name=context.workspace)))
    is_kept = found is not None and found.metadata.annotations.get(CREATOR) == context.name
    check_usable(context.object, found, may_adopt=is_kept)
    wanted = Namespace(metadata=context.metadata(context.workspace))
    wanted.metadata.labels = {OWNER: context.owner} | ({} if context.is_privileged else pod_security())
    await context.ensure(wanted)


@step("ServiceAccountSyncReady", needs=[initialize])
async def service_account(context: UserContext) -> None:
    """The identity that the kubeconfig has."""
    await _ensure_system_namespace(context)
    wanted = ServiceAccount(metadata=context.metadata(context.name, SYSTEM_NAMESPACE))
    found = await context.find(wanted)
    is_lost = found is not None and not is_of(context.object, found) and await has_token_of(context, found)
    check_usable(context.object, found, may_adopt=is_lost)
    context.service_account = await context.ensure(wanted)


@step("KubeConfigSyncReady", needs=[service_account])
async def kubeconfig(context: UserContext) -> None:
    """A kubeconfig for the service account, in a Secret."""
    await sync_kubeconfig(context)


@step("RoleSyncReady", needs=[namespace])
async def roles(context: UserContext) -> None:
    """A Role with the rules of each ClusterRole."""
    for role in ROLE_NAMES:
        meaning = await _cluster_role(context, role)
        rules = [rule for rule in meaning.rules if not rule.non_resource_urls]  # which Roles cannot have
        wanted = Role(metadata=context.metadata(role, context.workspace), rules=rules)
        await take_over(context.client, context.object, await context.client.find(wanted))
        await context.ensure(wanted)


@step("RoleBindingSyncReady", needs=[namespace, service_account])
async def role_binding(context: UserContext) -> None:
    """The User owns the workspace."""
    await _cluster_role(context, "Owner")
    wanted = RoleBinding(
        metadata=context.metadata(context.name, context.workspace),
        role_ref=role_reference("Owner"),
        subjects=subjects_of(context.name),
    )
    found = await context.client.find(wanted)
    if found is not None and found.role_ref != wanted.role_ref:
        # What a binding refers to cannot be changed.
        await take_role(context.client, found)
        found = None
    await take_over(context.client, context.object, found)
    await context.ensure(wanted)


pipeline = Pipeline[UserContext](initialize, namespace, service_account, kubeconfig, roles, role_binding)


def pod_security() -> dict[str, str]:
    """The labels by which the API server keeps pods within the Pod Security Standards."""
    prefix = "pod-security.kubernetes.io"
    levels = {f"{prefix}/{mode}": level for mode, level in _POD_SECURITY.items()}
    return levels | {f"{prefix}/{mode}-version": _POD_SECURITY_VERSION for mode in _POD_SECURITY}


async def _ensure_system_namespace(context: UserContext) -> None:
    if await context.client.find(Namespace, SYSTEM_NAMESPACE) is None:
        with suppress(AlreadyExists):
            await context.client.create(Namespace(metadata=ObjectMeta(name=SYSTEM_NAMESPACE)))


async def _cluster_role(context: UserContext, role: RoleName) -> ClusterRole:
    """What the role means: to bind a ClusterRole that does not exist is not refused, and would give no rights."""
    name = cluster_role_of(role)
    found = await context.client.find(ClusterRole, name)
    if found is None:
        missing = f"the ClusterRole {name} does not exist: apply the manifests of the operator again"
        raise NotYet(missing, after=30, reason="RoleMissing", warn=True)
    return found
