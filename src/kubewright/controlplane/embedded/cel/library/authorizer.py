"""The authorizer library by name only: rules of custom resources have no authorizer, but know its functions."""

from __future__ import annotations

from typing import Final

from kubewright.controlplane.embedded.cel.library.overload import Overload, method
from kubewright.controlplane.embedded.cel.types import BOOL, STRING, CelType
from kubewright.controlplane.embedded.cel.values import NoSuchOverload


def _type(name: str) -> CelType:
    return CelType("struct", f"kubernetes.authorization.{name}")


_AUTHORIZER: Final = _type("Authorizer")
_PATH: Final = _type("PathCheck")
_GROUP: Final = _type("GroupCheck")
_RESOURCE: Final = _type("ResourceCheck")
_DECISION: Final = _type("Decision")


def _never(*_: object) -> object:
    raise NoSuchOverload


AUTHORIZER_FUNCTIONS: Final[list[Overload]] = [
    method("path", [_AUTHORIZER, STRING], _PATH, _never),
    method("group", [_AUTHORIZER, STRING], _GROUP, _never),
    method("serviceAccount", [_AUTHORIZER, STRING, STRING], _AUTHORIZER, _never),
    method("resource", [_GROUP, STRING], _RESOURCE, _never),
    *(
        method(name, [_RESOURCE, STRING], _RESOURCE, _never)
        for name in ("subresource", "namespace", "name", "fieldSelector", "labelSelector")
    ),
    method("check", [_PATH, STRING], _DECISION, _never),
    method("check", [_RESOURCE, STRING], _DECISION, _never),
    method("errored", [_DECISION], BOOL, _never),
    method("error", [_DECISION], STRING, _never),
    method("allowed", [_DECISION], BOOL, _never),
    method("reason", [_DECISION], STRING, _never),
]
