"""Role-based authorization, as kube-apiserver does it with `--authorization-mode=RBAC`.

A user may do what a rule of a role allows that is bound to the user, to one of its groups, or to its service
account. There are no denials. The group `system:masters` may do everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.auth.attributes import Attributes, forbidden_request
from kubewright.controlplane.embedded.auth.rules import RBACRule, rules_of
from kubewright.controlplane.embedded.auth.users import MASTERS, UserInfo, service_account_name

# Endlessly many users or paths must not fill the memory; to drop the whole cache is cheap.
_REMEMBERED = 10_000
_MAX_KEY = 2048


def _is_short(key: object) -> bool:
    """Whether a question is worth remembering: a path has room for a megabyte, and reviews can ask about anything."""
    return len(repr(key)) <= _MAX_KEY


class RBACSource(Protocol):
    """Where the authorizer reads roles and bindings, each list in the order in which they shall be tried."""

    def cluster_roles(self) -> Iterable[JSONObject]:
        """Every ClusterRole."""

    def cluster_role_bindings(self) -> Iterable[JSONObject]:
        """Every ClusterRoleBinding."""

    def roles(self) -> Iterable[JSONObject]:
        """Every Role of all namespaces."""

    def role_bindings(self) -> Iterable[JSONObject]:
        """Every RoleBinding of all namespaces."""


class Decision(NamedTuple):
    """A decision, and why: the binding that allowed it, or the roles that are bound but do not exist."""

    allowed: bool
    reason: str = ""


class RoleReference(NamedTuple):
    """The role that a binding binds; `namespace` is the binding's and is empty for ClusterRoleBindings."""

    kind: str
    name: str
    namespace: str = ""

    def missing(self) -> str:
        """What is wrong when there is no such role."""
        if self.kind in ("Role", "ClusterRole"):
            return f"{self.kind.lower()}.rbac.authorization.k8s.io {quoted(self.name)} not found"
        return f"unsupported role reference kind: {quoted(self.kind)}"


class Holdings(NamedTuple):
    """The rules a user holds, and the roles that are bound to it but do not exist."""

    rules: tuple[RBACRule, ...]
    missing: tuple[RoleReference, ...]


class _Subject(NamedTuple):
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class _Binding:
    kind: str
    name: str
    role: RoleReference
    subjects: tuple[tuple[_Subject, str], ...]
    """The subjects: the user name or group to compare with, and the description in reasons."""

    def reason(self, user: UserInfo) -> str:
        who = next(description for subject, description in self.subjects if _is(subject, user))
        name = f"{self.name}/{self.role.namespace}" if self.role.namespace else self.name
        return f"RBAC: allowed by {self.kind} {quoted(name)} of {self.role.kind} {quoted(self.role.name)} to {who}"


_Bindings: TypeAlias = dict[_Subject, list[tuple[int, _Binding]]]


@dataclass(slots=True)
class _Index:
    """The objects of the source, by what they are looked up by. Bindings carry their position in the source's order."""

    roles: dict[RoleReference, JSONObject] = field(default_factory=dict)
    bindings: dict[str, _Bindings] = field(default_factory=dict)
    """By namespace, and by subject; cluster-wide ones under the empty namespace."""


_Grant: TypeAlias = tuple[_Binding, tuple[RBACRule, ...] | None]


