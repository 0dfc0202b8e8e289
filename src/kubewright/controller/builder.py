"""`controller_for(manager, Kind)`: builds a controller.

    controller_for(manager, PodManager, workers=4).owns(Pod).complete(PodManagerReconciler(manager.client))

Everything it does can be done by hand: `Controller`, `Watched` and the handlers are public, and `manager.add` takes any
controller.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar, runtime_checkable

from msgspec import UNSET, UnsetType

from kubewright.api.dynamic import metadata_only
from kubewright.api.resources import Object, resource_info
from kubewright.api.selectors import Fields, Labels
from kubewright.cache import Cache
from kubewright.cache.informer import Transform
from kubewright.client.arguments import check_kind
from kubewright.controller.controllers import Controller
from kubewright.controller.defaults import ControllerDefaults
from kubewright.controller.handler import Handler, checked_requests, for_object, for_owner
from kubewright.controller.predicates import Predicate, beyond_status
from kubewright.controller.ratelimit import RateLimiter
from kubewright.controller.reconcile import ErrorHook, ReconcileFunction, Reconciler, Request
from kubewright.controller.source import Source
from kubewright.controller.watched import Watched

T = TypeVar("T", bound=Object)

V = TypeVar("V")

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


class ControllerHost(Protocol):
    """What a controller is built for: a `Manager`, or an object with its methods."""

    @property
    def cache(self) -> Cache:
        """The cache that watches the objects."""

    @property
    def controller_defaults(self) -> ControllerDefaults:
        """The options of controllers that are not given their own."""

    def expect(self, name: str, /) -> None:
        """A controller of this name is being built: it is an error to start without it."""

    def add(self, controller: Controller[Request], /) -> object:
        """Run the controller with everything else."""


@runtime_checkable
class FollowsObjects(Protocol):
    """A reconciler that has to know of every event of the objects it reconciles, those of their status included."""

    @property
    def own_events(self) -> Handler[Request]:
        """Called with each of them, whatever `where` leaves out; what it returns is reconciled besides."""


def controller_for(
    manager: ControllerHost,
    kind: type[T],
    *,
    name: str | None = None,
    where: Predicate | None = None,
    workers: int | UnsetType = UNSET,
    timeout: float | UnsetType | None = UNSET,
    max_attempts: int | UnsetType | None = UNSET,
    limiter: RateLimiter | None = None,
    debounce: float | UnsetType = UNSET,
    sync_timeout: float | UnsetType = UNSET,
    needs_leader: bool | UnsetType = UNSET,
    on_error: ErrorHook[Request] | None = None,
    namespace: str | None = None,
    labels: Labels | None = None,
    fields: Fields | None = None,
    resync: float | UnsetType | None = UNSET,
    slow_hot_loops: bool | UnsetType = UNSET,
) -> Builder[T]:
    """A controller that reconciles the objects of a kind. `where` filters their events; see `Controller` for the rest.

    Options that are not given are the manager's `ControllerDefaults`.

    Unless `where` says otherwise, changes of their status alone are left out (`beyond_status`): mostly they are the
    controller's own, and would defeat its `requeue_after`. With `where=resource_version_changed` nothing is left out.
    `namespace`, `labels` and `fields` confine what is watched, and so what is in the cache. Every `resync` seconds all
    objects are reconciled again; None for never.
    """
    _check_manager(manager)
    check_kind(kind, "controller_for(manager, kind)")
    own = name or kind.__name__.lower()
    if not _NAME.fullmatch(own):
        raise ValueError(f'"{own}" is not a name for a controller: expected lower-case letters, digits and -')
    defaults, gvk = manager.controller_defaults, resource_info(kind).gvk

    def build(reconciler: Reconciler[Request] | ReconcileFunction[Request], workers: int) -> Controller[Request]:
        return Controller(
            own,
            reconciler,
            kind=gvk,
            workers=workers,
            timeout=_first(timeout, defaults.timeout),
            max_attempts=_first(max_attempts, defaults.max_attempts),
            limiter=limiter if limiter is not None else defaults.limiter(),
            debounce=_first(debounce, defaults.debounce),
            sync_timeout=_first(sync_timeout, defaults.sync_timeout),
            needs_leader=_first(needs_leader, defaults.needs_leader),
            on_error=on_error,
            slow_hot_loops=_first(slow_hot_loops, defaults.slow_hot_loops),
        )

    watched = Watched(
        manager.cache,
        kind,
        for_object,
        where=beyond_status if where is None else where,
        namespace=namespace,
        labels=labels,
        fields=fields,
        resync=_first(resync, defaults.resync),
    )
    manager.expect(own)
    return Builder(manager, watched, kind, build, _first(workers, defaults.workers_for(gvk)))


def _check_manager(manager: object) -> None:
    if isinstance(manager, type) or not hasattr(manager, "controller_defaults"):
        raise TypeError(
            f"controller_for(manager, kind): {manager!r} is not a manager: give the Manager first, then the kind"
        )


def _first(given: V | UnsetType, default: V) -> V:
    return default if given is UNSET else given


class Builder(Generic[T]):
    """A controller that is being built. Nothing runs before `complete` and the manager's start."""

    __slots__ = ("_build", "_kind", "_manager", "_sources", "_watched", "_workers")

    def __init__(
        self,
        manager: ControllerHost,
        watched: Watched[Request],
        kind: type[T],
        build: Callable[[Reconciler[Request] | ReconcileFunction[Request], int], Controller[Request]],
        workers: int,
    ) -> None:
        self._manager = manager
        self._watched = watched
        self._kind = kind
        self._build = build
        self._workers = workers
        self._sources: list[Source[Request]] = [watched]

    def owns(
        self,
        *kinds: type[Object],
        where: Predicate | None = None,
        every_owner: bool = False,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        optional: bool = False,
    ) -> Builder[T]:
        """Reconcile an object on events of the objects of these kinds that it controls; with `every_owner` also
        when it is an owner but not the controller.

        The same as `watches(kind, for_owner(...))` for each kind.
        """
        if not kinds:
            raise TypeError("owns() without a kind: give at least one, as in owns(Pod)")
        is_owner_namespaced = resource_info(self._kind).namespaced
        elsewhere = self._watched.namespace_elsewhere if is_owner_namespaced else None
        handler = for_owner(self._kind, controller_only=not every_owner, elsewhere=elsewhere)
        for kind in kinds:
            check_kind(kind, "owns(kind)")
            if is_owner_namespaced and resource_info(kind).namespaced is False:
                raise ValueError(
                    f"owns({kind.__name__}): {self._kind.__name__} is namespaced and cannot own it: "
                    f"it has no namespace. Use watches({kind.__name__}, mapped(…)), and labels that name the owner"
                )
            self.watches(
                kind, handler, where=where, namespace=namespace, labels=labels, fields=fields, optional=optional
            )
        return self

    def watches(
        self,
        kind: type[Object],
        handler: Handler[Request],
        *,
        where: Predicate | None = None,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        transform: Transform | None = None,
        optional: bool = False,
    ) -> Builder[T]:
        """Reconcile the objects that `handler` returns for events of `kind`.

        With `optional` the controller does not wait for a kind that is not installed (yet); when it gets installed, all
        objects of the controller's own kind are reconciled.
        """
        return self.source(
            Watched(
                self._manager.cache,
                kind,
                checked_requests(handler),
                where=where,
                namespace=namespace,
                labels=labels,
                fields=fields,
                transform=transform,
                optional=optional,
            )
        )

    def watches_metadata(
        self,
        kind: type[Object],
        handler: Handler[Request],
        *,
        where: Predicate | None = None,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        optional: bool = False,
    ) -> Builder[T]:
        """The same with the metadata alone in the cache: for large objects whose content does not matter."""
        check_kind(kind, "watches_metadata(kind, handler)")
        return self.watches(
            metadata_only(kind),
            handler,
            where=where,
            namespace=namespace,
            labels=labels,
            fields=fields,
            optional=optional,
        )

    def source(self, source: Source[Request]) -> Builder[T]:
        """Enqueue keys from any source."""
        given: object = source
        if isinstance(given, type) or not (hasattr(given, "run") and hasattr(given, "synced")):
            raise TypeError(
                f"source({given!r}): expected a source such as Channel() or Polled(…); for a kind use owns or watches"
            )
        self._sources.append(source)
        return self

    def workers(self, number: int) -> Builder[T]:
        """Reconcile so many objects at a time; never one object twice."""
        self._workers = number
        return self

    def complete(self, reconciler: Reconciler[Request] | ReconcileFunction[Request]) -> Controller[Request]:
        """Register the controller with the manager and return it. A reconciler may be an async function."""
        built = self._build(reconciler, self._workers)
        for source in self._sources:
            built.watch(source)
        given: object = reconciler
        if isinstance(given, FollowsObjects):
            built.watch(self._watched.handled_by(checked_requests(given.own_events)))
        self._manager.add(built)
        return built
