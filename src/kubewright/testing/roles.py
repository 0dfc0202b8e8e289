"""Roles in tests: acting with just the permissions of a program, and finding out which ones it has used.

    needed = await declared_permissions(setup)
    async with restricted_client(plane, needed, user="podmanager") as client:
        manager = Manager(client)
        ...
    used = recorded_permissions(plane.audit.events, "podmanager")
    assert compare_permissions(needed, used.permissions) == ""

`print(roles_yaml("podmanager", used.everywhere()))` shows the least role that the tests needed.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Protocol

from msgspec import Struct

from kubewright.api.rbac.v1 import Subject
from kubewright.client import Client
from kubewright.controlplane import ControlPlane
from kubewright.manager.permissions import (
    Permission,
    ResourceName,
    can_have_kinds,
    explain,
    is_verb,
    missing_permissions,
)
from kubewright.manager.roles import RBAC, Grant, bindings_of, grants_of, roles_of
from kubewright.testing.namespaces import unique_name
from kubewright.testing.recording import recorded

_TIMEOUT = 60.0

# Every authenticated user may create these.
_FOR_ALL = frozenset({"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"})
# Too much to grant all of. A program may have one of the first by a name that does not change, or many by any names.
_NAMED_ALONE = frozenset({("coordination.k8s.io", "leases"), ("", "secrets")})
# Those that it extends the API with.
_NAMED = frozenset(
    {
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
    }
)
_CHANGES = frozenset({"create", "update", "patch"})
# Checked when roles and bindings are written.
_UNSEEN = frozenset({"bind", "escalate"})


class AuditedRequest(Protocol):
    """What is read of an event of an audit log; `EmbeddedControlPlane.audit` has such ones."""

    @property
    def user(self) -> str:
        """Who has sent it."""

    @property
    def verb(self) -> str:
        """As in rules."""

    @property
    def group(self) -> str:
        """Of the resource."""

    @property
    def resource(self) -> str:
        """The plural; empty for paths that are not of a resource."""

    @property
    def subresource(self) -> str:
        """Empty for the resource itself."""

    @property
    def namespace(self) -> str:
        """Empty for requests of the whole cluster."""

    @property
    def name(self) -> str:
        """Empty for collections."""

    @property
    def is_apply(self) -> bool:
        """Whether a patch is a server-side apply."""


class RecordedPermissions(Struct, frozen=True):
    """The least permissions that some requests needed."""

    permissions: list[Permission]
    """For `roles_of`; those of one namespace are in that one."""
    warnings: list[str]
    """What may be needed besides, and no request shows."""

    def everywhere(self) -> list[Permission]:
        """The permissions for all namespaces instead, but those of named objects: of tests that have their own."""
        return [each if each.name else Permission(each.kind, *each.verbs, namespace="") for each in self.permissions]


@asynccontextmanager
async def restricted_client(
    plane: ControlPlane, permissions: Iterable[Permission], *, user: str = ""
) -> AsyncIterator[Client]:
    """A client of a new user who may do what the permissions say and nothing else. Its roles go after the block,
    however that ends.

    `user` is the name, by default a unique one. `pytest --record-permissions FILE` records its requests.
    """
    needed = list(permissions)
    added = plane.add_user(user or unique_name("operator"))
    roles = roles_of(added.name, needed)
    bindings = list(bindings_of(roles, Subject(kind="User", name=added.name, api_group=RBAC)))
    async with plane.client() as admin, AsyncExitStack() as created:
        for obj in (*roles, *bindings):
            await admin.create(obj)
            created.push_async_callback(admin.delete, obj, missing_ok=True)
        async with plane.client(added) as client:
            await _permitted(client, needed)
            with recorded(client, added.name):
                yield client


async def _permitted(client: Client, needed: list[Permission]) -> None:
    """Return when the server has noticed the roles, which takes a real one a moment."""
    missing = await missing_permissions(client, needed)
    try:
        async with asyncio.timeout(_TIMEOUT):
            while missing:
                await asyncio.sleep(0.05)
                missing = await missing_permissions(client, needed)
    except TimeoutError:
        raise TimeoutError(f"the server does not permit what roles permit: {explain(missing)}") from None


def recorded_permissions(requests: Iterable[AuditedRequest], user: str) -> RecordedPermissions:
    """The least permissions that the user needed for its requests, refused ones included.

    `list` comes with every `watch`, which begins again with one; `create` with every apply, and `patch` with every
    event that is created. Names are kept of definitions and of configurations of webhooks, and of a Lease or a Secret
    that was the only one. What no permission can have, such as a request without a verb, is left out.
    """
    found: set[Grant] = set()
    left_out: set[str] = set()
    for request in requests:
        if request.user != user or not request.resource or request.resource in _FOR_ALL:
            continue
        if not can_have_kinds(request.group):
            left_out.add(request.group)
        elif is_verb(request.verb):
            resource = ResourceName(request.group, request.resource, request.subresource)
            is_named = (request.group, request.resource) in _NAMED | _NAMED_ALONE and request.verb != "create"
            name = request.name if is_named else ""
            for verb in _verbs(request):
                found.add(Grant(request.namespace, request.group, resource.path, verb, name))
    names: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for grant in found:
        if grant.verb != "create":
            names[grant.namespace, grant.group, grant.resource].add(grant.name)
    verbs: defaultdict[tuple[str, str, str, str], set[str]] = defaultdict(set)
    for grant in found:
        is_kept = (
            len(names[grant.namespace, grant.group, grant.resource]) <= 1 or (grant.group, grant.resource) in _NAMED
        )
        verbs[grant.namespace, grant.group, grant.resource, grant.name if is_kept else ""].add(grant.verb)
    permissions = [
        Permission(f"{group}/{resource}", *sorted(used), namespace=namespace, name=name)
        for (namespace, group, resource, name), used in sorted(verbs.items())
    ]
    warnings = [
        f'requests to the API group "{group}" are left out: those without a dot are Kubernetes\' own, and it is none'
        for group in sorted(left_out)
    ]
    return RecordedPermissions(permissions, [*dict.fromkeys(_warnings(sorted(found))), *warnings])


def _verbs(request: AuditedRequest) -> Iterable[str]:
    yield request.verb
    if request.verb == "watch":
        yield "list"
    elif request.is_apply and not request.subresource:  # through which no object is created
        yield "create"
    elif request.verb == "create" and request.resource == "events":
        yield "patch"


def _warnings(grants: Iterable[Grant]) -> Iterable[str]:
    for grant in grants:
        if grant.group != RBAC or grant.verb not in _CHANGES:
            continue
        if grant.resource in ("roles", "clusterroles"):
            yield (
                f"it writes {grant.resource}: unless it has itself every permission that it puts there, its role needs "
                f'the verb "escalate" on {grant.resource}'
            )
        elif grant.resource in ("rolebindings", "clusterrolebindings"):
            yield (
                f"it writes {grant.resource}: unless it has itself every permission of the roles it binds, its role "
                'needs the verb "bind" on these roles'
            )


def compare_permissions(declared: Iterable[Permission], used: Iterable[Permission]) -> str:
    """What is declared and was never used, and what was used and is not declared, line by line; empty if nothing.

    Not reported as unused: `get`, which roles have with every `list`, the update of `finalizers`, which only an
    admission plugin checks, and the verbs `bind` and `escalate`, which no request has.
    """
    has, needs = grants_of(declared), exact_grants(used)
    return compare_grants(has, has, needs)


def compare_grants(needed: set[Grant], permitted: set[Grant], used: set[Grant]) -> str:
    """The same in parts: `needed` by the program itself, `permitted` by its roles, which may have more."""
    implied = {each._replace(verb="get") for each in needed if each.verb == "list"}
    unused = {
        each
        for each in needed - implied
        if not any(each.covers(grant) for grant in used)
        and not each.resource.endswith("/finalizers")
        and each.verb not in _UNSEEN
    }
    lacking = {grant for grant in used if not any(each.covers(grant) for each in permitted)}
    lines = [f"declared and never used: {each}" for each in sorted(unused)]
    lines += [f"used and not declared: {each}" for each in sorted(lacking)]
    return "\n".join(lines)


def exact_grants(permissions: Iterable[Permission]) -> set[Grant]:
    """The parts of permissions, without any that a role would have besides."""
    return {
        Grant(each.namespace, each.resource.group, each.resource.path, verb, each.name)
        for each in permissions
        for verb in each.verbs
    }
