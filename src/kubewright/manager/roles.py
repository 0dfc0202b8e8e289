"""The roles of a program, from the permissions it needs: what is checked at its start is what is rendered.

    needed = await declared_permissions(setup)
    print(roles_yaml("podmanager", needed))

A permission without a namespace is in a ClusterRole, every other one in a Role of its namespace. Rules are merged and
sorted: equal permissions give the same bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from kubewright.api.codec import to_json
from kubewright.api.meta import ObjectMeta
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject
from kubewright.client import Client, Config
from kubewright.client.errors import TransportError
from kubewright.manager.manager import Manager, SetupError
from kubewright.manager.permissions import Permission
from kubewright.manager.setup import SetupResult, set_up
from kubewright.manifest.yaml import to_yaml

RBAC = "rbac.authorization.k8s.io"

# Never resolved: nothing may be requested of it.
_NO_SERVER = Config(server="https://kubernetes.invalid")


class Grant(NamedTuple):
    """One verb on one resource: a permission in its smallest parts."""

    namespace: str
    """Empty for all."""
    group: str
    resource: str
    """With its subresource."""
    verb: str
    name: str = ""
    """Empty for all."""

    def covers(self, other: Grant) -> bool:
        """Whether a role that grants this permits the other."""
        return (
            self.group in ("*", other.group)
            and self.resource in ("*", other.resource)
            and self.verb in ("*", other.verb)
            and self.namespace in ("", other.namespace)
            and self.name in ("", other.name)
        )

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        which = f' "{self.name}"' if self.name else ""
        where = f' in the namespace "{self.namespace}"' if self.namespace else ""
        return f"{self.verb} {resource}{which}{where}"


def grants_of(permissions: Iterable[Permission]) -> set[Grant]:
    """The parts of permissions. Who may list may also get: it reveals nothing more, and a patch is made again on it."""
    return {
        Grant(permission.namespace, permission.resource.group, permission.resource.path, verb, permission.name)
        for permission in permissions
        for verb in (*permission.verbs, *(("get",) if "list" in permission.verbs else ()))
    }


def rules_of(permissions: Iterable[Permission]) -> dict[str, list[PolicyRule]]:
    """The rules that permit them and nothing else, by namespace; those of "" are for the whole cluster."""
    grants = grants_of(permissions)
    needed = {each for each in grants if not any(other != each and other.covers(each) for other in grants)}
    verbs: defaultdict[tuple[str, str, str, str], set[str]] = defaultdict(set)
    for grant in needed:
        verbs[grant.namespace, grant.group, grant.resource, grant.name].add(grant.verb)
    names: defaultdict[tuple[str, str, str, bool, tuple[str, ...]], set[str]] = defaultdict(set)
    for (namespace, group, resource, name), allowed in verbs.items():
        names[namespace, group, resource, bool(name), tuple(sorted(allowed))].add(name)
    resources: defaultdict[tuple[str, str, tuple[str, ...], tuple[str, ...]], set[str]] = defaultdict(set)
    for (namespace, group, resource, _, allowed_verbs), found in names.items():
        resources[namespace, group, tuple(sorted(found - {""})), allowed_verbs].add(resource)
    rules: defaultdict[str, list[PolicyRule]] = defaultdict(list)
    for (namespace, group, of_names, allowed_verbs), of_resources in sorted(
        resources.items(), key=lambda item: (item[0][0], item[0][1], sorted(item[1]), item[0][2:])
    ):
        rule = PolicyRule(
            api_groups=[group], resources=sorted(of_resources), resource_names=list(of_names), verbs=list(allowed_verbs)
        )
        rules[namespace].append(rule)
    return dict(rules)


def roles_of(name: str, permissions: Iterable[Permission]) -> list[ClusterRole | Role]:
    """The ClusterRole, if there is anything for it, and the Roles by namespace, all of that name."""
    return [
        Role(metadata=ObjectMeta(name=name, namespace=namespace), rules=rules)
        if namespace
        else ClusterRole(metadata=ObjectMeta(name=name), rules=rules)
        for namespace, rules in rules_of(permissions).items()
    ]


def bindings_of(roles: Iterable[ClusterRole | Role], *subjects: Subject) -> Iterator[ClusterRoleBinding | RoleBinding]:
    """What binds each role to the subjects, named and labelled as the role."""
    for role in roles:
        reference = RoleRef(api_group=RBAC, kind=role.kind, name=role.metadata.name)
        metadata = ObjectMeta(
            name=role.metadata.name, namespace=role.metadata.namespace, labels=dict(role.metadata.labels)
        )
        kind = RoleBinding if isinstance(role, Role) else ClusterRoleBinding
        yield kind(metadata=metadata, role_ref=reference, subjects=list(subjects))


def roles_yaml(name: str, permissions: Iterable[Permission]) -> str:
    """`roles_of` as YAML documents."""
    return "---\n".join(to_yaml(to_json(role)) for role in roles_of(name, permissions))


async def declared_permissions(
    setup: Callable[..., SetupResult], *options: object, manager: Callable[[Client], Manager] = Manager
) -> list[Permission]:
    """What a program needs, by its setup function, which is called without a cluster.

    `manager` makes the manager with what decides over needs besides: namespaces, election, `webhook_service`,
    `metrics_secure`. Raises `SetupError` when the setup function requests something of the API server.
    """
    async with Client(_NO_SERVER) as client:
        made = manager(client)
        try:
            await set_up(setup, made, *options)
        except TransportError as error:
            called = getattr(setup, "__name__", str(setup))
            raise SetupError(
                f"the permissions of {called} cannot be found out: it needs the API server, and is called without one; "
                f"do that in a function given to manager.add ({error})"
            ) from error
        else:
            return made.needs
        finally:
            await made.aclose()
