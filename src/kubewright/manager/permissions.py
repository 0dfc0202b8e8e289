"""The permissions of an operator, checked at its start.

    needed = [Permission(Pod, "list", "watch"), Permission("apps/deployments/scale", "patch")]
    if missing := await missing_permissions(client, needed):
        print(explain(missing))

Each verb is one SelfSubjectAccessReview, which every authenticated user may create.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.json import encode

from kubewright.api.errors import KubernetesError
from kubewright.api.resources import Object, resource_info
from kubewright.client import Client
from kubewright.client.errors import NotFound

MAX_AT_ONCE = 16

_VERB = r"[a-z]+|\*"
# Groups without a dot are Kubernetes' own: a CustomResourceDefinition needs one.
_PLAIN_GROUPS = frozenset({"", "apps", "autoscaling", "batch", "extensions", "policy"})


class Permission:
    """The verbs that an operator needs for a kind, in one namespace or in all.

    The kind is a Python type, whose subresource may be named, or a text: "pods", "apps/deployments",
    "apps/deployments/scale", and "/pods/log" with a leading slash for what belongs to the group without a name.
    """

    # Not a Struct, whose constructor takes one argument per field.
    __slots__ = ("kind", "name", "namespace", "subresource", "verbs")

    def __init__(
        self, kind: type[Object] | str, *verbs: str, subresource: str = "", namespace: str = "", name: str = ""
    ) -> None:
        wrong = [verb for verb in verbs if not is_verb(str(verb))]
        if not verbs or wrong:
            found = f"found {', '.join(map(repr, wrong))}" if wrong else "found none"
            raise ValueError(f'{_called(kind)} needs verbs such as "get", "list", "watch" or "create", or "*": {found}')
        if isinstance(kind, str):
            _parse(kind)
            if subresource:
                raise ValueError(f'{_called(kind)}: write the subresource into the text, "{kind}/{subresource}"')
        elif namespace and resource_info(kind).namespaced is False:
            raise ValueError(f'{_called(kind)} is not in any namespace: leave out namespace="{namespace}"')
        self.kind: Final = kind
        self.verbs: Final = tuple(dict.fromkeys(verbs))
        self.subresource: Final = subresource
        self.namespace: Final = namespace
        self.name: Final = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Permission) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        kind = f'"{self.kind}"' if isinstance(self.kind, str) else self.kind.__name__
        parts = [kind, *(f'"{verb}"' for verb in self.verbs)]
        named = {"subresource": self.subresource, "namespace": self.namespace, "name": self.name}
        parts += [f'{key}="{value}"' for key, value in named.items() if value]
        return f"Permission({', '.join(parts)})"

    def with_verbs(self, *verbs: str) -> Permission:
        """The same with other verbs."""
        return Permission(self.kind, *verbs, subresource=self.subresource, namespace=self.namespace, name=self.name)

    def within(self, namespaces: Collection[str]) -> list[Permission]:
        """The same in each of these namespaces, unless it names one, or its kind is not known to have any."""
        if self.namespace or not namespaces or isinstance(self.kind, str) or not resource_info(self.kind).namespaced:
            return [self]
        return [
            Permission(self.kind, *self.verbs, subresource=self.subresource, namespace=namespace, name=self.name)
            for namespace in namespaces
        ]

    @property
    def resource(self) -> ResourceName:
        """What it is about; of a kind that is known by its name only, with the usual plural."""
        if isinstance(self.kind, str):
            return _parse(self.kind)
        info = resource_info(self.kind)
        return ResourceName(info.gvk.group, info.plural, self.subresource)

    def _parts(self) -> tuple[type[Object] | str, tuple[str, ...], str, str, str]:
        return self.kind, self.verbs, self.subresource, self.namespace, self.name


def is_verb(verb: str) -> bool:
    """Whether it is one, as rules have them."""
    return re.fullmatch(_VERB, verb) is not None


def can_have_kinds(group: str) -> bool:
    """Whether kinds can be in an API group: those without a dot are Kubernetes' own."""
    return "." in group or group in _PLAIN_GROUPS


