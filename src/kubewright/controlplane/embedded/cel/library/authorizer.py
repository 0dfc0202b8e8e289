"""The authorizer library: expressions of admission ask whether a user may do something.

Rules of custom resources know its functions, but have no authorizer to call them on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from kubewright.controlplane.embedded.auth.attributes import Attributes
from kubewright.controlplane.embedded.auth.rbac import Decision
from kubewright.controlplane.embedded.auth.users import (
    UserInfo,
    is_label,
    is_subdomain,
    service_account_groups,
    service_account_name,
)
from kubewright.controlplane.embedded.cel.library.overload import Overload, method
from kubewright.controlplane.embedded.cel.types import BOOL, STRING, CelType
from kubewright.controlplane.embedded.cel.values import EvaluationError, Opaque

Authorize: TypeAlias = Callable[[Attributes], Decision]


def _type(name: str) -> CelType:
    return CelType("struct", f"kubernetes.authorization.{name}")


AUTHORIZER: Final = _type("Authorizer")
RESOURCE_CHECK: Final = _type("ResourceCheck")
_PATH_CHECK: Final = _type("PathCheck")
_GROUP_CHECK: Final = _type("GroupCheck")
_DECISION: Final = _type("Decision")


@dataclass(frozen=True)
class AuthorizerValue(Opaque):
    """`authorizer`: asks for one user."""

    type_name = AUTHORIZER.name
    user: UserInfo
    authorize: Authorize


@dataclass(frozen=True)
class _PathCheck(Opaque):
    type_name = _PATH_CHECK.name
    authorizer: AuthorizerValue
    path: str


@dataclass(frozen=True)
class _GroupCheck(Opaque):
    type_name = _GROUP_CHECK.name
    authorizer: AuthorizerValue
    group: str


@dataclass(frozen=True)
class ResourceCheck(Opaque):
    """`authorizer.group(…).resource(…)`, and `authorizer.requestResource`. Selectors do not count for roles."""

    type_name = RESOURCE_CHECK.name
    authorizer: AuthorizerValue
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True)
class _Decided(Opaque):
    type_name = _DECISION.name
    decision: Decision


def _path(authorizer: AuthorizerValue, path: str) -> object:
    if not path.strip():
        raise EvaluationError("path must not be empty")
    return _PathCheck(authorizer, path)


def _service_account(authorizer: AuthorizerValue, namespace: str, name: str) -> object:
    if not is_subdomain(name):
        raise EvaluationError("Invalid service account name")
    if not is_label(namespace):
        raise EvaluationError("Invalid service account namespace")
    user = UserInfo(service_account_name(namespace, name), service_account_groups(namespace))
    return AuthorizerValue(user, authorizer.authorize)


def _resource(check: _GroupCheck, resource: str) -> object:
    if not resource.strip():
        raise EvaluationError("resource must not be empty")
    return ResourceCheck(check.authorizer, check.group, resource)


def _check_path(check: _PathCheck, verb: str) -> object:
    asked = Attributes(check.authorizer.user, verb, path=check.path, resource_request=False)
    return _Decided(check.authorizer.authorize(asked))


def _check_resource(check: ResourceCheck, verb: str) -> object:
    asked = Attributes(
        check.authorizer.user,
        verb,
        check.group,
        "*",
        check.resource,
        check.subresource,
        check.namespace,
        check.name,
    )
    return _Decided(check.authorizer.authorize(asked))


AUTHORIZER_FUNCTIONS: Final[list[Overload]] = [
    method("path", [AUTHORIZER, STRING], _PATH_CHECK, _path),
    method("group", [AUTHORIZER, STRING], _GROUP_CHECK, _GroupCheck),
    method("serviceAccount", [AUTHORIZER, STRING, STRING], AUTHORIZER, _service_account),
    method("resource", [_GROUP_CHECK, STRING], RESOURCE_CHECK, _resource),
    method(
        "subresource",
        [RESOURCE_CHECK, STRING],
        RESOURCE_CHECK,
        lambda check, subresource: replace(check, subresource=subresource),
    ),
    method(
        "namespace",
        [RESOURCE_CHECK, STRING],
        RESOURCE_CHECK,
        lambda check, namespace: replace(check, namespace=namespace),
    ),
    method("name", [RESOURCE_CHECK, STRING], RESOURCE_CHECK, lambda check, name: replace(check, name=name)),
    method("fieldSelector", [RESOURCE_CHECK, STRING], RESOURCE_CHECK, lambda check, selector: check),
    method("labelSelector", [RESOURCE_CHECK, STRING], RESOURCE_CHECK, lambda check, selector: check),
    method("check", [_PATH_CHECK, STRING], _DECISION, _check_path),
    method("check", [RESOURCE_CHECK, STRING], _DECISION, _check_resource),
    # A role-based authorizer always has an answer.
    method("errored", [_DECISION], BOOL, lambda decided: False),
    method("error", [_DECISION], STRING, lambda decided: ""),
    method("allowed", [_DECISION], BOOL, lambda decided: decided.decision.allowed),
    method("reason", [_DECISION], STRING, lambda decided: decided.decision.reason),
]
