"""The object of the benchmark, and the seven children it has."""

from __future__ import annotations

from kubewright import Condition, Model, ObjectMeta, Resource, resource
from kubewright.api import Object
from kubewright.api.core.v1 import ConfigMap, Secret, ServiceAccount
from kubewright.api.rbac.v1 import PolicyRule, Role, RoleBinding, RoleRef, Subject


class AccountSpec(Model):
    email: str


class AccountStatus(Model):
    phase: str = "Pending"
    observed_generation: int = 0
    conditions: list[Condition] = []


@resource("bench.kubewright.dev/v1")
class Account(Resource[AccountSpec, AccountStatus]):
    """Somebody, with rights and settings."""


CHILDREN: tuple[type[Object], ...] = (ServiceAccount, Role, RoleBinding, ConfigMap, Secret)


def service_account(account: Account) -> ServiceAccount:
    return ServiceAccount(metadata=_metadata(account, ""))


def role(account: Account, name: str, verbs: list[str]) -> Role:
    rules = [
        PolicyRule(api_groups=["", "apps", "batch"], resources=["pods", "deployments", "jobs"], verbs=verbs),
        PolicyRule(api_groups=[""], resources=["configmaps", "secrets", "services"], verbs=verbs),
    ]
    return Role(metadata=_metadata(account, f"-{name}"), rules=rules)


def binding(account: Account) -> RoleBinding:
    return RoleBinding(
        metadata=_metadata(account, ""),
        role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name=f"{account.metadata.name}-owner"),
        subjects=[Subject(kind="ServiceAccount", name=account.metadata.name, namespace=account.metadata.namespace)],
    )


def settings(account: Account) -> ConfigMap:
    return ConfigMap(metadata=_metadata(account, ""), data={"email": account.spec.email, "theme": "dark"})


def secret(account: Account) -> Secret:
    return Secret(metadata=_metadata(account, ""), type="Opaque", data={"token": "c2VjcmV0"})


def _metadata(account: Account, suffix: str) -> ObjectMeta:
    return ObjectMeta(
        name=f"{account.metadata.name}{suffix}",
        namespace=account.metadata.namespace,
        labels={"bench.kubewright.dev/owner": account.metadata.name},
    )
