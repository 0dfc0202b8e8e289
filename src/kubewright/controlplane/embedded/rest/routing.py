"""Which methods a path takes, checked before anything else.

Built-in kinds have a route for each operation; custom ones have a handler that decides, with other messages.
"""

from __future__ import annotations

from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.apimachinery.status import (
    bad_request,
    method_not_allowed,
    no_such_method,
    no_such_resource,
    not_found,
)
from kubewright.controlplane.embedded.endpoints.discovery import announced_subresources
from kubewright.controlplane.embedded.endpoints.request import Target
from kubewright.controlplane.embedded.registry.resources import ResourceType

_OF_COLLECTIONS = frozenset(("list", "watch"))
_OF_OBJECTS = frozenset(("get", "update", "patch", "delete"))
_OF_PLURALS = frozenset(("list", "create", "deletecollection"))
_VERBS = _OF_COLLECTIONS | _OF_OBJECTS | _OF_PLURALS


def is_nowhere(target: Target, resource: ResourceType) -> bool:
    """Whether there is not even a Status for a path: an object or a write of a namespaced custom kind needs one."""
    return resource.custom and resource.namespaced and not target.namespace and target.verb not in _OF_COLLECTIONS


def check_route(target: Target, resource: ResourceType, method: str) -> None:
    """Raise StatusError for a path or a method that this resource does not have."""
    if not resource.namespaced and target.namespace and resource.plural != "namespaces":
        raise no_such_resource()
    if resource.custom:
        _check_custom(target, resource)
    else:
        _check_built_in(target, resource, method)
    name = target.name
    if name in (".", ".."):
        raise bad_request(f"Name parameter invalid: {quoted(name)}: may not be '{name}'")
    if "%" in name:
        raise bad_request(f"Name parameter invalid: {quoted(name)}: may not contain '%'")


def _check_built_in(target: Target, resource: ResourceType, method: str) -> None:
    without_namespace = resource.namespaced and not target.namespace
    if target.name and not resource.verbs & _OF_OBJECTS:
        # A question has no name to be found by.
        raise no_such_resource()
    if (target.subresource and target.subresource not in resource.subresources) or (without_namespace and target.name):
        raise no_such_resource()
    if method == "HEAD" or target.verb not in _allowed(target, resource):
        raise no_such_method()
    if without_namespace and target.verb not in _OF_COLLECTIONS:
        raise no_such_method()
    if not target.subresource and target.verb in (_OF_OBJECTS if not target.name else _OF_PLURALS):
        raise no_such_method()


def _check_custom(target: Target, resource: ResourceType) -> None:
    if target.subresource and target.subresource not in resource.subresources:
        if target.subresource in ("status", "scale"):
            raise not_found(resource.plural, resource.gvk.group, target.name)
        raise no_such_resource()
    if target.verb not in _VERBS:
        raise method_not_allowed(resource.plural, resource.gvk.group, "")
    if target.verb not in _allowed(target, resource):
        raise method_not_allowed(resource.plural, resource.gvk.group, target.verb)
    if target.verb in ("update", "patch") and not target.name:
        raise bad_request("name must be provided")


def _allowed(target: Target, resource: ResourceType) -> frozenset[str]:
    if not target.subresource:
        return frozenset(resource.verbs)
    announced = {found.name: found.verbs for found in announced_subresources(resource)}
    return frozenset(announced[target.subresource])