class ResourceName(Struct, frozen=True):
    """Group and plural of a kind."""

    group: str
    resource: str
    subresource: str = ""

    @property
    def path(self) -> str:
        """As in the rules of roles: "deployments", "deployments/scale"."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def __str__(self) -> str:
        return f"{self.path}.{self.group}" if self.group else self.path


class MissingPermission(Struct, frozen=True):
    """Verbs of a permission that we do not have; `permission` has only those."""

    permission: Permission
    resource: ResourceName
    user: str
    """The user name that the server knows us by; empty when it does not reveal it."""
    reason: str
    """The reason that the server gives, often none."""


async def missing_permissions(client: Client, permissions: Iterable[Permission]) -> list[MissingPermission]:
    """Those of `permissions` that we lack, in their order; empty when we have all of them."""
    needed = list(dict.fromkeys(permissions))
    resources = [await _resource(client, permission) for permission in needed]
    questions = [(index, verb) for index, permission in enumerate(needed) for verb in permission.verbs]
    limit = asyncio.Semaphore(MAX_AT_ONCE)

    async def review(index: int, verb: str) -> str | None:
        async with limit:
            return await _denied(client, needed[index], resources[index], verb)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(review(index, verb)) for index, verb in questions]
    except ExceptionGroup as errors:
        # One error is enough: all requests are of the same kind to the same server.
        raise errors.exceptions[0] from None
    denied: dict[int, dict[str, str]] = {}
    for (index, verb), task in zip(questions, tasks, strict=True):
        if (reason := task.result()) is not None:
            denied.setdefault(index, {})[verb] = reason
    if not denied:
        return []
    user = await _user(client)
    return [
        MissingPermission(
            needed[index].with_verbs(*verbs),
            resources[index],
            user,
            "; ".join(dict.fromkeys(reason for reason in verbs.values() if reason)),
        )
        for index, verbs in denied.items()
    ]


def explain(missing: Sequence[MissingPermission]) -> str:
    """What is not permitted, line by line, and the rules to add to roles, as YAML. Empty when nothing is missing."""
    if not missing:
        return ""
    lines = []
    for each in missing:
        permission, resource = each.permission, each.resource
        doing = " and ".join(_GERUNDS.get(verb, f"the verb {verb} on") for verb in permission.verbs)
        which = f'"{permission.name}" of ' if permission.name else ""
        where = f'in the namespace "{permission.namespace}"' if permission.namespace else "at the cluster scope"
        who = f'User "{each.user}"' if each.user else "this program's user"
        lines.append(
            f"{doing} {which}{resource} is not permitted: {who} cannot {', '.join(permission.verbs)} resource "
            f'"{resource.path}" in API group "{resource.group}" {where}{f" ({each.reason})" if each.reason else ""}'
        )
    for namespace in dict.fromkeys(each.permission.namespace for each in missing):
        lines.append(f'add to its Role in the namespace "{namespace}":' if namespace else "add to its ClusterRole:")
        lines += [_rule(each) for each in missing if each.permission.namespace == namespace]
    return "\n".join(lines)


def _rule(missing: MissingPermission) -> str:
    """The rule of a role that would permit it, as YAML. A list of quoted texts is the same in JSON."""
    permission, resource = missing.permission, missing.resource
    fields: dict[str, list[str]] = {"apiGroups": [resource.group], "resources": [resource.path]}
    if permission.name:
        fields["resourceNames"] = [permission.name]
    fields["verbs"] = list(permission.verbs)
    lists = {name: ", ".join(encode(value).decode() for value in values) for name, values in fields.items()}
    return "- " + "\n  ".join(f"{name}: [{values}]" for name, values in lists.items())


_GERUNDS = {
    "get": "reading",
    "list": "listing",
    "watch": "watching",
    "create": "creating",
    "update": "updating",
    "patch": "patching",
    "delete": "deleting",
    "deletecollection": "deleting collections of",
    "*": "doing everything with",
}


async def _denied(client: Client, permission: Permission, resource: ResourceName, verb: str) -> str | None:
    """None when it is allowed, else the server's reason, empty if it has none."""
    # Imported where used: an operator that declares no permissions never loads the kinds of reviews.
    from kubewright.api.authorization.v1 import ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec

    attributes = ResourceAttributes(
        group=resource.group,
        resource=resource.resource,
        subresource=resource.subresource or None,
        namespace=permission.namespace or None,
        name=permission.name or None,
        verb=verb,
    )
    review = SelfSubjectAccessReview(spec=SelfSubjectAccessReviewSpec(resource_attributes=attributes))
    status = (await client.create(review)).status
    return None if status.allowed else status.reason or status.evaluation_error or ""


async def _resource(client: Client, permission: Permission) -> ResourceName:
    if not isinstance(permission.kind, str) and resource_info(permission.kind).namespaced is None:
        info = resource_info(permission.kind)
        # Known by its kind only. Without its definition the usual plural is the best guess.
        try:
            served = await client.discover(info.gvk.api_version)
        except NotFound:
            served = []
        for each in served:
            if each.kind == info.gvk.kind and "/" not in each.name:
                return ResourceName(info.gvk.group, each.name, permission.subresource)
    return permission.resource


async def _user(client: Client) -> str:
    from kubewright.api.authentication.v1 import SelfSubjectReview

    try:
        review = await client.create(SelfSubjectReview())
    except KubernetesError:
        return ""
    return review.status.user_info.username or ""


def _parse(kind: str) -> ResourceName:
    parts = kind.split("/")
    if len(parts) == 1:
        parts = ["", *parts]
    group = parts[0]
    if len(parts) > 3 or not all(parts[1:]) or not can_have_kinds(group):
        hint = f'; for a subresource of the group without a name write "/{kind}"' if len(parts) == 2 else ""
        raise ValueError(
            f'"{kind}" does not name a resource: expected "pods", "apps/deployments" or "apps/deployments/scale"{hint}'
        )
    return ResourceName(*parts)


def _called(kind: type[Object] | str) -> str:
    return f'Permission("{kind}")' if isinstance(kind, str) else f"Permission({kind.__name__})"
