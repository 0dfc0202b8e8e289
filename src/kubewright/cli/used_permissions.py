"""What an operator has requested, as the grants that its roles need, and beside what they have.

Tests have namespaces of their own, which say nothing of those of the operator. What they did there is needed wherever
the operator acts: in the namespaces of its roles, or in all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kubewright.api.errors import KubernetesError
from kubewright.api.rbac.v1 import ClusterRole, Role
from kubewright.deployment import Operator
from kubewright.manager.permissions import Permission
from kubewright.manager.roles import Grant
from kubewright.testing.audit_file import AuditFileRequest, requests_in
from kubewright.testing.roles import exact_grants, recorded_permissions


class UsedPermissions(Struct, frozen=True):
    """What was used, and what no request shows."""

    grants: set[Grant]
    warnings: list[str]

    def permissions(self) -> list[Permission]:
        """For roles."""
        return [
            Permission(f"{each.group}/{each.resource}", each.verb, namespace=each.namespace, name=each.name)
            for each in sorted(self.grants)
        ]


def used_permissions(file: Path, operator: Operator, users: Collection[str]) -> UsedPermissions:
    """What the requests in a file needed.

    Those of the given users count; if there are none, those of the operator's ServiceAccount, and what tests recorded.
    """
    found = dict.fromkeys(request for request in requests_in(file) if _counts(request, operator, users))
    if not found:
        wanted = ", ".join(users) or f"{_account(operator)}, and no test recorded any"
        raise KubernetesError(f"{file} has no requests of {wanted}: name their users with --user NAME")
    namespaces = {role.metadata.namespace or "" for role in operator.bound_roles} - {""}
    grants: set[Grant] = set()
    warnings: dict[str, None] = {}
    for is_of_test in (False, True):
        part = [replace(each, user=operator.name) for each in found if each.is_of_test == is_of_test]
        recorded = recorded_permissions(part, operator.name)
        warnings |= dict.fromkeys(recorded.warnings)
        exact = exact_grants(recorded.permissions)
        for grant in _without_many_names(exact) if is_of_test else exact:
            grants |= set(_placed(grant, operator, namespaces, is_of_test=is_of_test))
    return UsedPermissions(grants, list(warnings))


def granted(roles: Iterable[ClusterRole | Role]) -> set[Grant]:
    """What roles permit, but for paths that are not of resources."""
    return {
        Grant(role.metadata.namespace or "", group, resource, verb, name)
        for role in roles
        for rule in role.rules
        for group, resource, verb, name in product(
            rule.api_groups, rule.resources, rule.verbs, rule.resource_names or [""]
        )
    }


def _counts(request: AuditFileRequest, operator: Operator, users: Collection[str]) -> bool:
    return request.user in users if users else request.is_of_test or request.user == _account(operator)


def _account(operator: Operator) -> str:
    return f"system:serviceaccount:{operator.namespace}:{operator.name}"


def _without_many_names(grants: Collection[Grant]) -> Iterator[Grant]:
    """The same, of any names where tests had different ones: each test may have had one, in a namespace of its own."""
    names: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for grant in grants:
        if grant.namespace and grant.verb != "create":
            names[grant.group, grant.resource].add(grant.name)
    for grant in grants:
        has_many = grant.namespace and len(names[grant.group, grant.resource]) > 1
        yield grant._replace(name="") if has_many else grant


def _placed(grant: Grant, operator: Operator, namespaces: set[str], *, is_of_test: bool) -> Iterator[Grant]:
    """Where the operator needs it: its roles are for some namespaces besides its own, or for all."""
    elsewhere: Sequence[str] = sorted(namespaces - {operator.namespace})
    if (grant.group, grant.resource.partition("/")[0]) == ("", "namespaces"):
        yield grant._replace(namespace="")  # it is in none, though requests about one are taken for requests in it
    elif not grant.namespace or grant.namespace in namespaces:
        yield grant
    elif is_of_test and grant.name:
        yield grant._replace(namespace=operator.namespace)
    elif not elsewhere:
        yield grant._replace(namespace="")
    elif is_of_test:
        yield from (grant._replace(namespace=namespace) for namespace in elsewhere)
    else:
        yield grant
