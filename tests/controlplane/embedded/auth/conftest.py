"""Roles and bindings in memory with their authorizer, and stored objects with what issues and checks tokens."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import text
from kubewright.controlplane.embedded.auth.authenticate import Authenticator
from kubewright.controlplane.embedded.auth.rbac import Authorizer
from kubewright.controlplane.embedded.auth.token_request import TokenIssuer
from kubewright.controlplane.embedded.auth.tokens import TokenSigner
from kubewright.controlplane.embedded.auth.users import UserInfo


@dataclass
class World:
    """An RBACSource that tests fill. Whatever is added is seen by `authorizer` at once."""

    objects: dict[str, list[JSONObject]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.authorizer = Authorizer(self)

    def cluster_roles(self) -> list[JSONObject]:
        return self.objects.get("ClusterRole", [])

    def cluster_role_bindings(self) -> list[JSONObject]:
        return self.objects.get("ClusterRoleBinding", [])

    def roles(self) -> list[JSONObject]:
        return self.objects.get("Role", [])

    def role_bindings(self) -> list[JSONObject]:
        return self.objects.get("RoleBinding", [])

    def add(self, found: JSONObject) -> None:
        self.objects.setdefault(str(found["kind"]), []).append(found)
        self.authorizer.invalidate()

    def role(self, name: str, *rules: JSONValue, namespace: str = "") -> None:
        metadata: JSONObject = {"name": name, **({"namespace": namespace} if namespace else {})}
        self.add({"kind": "Role" if namespace else "ClusterRole", "metadata": metadata, "rules": list(rules)})

    def bind(self, name: str, role: str, *subjects: JSONValue, namespace: str = "", kind: str = "ClusterRole") -> None:
        metadata: JSONObject = {"name": name, **({"namespace": namespace} if namespace else {})}
        self.add(
            {
                "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
                "metadata": metadata,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
                "subjects": list(subjects),
            }
        )


@pytest.fixture
def world() -> World:
    return World()


@dataclass
class Cluster:
    """Stored objects by (plural, namespace, name), a clock, and what issues and checks tokens about them."""

    objects: dict[tuple[str, str, str], JSONObject] = field(default_factory=dict)
    now: float = 1_700_000_000.0

    def __post_init__(self) -> None:
        signer = TokenSigner.generate("https://issuer.test")
        tokens = {"static": UserInfo("ann", ("ops",), "42")}
        self.signer = signer
        self.authenticator = Authenticator(signer, self.lookup, clock=lambda: self.now, tokens=tokens)
        self.issuer = TokenIssuer(signer, self.lookup, lambda: self.now, self.authenticator.audiences)

    def lookup(self, plural: str, namespace: str, name: str) -> JSONObject | None:
        return self.objects.get((plural, namespace, name))

    def store(self, plural: str, name: str, namespace: str = "home", uid: str = "", **fields: JSONValue) -> None:
        metadata: JSONObject = {"name": name, "namespace": namespace, "uid": uid or f"uid-of-{name}"}
        self.objects[plural, namespace, name] = {"metadata": metadata, **fields}

    def delete(self, plural: str, name: str, namespace: str = "home") -> None:
        del self.objects[plural, namespace, name]

    def token(self, **spec: JSONValue) -> str:
        return text(self.issuer.issue("home", "robot", {"spec": spec}), "status", "token")

    def claims(self, token: str) -> JSONObject:
        return self.signer.verified(token) or {}


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.store("serviceaccounts", "robot")
    return made