class Authorizer:
    """Answers from an index that is built when first needed, and again after `invalidate`.

    Guarantee: after `invalidate`, no answer depends on what the source held before.
    """

    def __init__(self, source: RBACSource) -> None:
        self._source = source
        self._index: _Index | None = None
        self._compiled: dict[RoleReference, tuple[JSONObject, tuple[RBACRule, ...]]] = {}
        self._grants: dict[tuple[str, tuple[str, ...], str], tuple[_Grant, ...]] = {}
        self._decisions: dict[tuple[str | tuple[str, ...], ...], Decision] = {}

    def invalidate(self) -> None:
        """A role or binding changed."""
        self._index = None
        self._grants.clear()
        self._decisions.clear()

    def authorize(self, attributes: Attributes) -> Decision:
        """Whether it is allowed."""
        user = attributes.user
        groups = user.groups
        if MASTERS in groups:
            return _MASTERS
        # Not the object's name, of which there may be very many: answers that depend on it are not remembered.
        if attributes.resource_request:
            key: tuple[str | tuple[str, ...], ...] = (
                user.name,
                groups,
                attributes.namespace,
                attributes.verb,
                attributes.group,
                attributes.resource,
                attributes.subresource,
            )
        else:
            key = (user.name, groups, attributes.verb, attributes.path)
        decision = self._decisions.get(key)
        if decision is None:
            decision, by_name = self._decide(attributes)
            if not by_name and _is_short(key):
                if len(self._decisions) >= _REMEMBERED:
                    self._decisions.clear()
                self._decisions[key] = decision
        return decision

    def require(self, attributes: Attributes) -> None:
        """Raise the 403 that Kubernetes answers with unless it is allowed."""
        decision = self.authorize(attributes)
        if not decision.allowed:
            raise forbidden_request(attributes, decision.reason)

    def holdings(self, user: UserInfo, namespace: str) -> Holdings:
        """All rules that apply to a user in a namespace, cluster-wide ones first; without one, only those."""
        rules: list[RBACRule] = []
        missing: list[RoleReference] = []
        for binding, granted in self._granted(user, namespace):
            if granted is None:
                missing.append(binding.role)
            else:
                rules += granted
        return Holdings(tuple(rules), tuple(missing))

    def rules_of_role(self, role: RoleReference) -> tuple[RBACRule, ...] | None:
        """The rules of a role; None when there is no such role."""
        # A cluster role is the same one from whichever namespace it is bound.
        key = role._replace(namespace="") if role.kind == "ClusterRole" else role
        found = self._indexed().roles.get(key)
        if found is None:
            return None
        compiled = self._compiled.get(key)
        # Stored objects are never changed in place, so the same object has the same rules.
        if compiled is None or compiled[0] is not found:
            compiled = self._compiled[key] = (found, rules_of(found))
        return compiled[1]

    def _decide(self, attributes: Attributes) -> tuple[Decision, bool]:
        by_name = False
        missing: list[RoleReference] = []
        namespace = attributes.namespace if attributes.resource_request else ""
        for binding, rules in self._granted(attributes.user, namespace):
            if rules is None:
                missing.append(binding.role)
                continue
            for rule in rules:
                if attributes.resource_request:
                    if not rule.allows_resource(
                        attributes.verb, attributes.group, attributes.resource, attributes.subresource
                    ):
                        continue
                    if rule.names:
                        by_name = True
                        if attributes.name not in rule.names:
                            continue
                elif not rule.allows_url(attributes.verb, attributes.path):
                    continue
                return Decision(True, binding.reason(attributes.user)), by_name
        reason = f"RBAC: {aggregated(role.missing() for role in missing)}" if missing else ""
        return Decision(False, reason), by_name

    def _granted(self, user: UserInfo, namespace: str) -> tuple[_Grant, ...]:
        key = (user.name, user.groups, namespace)
        granted = self._grants.get(key)
        if granted is None:
            granted = tuple(self._grants_to(user, namespace))
            if _is_short(key):
                if len(self._grants) >= _REMEMBERED:
                    self._grants.clear()
                self._grants[key] = granted
        return granted

    def _grants_to(self, user: UserInfo, namespace: str) -> Iterator[_Grant]:
        bindings = self._indexed().bindings
        subjects = {_Subject("User", user.name), *(_Subject("Group", group) for group in user.groups)}
        for scope in dict.fromkeys(("", namespace)):
            here = bindings.get(scope, {})
            applying = {position: binding for subject in subjects for position, binding in here.get(subject, ())}
            for position in sorted(applying):
                binding = applying[position]
                yield binding, self.rules_of_role(binding.role)

    def _indexed(self) -> _Index:
        if self._index is None:
            self._index = _indexed(self._source)
            self._compiled = {key: kept for key, kept in self._compiled.items() if key in self._index.roles}
        return self._index


_MASTERS = Decision(True)


def aggregated(messages: Iterable[str]) -> str:
    """Several failures in one line, each once: `a`, or `[a, b]`."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _indexed(source: RBACSource) -> _Index:
    index = _Index()
    for role in source.cluster_roles():
        index.roles[RoleReference("ClusterRole", text(role, "metadata", "name"))] = role
    for role in source.roles():
        reference = RoleReference("Role", text(role, "metadata", "name"), text(role, "metadata", "namespace"))
        index.roles[reference] = role
    for kind, objects in (
        ("ClusterRoleBinding", source.cluster_role_bindings()),
        ("RoleBinding", source.role_bindings()),
    ):
        for position, found in enumerate(objects):
            namespace = text(found, "metadata", "namespace")
            binding = _binding(kind, found, namespace)
            here = index.bindings.setdefault(namespace, {})
            for subject, _ in binding.subjects:
                here.setdefault(subject, []).append((position, binding))
    return index


def _binding(kind: str, binding: JSONObject, namespace: str) -> _Binding:
    reference = mapping(binding, "roleRef")
    role = RoleReference(text(reference, "kind"), text(reference, "name"), namespace)
    subjects: list[tuple[_Subject, str]] = []
    for subject in items(binding, "subjects"):
        subject_kind, name = text(subject, "kind"), text(subject, "name")
        if subject_kind in ("User", "Group"):
            subjects.append((_Subject(subject_kind, name), f"{subject_kind} {quoted(name)}"))
        elif subject_kind == "ServiceAccount":
            home = text(subject, "namespace") or namespace
            if home:
                # Reasons name a service account by name and namespace, in this order.
                description = f"ServiceAccount {quoted(f'{name}/{home}')}"
                subjects.append((_Subject("User", service_account_name(home, name)), description))
    return _Binding(kind, text(binding, "metadata", "name"), role, tuple(subjects))


def _is(subject: _Subject, user: UserInfo) -> bool:
    return subject.name == user.name if subject.kind == "User" else subject.name in user.groups
