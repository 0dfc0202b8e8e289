"""The permissions that controllers need, from what they were made of.

What a reconciler writes is not seen in it, unless it says so by `needed_permissions`; `Manager.require` is for all
that remains.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Protocol, runtime_checkable

from kubewright.api.resources import resource_info
from kubewright.cache import Cache
from kubewright.controller.controllers import Controller
from kubewright.controller.watched import Watched
from kubewright.manager.permissions import Permission


@runtime_checkable
class Needing(Protocol):
    """A reconciler that knows what it writes."""

    @property
    def needed_permissions(self) -> Iterable[Permission]:
        """The permissions that it needs besides those to read what is watched."""


def watch_needs(controllers: Iterable[Controller[Hashable]], cache: Cache) -> Iterator[Permission]:
    """To watch what they watch in the cluster of that cache."""
    for controller in controllers:
        for source in _watched(controller, cache):
            for namespace in source.namespaces or ("",):
                yield Permission(source.kind, "list", "watch", namespace=namespace)


def reconciler_needs(controllers: Iterable[Controller[Hashable]], cache: Cache) -> Iterator[Permission]:
    """To write what their reconcilers know of, in the namespaces of what they reconcile."""
    for controller in controllers:
        if isinstance(controller.reconciler, Needing):
            own = {each for source in _watched(controller, cache) if source.is_own for each in source.namespaces}
            for permission in controller.reconciler.needed_permissions:
                yield from permission.within(sorted(own))


def dispensable_needs(controllers: Collection[Controller[Hashable]], cache: Cache) -> Iterator[Permission]:
    """What belongs into the role, and what a program runs without: with fewer events, or on most servers."""
    for controller in controllers:
        for source in _watched(controller, cache):
            for namespace in _event_namespaces(source, cache) if source.is_own else ():
                yield Permission("events.k8s.io/events", "create", "patch", namespace=namespace)
            if source.owner is not None:
                # Where OwnerReferencesPermissionEnforcement is on, a reference that blocks the deletion of its owner
                # needs this, and `set_controller_reference` makes such references.
                yield from Permission(source.owner, "update", subresource="finalizers").within(source.namespaces)


def _event_namespaces(source: Watched[Hashable], cache: Cache) -> tuple[str, ...]:
    if resource_info(source.kind).namespaced is False:
        # Events about an object without a namespace are there; about its children, everywhere.
        return ("default", *cache.namespaces) if cache.namespaces else ("",)
    return source.namespaces or ("",)


def _watched(controller: Controller[Hashable], cache: Cache) -> Iterator[Watched[Hashable]]:
    for source in controller.sources:
        if isinstance(source, Watched) and source.cache is cache:
            yield source
