"""`Manager`: runs controllers and whatever else a program consists of, and ends them in the right order.

    async with Client() as client:
        manager = Manager(client)
        setup(manager)
        await manager.run()

Around all that runs (`lifecycle.py` has its order) are HTTP servers, which begin before it and end after it, and what
was entered (`enter`), which is left last. Nothing that was started outlives `run`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Collection, Coroutine, Hashable, Iterable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
)
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kubewright.api.errors import KubernetesError, refusing
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object
from kubewright.cache import Cache, CachedClient, CacheOptions
from kubewright.cache.informer import Informer
from kubewright.client import Client
from kubewright.controller.controllers import Controller
from kubewright.controller.defaults import ControllerDefaults
from kubewright.manager.arguments import check_arguments, checked_permissions
from kubewright.manager.cluster import Cluster
from kubewright.manager.endpoints import ManagerEndpoints
from kubewright.manager.exposition import Family
from kubewright.manager.group import cause
from kubewright.manager.health import TIMEOUT, Check
from kubewright.manager.leader_election import LeaderElection, LeadershipLost
from kubewright.manager.lifecycle import Lifecycle
from kubewright.manager.needs import dispensable_needs, reconciler_needs, watch_needs
from kubewright.manager.permissions import Permission
from kubewright.manager.preflight import Preflight
from kubewright.manager.recorder import EventBroadcaster, EventRecorder
from kubewright.manager.request_durations import RequestDurations
from kubewright.manager.runnable import Function, Runnable, run_of
from kubewright.manager.runtime_metrics import runtime_families
from kubewright.manager.serving import Handler
from kubewright.manager.watchdog import watched_loop
from kubewright.version import __version__

if TYPE_CHECKING:
    from kubewright.certificates.registrations import Registration

GRACE = 25.0
"""Seconds that reconciles under way have to finish after a stop: less than the 30 after which a kubelet kills."""

Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")

_log = logging.getLogger(__name__)


class SetupError(KubernetesError):
    """The program is not put together as it should be. The message names what to change."""


class Manager:
    """Runs controllers, and whatever else a program needs, against one cluster or several."""

    def __init__(
        self,
        client: Client,
        *,
        namespaces: Collection[str] = (),
        election: LeaderElection | None = None,
        warm_standby: bool = True,
        health_address: str = "0",
        metrics_address: str = "0",
        debug_address: str = "0",
        metrics_secure: bool = False,
        metrics_cert_dir: str | Path | None = None,
        webhook_address: str = ":9443",
        webhook_cert_dir: str | Path | None = None,
        webhook_client_ca: str | Path | None = None,
        webhook_service: str | None = None,
        webhook_url: str | None = None,
        grace: float | None = GRACE,
        permissions: Iterable[Permission] = (),
        preflight: bool = True,
        instance: str | None = None,
        cache: Mapping[type[Object], CacheOptions] | None = None,
        strict_cache: bool = False,
        stream: bool = True,
        controllers: ControllerDefaults | None = None,
        name: str = "manager",
    ) -> None:
        """Addresses are such as ":8080" or "127.0.0.1:0"; "0" is off.

        `metrics_secure` serves metrics over TLS, to users that the API server permits (see `delegated_access`), with
        `tls.crt` and `tls.key` of `metrics_cert_dir`, or else with a self-signed certificate.
        Webhooks are served at `webhook_address`, once there are any (see `kubewright.webhook`), with `tls.crt` and
        `tls.key` of `webhook_cert_dir`, by default /tmp/k8s-webhook-server/serving-certs; with `webhook_client_ca`, a
        file, only to clients with a certificate of these authorities. `webhook_service` is the Service by which the API
        server reaches them, "NAME" or "NAMESPACE/NAME": unless there is a `webhook_cert_dir`, certificates are made,
        rotated and trusted without further ado (see `kubewright.certificates`). `webhook_url` is where an API server
        reaches them without a Service, while developing: it calls them for as long as the manager runs.
        With `grace` None, reconciles under way at a stop may take as long as they need. `preflight` checks at the start
        every permission that the program needs (see `needs`), and fails with the list of those missing. `cache` has the
        options of single kinds (`cache={Pod: CacheOptions(labels={"app": "web"})}`), and with `strict_cache` reads that
        no watch can answer are refused; `stream` as in `Cache`. `controllers` are options
        for controllers that are not given their own. `name` is for the log.
        """
        check_arguments(client, namespaces, election, grace, controllers)
        self.name = name
        self.cluster = Cluster(client, namespaces=namespaces, cache=cache, strict_cache=strict_cache, stream=stream)
        self.controller_defaults = controllers or ControllerDefaults()
        self.election = election
        self.grace = grace
        """How long reconciles under way at a stop may take; None for as long as they need."""
        self._namespaces = sorted(namespaces)
        self._permissions = checked_permissions(permissions)
        self.required_objects: list[Object] = []
        """What the program needs in the cluster besides its kinds; see `require_objects`."""
        self._preflight = Preflight(self._needs, self._dispensable_needs) if preflight else None
        self._expected: set[str] = set()  # controllers that are being built
        self.instance = instance or socket.gethostname()
        """Which of several replicas this is, in events and audit records: the name of the pod, or of the host."""
        self._events = EventBroadcaster(client, instance=self.instance)
        self._lifecycle = Lifecycle(self.cluster, self._events, warm_standby=warm_standby, grace=grace)
        self.is_setting_up = False
        """While `run(setup)` calls its setup function."""
        self._has_begun = False
        self._has_ended = False
        self._request_durations = RequestDurations()
        self._contexts = AsyncExitStack()
        self._abandoned: AsyncExitStack | None = None
        self._endpoints = ManagerEndpoints(
            client,
            health_address=health_address,
            metrics_address=metrics_address,
            debug_address=debug_address,
            metrics_secure=metrics_secure,
            metrics_cert_dir=Path(metrics_cert_dir) if metrics_cert_dir is not None else None,
            webhook_address=webhook_address,
            webhook_cert_dir=Path(webhook_cert_dir) if webhook_cert_dir is not None else None,
            webhook_client_ca=Path(webhook_client_ca) if webhook_client_ca is not None else None,
            webhook_service=webhook_service,
            webhook_url=webhook_url,
        )
        self.health = self._endpoints.health
        """The checks behind /healthz."""
        self.ready = self._endpoints.ready
        """The checks behind /readyz."""
        self.metrics = self._endpoints.metrics
        """The metrics of this program; declare your own here."""
        self.ready.add("controllers", self._not_ready_reason)
        self.metrics.collect(self._families)
        if self._endpoints.debug_server.is_enabled:
            from kubewright.manager.debug import add_debug_routes

            add_debug_routes(self._endpoints.debug_server, lambda: self._lifecycle.controllers, self._informers)

    # For controllers

    @property
    def client(self) -> CachedClient:
        """Reads what is watched from the cache, and everything else from the server."""
        return self.cluster.client

    @property
    def live(self) -> Client:
        """Reads from the server, never from the cache."""
        return self.cluster.live

    @property
    def cache(self) -> Cache:
        """The watches, and the objects they have brought."""
        return self.cluster.cache

    @property
    def controllers(self) -> tuple[Controller[Hashable], ...]:
        """The controllers that were added so far."""
        return tuple(self._lifecycle.controllers)

    def recorder(self, component: str) -> EventRecorder:
        """Records Kubernetes Events in the name of `component`."""
        return self._events.recorder(component)

    @property
    def elected(self) -> asyncio.Event:
        """Set once this program leads, or needs no election."""
        return self._lifecycle.elected

    @property
    def ports(self) -> dict[str, int]:
        """Where the servers listen, by name (health, metrics, debug, webhook); 0 for those that are off."""
        return self._endpoints.ports

    # What it runs

    def add(self, runnable: Controller[Key] | Runnable | Function) -> None:
        """Run a controller, an object with `run`, or an async function; at once when the manager is running."""
        self._check_not_ended("add")
        if isinstance(runnable, Controller):
            self._add_controller(runnable)
            return
        run = run_of(runnable)
        name = getattr(runnable, "__name__", type(runnable).__name__)
        self._lifecycle.add(run, name, needs_leader=bool(getattr(runnable, "needs_leader", True)))

    def add_webhook(self, path: str, handler: Handler, *, max_body_size: int | None = None) -> None:
        """Serve POST requests of the API server to `path`, over TLS, in every replica, before caches start.

        A body has at most 7 MiB, which is enough for a review of admission, unless `max_body_size` has more bytes.
        The manager is ready only while it serves them. `kubewright.webhook.serve_webhooks` is made of this.
        """
        webhooks = self._endpoints.webhooks
        is_first = not webhooks.server.routes
        if is_first and self._has_begun:
            raise RuntimeError("manager.add_webhook: add the first webhook before the manager starts")
        webhooks.server.route(path, handler, max_body_size=max_body_size)
        if is_first and webhooks.is_needed:
            self.ready.add("webhooks", webhooks.not_ready_reason)

    def add_registration(self, registration: Registration) -> None:
        """An object has the API server call webhooks by the `webhook_service`: it gets the Service's authorities."""
        if self._has_begun:
            raise RuntimeError(f"manager.add_registration({registration}): add it before the manager starts")
        self._endpoints.webhooks.add_registration(registration)

    @property
    def webhook_service(self) -> ObjectKey | None:
        """The Service by which the API server reaches webhooks, if that was given."""
        return self._endpoints.webhooks.service

    @property
    def webhook_url(self) -> str | None:
        """Where the API server reaches webhooks, without a path, if that was given; of a program in development."""
        return self._endpoints.webhooks.url

    @property
    def webhook_authority(self) -> str:
        """The certificate (PEM) of the authority that vouches for webhooks at `webhook_url`, while they are served."""
        return self._endpoints.webhooks.authority

    @property
    def webhooks_served(self) -> asyncio.Event:
        """Set while webhooks are served."""
        return self._endpoints.webhooks.server.listening

    @property
    def webhooks(self) -> Mapping[str, Handler]:
        """The webhooks that were added so far, by path."""
        return self._endpoints.webhooks.server.routes

    def expect(self, name: str) -> None:
        """A controller of this name is being built: `run` fails unless it has been added by then."""
        self._expected.add(name)

    def require(self, *permissions: Permission) -> None:
        """The program needs these, as the argument `permissions`: for what it writes, in the setup function.

        One of a kind that names no namespace is needed in those that the manager is confined to.
        """
        self._permissions += checked_permissions(permissions)

    def require_objects(self, *objects: Object) -> None:
        """The program needs these objects in the cluster and does not create them itself, such as ClusterRoles that it
        binds: they are deployed with it (`kubewright.deployment`).
        """
        for obj in objects:
            given: object = obj
            if not isinstance(given, Object):
                raise TypeError(f"require_objects({given!r}): expected objects, such as a ClusterRole")
        self.required_objects += objects

    @property
    def needs(self) -> list[Permission]:
        """Every permission that the program needs in its own cluster: checked at the start, and rendered into its role
        (`kubewright.manager.roles`).
        """
        return [*self._own_needs(), *dispensable_needs(self.controllers, self.cache)]

    def add_health_check(self, name: str, check: Check, *, timeout: float = TIMEOUT) -> None:
        """Have `check`, which may be async, decide whether the program is healthy: `manager.health.add`.

        It returns None, or the reason why not; a kubelet restarts the pod then.
        """
        self.health.add(name, check, timeout=timeout)

    def add_ready_check(self, name: str, check: Check, *, timeout: float = TIMEOUT) -> None:
        """Have `check`, which may be async, decide whether the program is ready: `manager.ready.add`."""
        self.ready.add(name, check, timeout=timeout)

    async def enter(self, context: AbstractAsyncContextManager[T] | AbstractContextManager[T]) -> T:
        """Enter a context and leave it when everything has ended: `session = await manager.enter(ClientSession())`.

        What was entered is left in reverse order, also after errors. `run` does that, or `aclose`.
        """
        self._check_not_ended("enter")
        if isinstance(context, AbstractAsyncContextManager):
            return await self._contexts.enter_async_context(context)
        if isinstance(context, AbstractContextManager):
            return self._contexts.enter_context(context)
        raise TypeError(
            f"manager.enter({context!r}): expected a context manager, such as manager.enter(ClientSession())"
        )

    async def aclose(self) -> None:
        """Leave what was entered, if `run` has not done that."""
        await self._contexts.aclose()

    @property
    def has_work(self) -> bool:
        """Whether anything was added that runs."""
        return bool(self._expected or self.webhooks) or self._lifecycle.has_work

    def add_cluster(self, cluster: Cluster) -> None:
        """Keep the cache of one more cluster, for sources that watch it."""
        self._check_not_ended("add_cluster")
        self._lifecycle.add_cluster(cluster)

    def _add_controller(self, controller: Controller[Any]) -> None:
        if any(other.name == controller.name for other in self._lifecycle.controllers):
            raise ValueError(f'there is a controller "{controller.name}" already; give this one another name=')
        self._expected.discard(controller.name)
        controller.recorder = self.recorder
        self._lifecycle.add_controller(controller)

    # Start and stop

    def stop(self) -> None:
        """Stop everything: `run` returns when it has ended."""
        self._lifecycle.stop()

    @property
    def is_stopping(self) -> bool:
        """True once `stop` was called, or something has failed."""
        return self._lifecycle.is_stopping

    async def run(self) -> None:
        """Run everything until `stop` is called, this is cancelled, or something fails; then end it, and raise that.

        A server that cannot be reached at the start is waited for. A manager runs once: its controllers have ended for
        good.
        """
        if self.is_setting_up:
            raise SetupError("leave out manager.run() in setup: run(setup) runs the manager when setup has returned")
        if self._has_begun:
            raise RuntimeError("this manager was started already, and runs only once; make another one")
        if self._expected:
            raise SetupError(
                f"no reconciler for {', '.join(sorted(self._expected))}: end controller_for(manager, Kind) with "
                ".complete(reconciler)"
            )
        if not self.has_work:
            _log.warning("%s: nothing to run: no controller was added", self.name)
        self._has_begun = True
        try:
            async with self._contexts:
                if self._endpoints.serves_metrics:
                    self._contexts.callback(self.live.observe_requests(self._request_durations))
                async with self._endpoints.serve():
                    await self._run_between_servers()
                failure = self._lifecycle.failure
                if isinstance(failure, LeadershipLost) and not failure.is_work_over:
                    # The process has to exit now, and must not wait for what contexts do at their end.
                    self._abandoned = self._contexts.pop_all()
                if failure is not None:
                    raise failure
        finally:
            self._has_ended = True
        if self._lifecycle.failure is not None:  # and a context has suppressed it
            raise self._lifecycle.failure
        _log.info("%s stopped", self.name)

    async def _run_between_servers(self) -> None:
        if self._preflight is not None and not await self._unless_stopped(self._preflight.run()):
            return
        webhooks = self._endpoints.webhooks
        async with webhooks.kept():
            if await self._unless_stopped(webhooks.prepare()):
                async with webhooks.serve():
                    self._log_start()
                    with watched_loop():
                        await self._lifecycle.run(self.election)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Run in the background while the block runs, and stop at its end; returns when everything has ended.

        An error of the manager cancels the block and is raised instead.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.run(), name=self.name)
                try:
                    yield
                finally:
                    self.stop()
        except BaseExceptionGroup as error:
            raise cause(error) from None

    if not TYPE_CHECKING:
        __aenter__ = __aexit__ = __enter__ = __exit__ = refusing(
            "a manager is no context: write async with manager.running(), or await manager.run()"
        )

    async def synced(self) -> None:
        """Return once every source of the controllers that were added so far is complete."""
        for controller in list(self._lifecycle.controllers):
            for source in controller.sources:
                await source.synced()

    def _log_start(self) -> None:
        election = self.election
        _log.info(
            "%s started",
            self.name,
            extra={
                "kubewright": __version__,
                "server": self.live.config.server,
                "namespaces": self._namespaces or "all",
                "controllers": [controller.name for controller in self._lifecycle.controllers],
                "leaderElection": f"{election.namespace}/{election.name}" if election is not None else "off",
            },
        )

    # Permissions, readiness and metrics

    async def _unless_stopped(self, preparation: Coroutine[object, object, None]) -> bool:
        """Do what has to be done before the start. A stop interrupts it: whether to go on."""
        task = asyncio.create_task(preparation, name="preparation")
        try:
            await self._lifecycle.until_stopped(task)
        finally:
            task.cancel()
            await asyncio.wait((task,))
        if not task.cancelled():
            task.result()
        return not self.is_stopping

    def _needs(self) -> Iterable[tuple[Client, Iterable[Permission]]]:
        yield self.live, self._own_needs()
        for other in self._lifecycle.clusters[1:]:
            yield other.live, watch_needs(self.controllers, other.cache)

    def _dispensable_needs(self) -> Iterable[tuple[Client, Iterable[Permission]]]:
        yield self.live, dispensable_needs(self.controllers, self.cache)

    def _own_needs(self) -> Iterator[Permission]:
        for permission in self._permissions:
            yield from permission.within(self._namespaces)
        yield from self._endpoints.needs
        if self.election is not None:
            yield from self.election.needs
        yield from watch_needs(self.controllers, self.cache)
        yield from reconciler_needs(self.controllers, self.cache)

    def _not_ready_reason(self) -> str | None:
        if self._preflight is not None and self._preflight.unreachable is not None:
            return f"waiting for the API server: {self._preflight.unreachable}"
        if self._lifecycle.is_cold_standby(self.election):
            # A standby that watches nothing is as ready to lead as it can be, and a roll-out waits until it is.
            return None
        reasons = (controller.not_ready_reason for controller in self._lifecycle.controllers)
        return "; ".join(reason for reason in reasons if reason is not None) or None

    def _informers(self) -> list[Informer]:
        return [informer for cluster in self._lifecycle.clusters for informer in cluster.cache.informers()]

    def _families(self) -> Iterable[Family]:
        return runtime_families(
            controllers=self._lifecycle.controllers,
            informers=self._informers(),
            requests=self.live.answers,
            request_durations=self._request_durations.by_verb_and_host,
            skipped=self.live.skipped.counts,
            elections=[self.election] if self.election is not None else [],
        )

    def _check_not_ended(self, method: str) -> None:
        if self._has_ended:
            raise RuntimeError(f"manager.{method}: this manager has ended, and runs only once; make another one")
