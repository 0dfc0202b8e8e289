"""Escalation check of writes to roles and bindings: users grant only permissions that they hold.

Exempt are `system:masters`, users that may `escalate` the role, and users that may `bind` the role of a binding.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.apimachinery.status import StatusError, bad_request, forbidden, not_found
from kubewright.controlplane.embedded.auth.attributes import Attributes
from kubewright.controlplane.embedded.auth.quoting import quoted_list
from kubewright.controlplane.embedded.auth.rbac import Authorizer, RoleReference, aggregated
from kubewright.controlplane.embedded.auth.rules import RBACRule, not_covered, rules_of
from kubewright.controlplane.embedded.auth.users import MASTERS, UserInfo

_GROUP = "rbac.authorization.k8s.io"
_PLURALS = {"ClusterRole": "clusterroles", "Role": "roles"}
_FULL_AUTHORITY = (RBACRule(("*",), ("*",), ("*",)), RBACRule(("*",), urls=("*",)))
_OF_GARBAGE_COLLECTION = frozenset(("ownerReferences", "finalizers", "selfLink", "managedFields"))


@dataclass(frozen=True, slots=True)
class RoleWrite:
    """A write to a role or binding: the new object, the stored one on updates, and the request it came with.

    `plural` is one of `roles`, `clusterroles`, `rolebindings`, `clusterrolebindings`. `name` is the one in the
    request's path: on a POST there is none, and that is the name for which the real server checks `escalate`.
    """

    user: UserInfo
    plural: str
    new: JSONObject
    old: JSONObject | None = None
    namespace: str = ""
    name: str = ""


def escalation(authorizer: Authorizer, write: RoleWrite) -> StatusError | None:
    """The error that refuses the write; None when it grants nothing that the user does not hold."""
    if MASTERS in write.user.groups:
        return None
    if write.plural in ("roles", "clusterroles"):
        return _by_role(authorizer, write)
    return _by_binding(authorizer, write)


def _by_role(authorizer: Authorizer, write: RoleWrite) -> StatusError | None:
    escalate = Attributes(write.user, "escalate", _GROUP, "*", write.plural, namespace=write.namespace, name=write.name)
    if authorizer.authorize(escalate).allowed or _only_garbage_collection(write):
        return None
    if granted := _granted(authorizer, write, rules_of(write.new)):
        return granted
    # What an aggregated role will hold is for others to decide later, so it takes every right there is.
    if (_aggregates(write.new) or _aggregates(write.old)) and _granted(authorizer, write, _FULL_AUTHORITY):
        return _refused(write, "must have cluster-admin privileges to use the aggregationRule")
    return None


def _by_binding(authorizer: Authorizer, write: RoleWrite) -> StatusError | None:
    reference = mapping(write.new, "roleRef")
    role = RoleReference(text(reference, "kind"), text(reference, "name"), write.namespace)
    if _only_garbage_collection(write):
        return None
    if role.kind in _PLURALS:
        bind = Attributes(
            write.user,
            "bind",
            text(reference, "apiGroup"),
            "*",
            _PLURALS[role.kind],
            namespace=write.namespace,
            name=role.name,
        )
        if authorizer.authorize(bind).allowed:
            return None
    rules = authorizer.rules_of_role(role)
    if rules is not None:
        return _granted(authorizer, write, rules)
    if role.kind not in _PLURALS:
        return StatusError(500, "", role.missing())
    if role.kind == "Role" and not write.namespace:
        return bad_request("Namespace parameter required.")
    # The real server names the resource of the request here, not the one of the role that is missing.
    return not_found(write.plural, _GROUP, role.name)


def _granted(authorizer: Authorizer, write: RoleWrite, rules: Iterable[RBACRule]) -> StatusError | None:
    holdings = authorizer.holdings(write.user, write.namespace)
    missing = not_covered(holdings.rules, rules)
    if not missing:
        return None
    user = write.user
    summary = "\n".join(sorted({str(rule) for rule in missing}))
    message = (
        f"user {quoted(user.name)} (groups={quoted_list(user.groups)}) is attempting to grant RBAC permissions "
        f"not currently held:\n{summary}"
    )
    if holdings.missing:
        unresolved = aggregated(_unresolved(write, role) for role in holdings.missing)
        message += f"; resolution errors: [{unresolved}]"
    return _refused(write, message)


def _unresolved(write: RoleWrite, role: RoleReference) -> str:
    if role.kind not in _PLURALS:
        return role.missing()
    if role.kind == "Role" and not role.namespace:
        return "Namespace parameter required."
    return not_found(write.plural, _GROUP, role.name).message


def _refused(write: RoleWrite, why: str) -> StatusError:
    return forbidden(write.plural, _GROUP, text(write.new, "metadata", "name"), why)


def _aggregates(role: JSONObject | None) -> bool:
    return bool(items(role, "aggregationRule", "clusterRoleSelectors"))


def _only_garbage_collection(write: RoleWrite) -> bool:
    """Owners and finalizers may be changed by anyone who may update, or deletion would get stuck."""
    return write.old is not None and _compared(write.new) == _compared(write.old)


def _compared(value: JSONObject) -> JSONValue:
    metadata = {name: item for name, item in mapping(value, "metadata").items() if name not in _OF_GARBAGE_COLLECTION}
    return _without_empty({**value, "metadata": metadata})


def _without_empty(value: JSONValue) -> JSONValue:
    """Absent, null and empty are the same to the comparison."""
    if isinstance(value, dict):
        shrunk = {name: _without_empty(item) for name, item in value.items()}
        return {name: item for name, item in shrunk.items() if item not in (None, "", [], {})}
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    return value
