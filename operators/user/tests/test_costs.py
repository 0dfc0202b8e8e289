"""What Users cost in requests: when they are new, when others change their objects, and when nothing happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from operators.user.names import CREATOR, OWNER, RBAC, SYSTEM_NAMESPACE, kubeconfig_of
from operators.user.tests.deploying import site

from kubewright import Client
from kubewright.api import Object
from kubewright.api.core.v1 import Namespace, Secret, ServiceAccount
from kubewright.api.markers import JSONObject
from kubewright.api.rbac.v1 import Role, RoleBinding
from kubewright.client import MergePatch
from kubewright.testing import count_requests, settled, virtual

NAMESPACES = "PATCH /api/v1/namespaces/{name}"
ACCOUNTS = "PATCH /api/v1/namespaces/{namespace}/serviceaccounts/{name}"
SECRETS = "/api/v1/namespaces/{namespace}/secrets"
TOKENS = "POST /api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
ROLES = "PATCH /apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles/{name}"
BINDINGS = "PATCH /apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings/{name}"
EVENTS = "POST /apis/events.k8s.io/v1/namespaces/{namespace}/events"

Disturb = Callable[[Client], Awaitable[object]]


@virtual
async def test_a_new_user_costs_at_most_15_writes_and_a_settled_one_nothing() -> None:
    async with site() as here:
        await here.create("first")  # which takes one more, for the system namespace
        with count_requests(here.own) as requests:
            await here.create()
            await asyncio.sleep(5)  # events are written a little later
        assert requests.writes == 12, requests.by_path
        assert requests.writes <= 15
        before = here.reconciles
        with count_requests(here.own) as requests:
            await asyncio.sleep(60)
        assert (requests.attempts, here.reconciles - before) == ([], 0)


def changed(
    kind: type[Namespace | ServiceAccount | Role | RoleBinding | Secret], name: str, patch: JSONObject
) -> Disturb:
    namespace = {Namespace: "", ServiceAccount: SYSTEM_NAMESPACE, Secret: SYSTEM_NAMESPACE}.get(kind, "ns-alice")
    return lambda admin: admin.patch(kind, name, MergePatch(patch), namespace=namespace or None)


def deleted(kind: type[Object], name: str) -> Disturb:
    namespace = SYSTEM_NAMESPACE if kind in (ServiceAccount, Secret) else "ns-alice"
    return lambda admin: admin.delete(kind, name, namespace=namespace)


# Tokens are bound to the Secret, and are those of one service account only, so that these are issued again.
ISSUED = {TOKENS: 1, f"PATCH {SECRETS}/{{name}}": 1, EVENTS: 1}

# What has lost its owner is given it again only if that is not being deleted.
ADOPTED = {"GET /apis/user.sealos.io/v1/users/{name}": 1}
DRIFT: dict[str, tuple[Disturb, dict[str, int]]] = {
    "label of the namespace removed": (
        changed(Namespace, "ns-alice", {"metadata": {"labels": {OWNER: None}}}),
        {NAMESPACES: 1},
    ),
    "pod security of the namespace lowered": (
        changed(Namespace, "ns-alice", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}),
        {NAMESPACES: 1},
    ),
    "annotation of the service account changed": (
        changed(ServiceAccount, "alice", {"metadata": {"annotations": {CREATOR: "mallory"}}}),
        {ACCOUNTS: 1},
    ),
    "owner of the service account removed": (
        changed(ServiceAccount, "alice", {"metadata": {"ownerReferences": None}}),
        {ACCOUNTS: 1, **ADOPTED},
    ),
    "owner of the namespace removed": (
        changed(Namespace, "ns-alice", {"metadata": {"ownerReferences": None}}),
        {NAMESPACES: 1, **ADOPTED},
    ),
    "owner of a role removed": (
        changed(Role, "Owner", {"metadata": {"ownerReferences": None}}),
        {ROLES: 1, **ADOPTED},
    ),
    "rules of a role changed": (changed(Role, "Developer", {"rules": []}), {ROLES: 1}),
    "role deleted": (deleted(Role, "Manager"), {ROLES: 1}),
    "subjects of the binding changed": (
        changed(RoleBinding, "alice", {"subjects": [{"kind": "User", "apiGroup": RBAC, "name": "mallory"}]}),
        {BINDINGS: 1},
    ),
    "binding deleted": (deleted(RoleBinding, "alice"), {BINDINGS: 1}),
    "label of the secret removed": (
        changed(Secret, kubeconfig_of("alice"), {"metadata": {"labels": None}}),
        {f"GET {SECRETS}/{{name}}": 1, f"PATCH {SECRETS}/{{name}}": 1},
    ),
    "label of the secret changed": (
        changed(Secret, kubeconfig_of("alice"), {"metadata": {"labels": {OWNER: "mallory"}}}),
        {f"PATCH {SECRETS}/{{name}}": 1},
    ),
    "annotation of the secret changed": (
        changed(Secret, kubeconfig_of("alice"), {"metadata": {"annotations": {CREATOR: "mallory"}}}),
        {f"PATCH {SECRETS}/{{name}}": 1},
    ),
    "service account deleted": (
        deleted(ServiceAccount, "alice"),
        {ACCOUNTS.replace("PATCH", "GET"): 1, ACCOUNTS: 1, **ISSUED},
    ),
    "secret deleted": (
        deleted(Secret, kubeconfig_of("alice")),
        {f"GET {SECRETS}/{{name}}": 1, f"POST {SECRETS}": 1, **ISSUED},
    ),
}


@virtual
async def test_item_58_drift_is_repaired_with_one_write() -> None:
    async with site() as here:
        user = await here.create()
        await asyncio.sleep(5)
        for case, (disturb, expected) in DRIFT.items():
            with count_requests(here.own) as requests:
                await disturb(here.admin)
                await asyncio.sleep(10)
                await settled(here.manager)
            found = {path: count for path, count in requests.by_path.items() if "watch" not in path}
            status = found.pop("PATCH /apis/user.sealos.io/v1/users/{name}/status", 0)
            assert found == expected, case
            assert status == (1 if TOKENS in expected else 0), f"{case}: the status has the hash of the kubeconfig"
            assert (await here.admin.get(user)).status.phase == "Active", case
