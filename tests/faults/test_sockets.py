"""The faults that are not the same without sockets and a server of its own, on every control plane, in real time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace
from tests.faults.widgets import Operator

from kubewright import Client, Config, ControlPlane, KubernetesError, ObjectMeta, Request
from kubewright.api.core.v1 import Namespace
from kubewright.controlplane import BinariesNotFound
from kubewright.controlplane.embedded.http.asgi import Application
from kubewright.controlplane.embedded.http.serving import Serving
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane, _tls
from kubewright.controlplane.real import RealControlPlane
from kubewright.controlplane.user import User
from kubewright.testing.namespaces import unique_name

if TYPE_CHECKING:
    from tests.faults.conftest import World

NewWorld: TypeAlias = "Callable[[ControlPlane, str, User], AbstractAsyncContextManager[World]]"

NAMES = [f"widget-{number}" for number in range(8)]
PATIENCE = 90.0


class Proxy:
    """Between an operator and its server. It forwards everything until it is closed."""

    def __init__(self, server: str) -> None:
        self._to = urlsplit(server)
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.url = ""

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    def cut(self) -> None:
        """Break every connection."""
        for writer in self._writers:
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(self._to.hostname, self._to.port)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, far_writer}
        self._writers |= both
        try:
            await asyncio.gather(_passed_on(reader, far_writer), _passed_on(far_reader, writer))
        finally:
            self._writers -= both
            for each in both:
                each.transport.abort()


async def _passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


class Site:
    """A world whose operator is connected by sockets, through a proxy."""

    def __init__(self, world: World, proxy: Proxy) -> None:
        self.world = world
        self.proxy = proxy

    def operate(self) -> Operator:
        config = Config.from_kubeconfig_text(self.world.user.kubeconfig)
        return self.world.operate(Client(replace(config, server=self.proxy.url)))

    async def populated(self) -> Operator:
        operator = self.operate()
        for name in NAMES:
            await self.world.make(name)
        await self.world.converged(PATIENCE)
        return operator

    async def new_wishes(self) -> None:
        world = self.world
        await world.make("new")
        for name in NAMES[:4]:
            await world.change(name, "two")
        await world.remove(NAMES[4])
        await world.lose_child(NAMES[5])


@asynccontextmanager
async def site_on(plane: ControlPlane, server: str, new_world: NewWorld) -> AsyncIterator[Site]:
    namespace = unique_name("faults")
    async with Proxy(server) as proxy, plane.client() as admin:
        created = await admin.create(Namespace(metadata=ObjectMeta(name=namespace)))
        async with new_world(plane, namespace, plane.add_user(unique_name("operator"))) as world:
            yield Site(world, proxy)
        await admin.delete(created)


@pytest.fixture(params=["embedded", "real"])
async def site(request: pytest.FixtureRequest, new_world: NewWorld) -> AsyncIterator[Site]:
    if request.param == "real":
        plane = request.getfixturevalue("real_control_plane")
        async with site_on(plane, plane.url, new_world) as here:
            yield here
        return
    async with (
        ControlPlane.embedded(controllers=[]) as embedded,
        site_on(embedded, embedded.url, new_world) as here,
    ):
        yield here


async def test_connections_that_break_repeatedly_lose_and_duplicate_nothing(site: Site) -> None:
    operator = await site.populated()
    # Writes are under way when a connection breaks, and it is not known whether they took effect. Only updates, so that
    # the operator's own account of what it created stays exact.
    for number in range(10):
        site.proxy.cut()
        for name in NAMES[:4]:
            await site.world.change(name, f"round {number}")
    await site.world.converged(PATIENCE)
    assert all(informer.statistics.restarts for informer in operator.manager.cache.informers())


async def test_a_kind_that_is_removed_and_recreated_starts_over_on_every_control_plane(site: Site) -> None:
    await site.populated()
    await site.world.uninstall()
    await site.world.install()
    await site.world.converged(PATIENCE)
    for name in NAMES:
        await site.world.make(name)
    await site.world.converged(PATIENCE)


async def test_permissions_that_are_revoked_and_granted_again_on_every_control_plane(site: Site) -> None:
    operator = await site.populated()
    await site.world.forbid()
    async with asyncio.timeout(PATIENCE):
        # A real server's authorizer has caches of its own.
        while {informer.state for informer in operator.manager.cache.informers()} != {"forbidden"}:
            site.proxy.cut()
            await asyncio.sleep(0.2)
    await site.new_wishes()
    await site.world.permit()
    await site.world.converged(PATIENCE)


async def test_a_reconcile_that_really_blocks_the_event_loop_delays_the_others_and_no_more(site: Site) -> None:
    operator = await site.populated()
    blocked: list[Request] = []

    async def blocks(request: Request) -> None:
        if len(blocked) < 5:
            blocked.append(request)
            time.sleep(0.1)

    operator.reconciler.before = blocks
    await site.new_wishes()
    await site.world.converged(PATIENCE)
    assert len(blocked) == 5


async def test_a_server_that_goes_away_and_comes_back_with_what_it_had_embedded(new_world: NewWorld) -> None:
    async with ControlPlane.embedded(controllers=[]) as plane:
        serving = listening(plane, 0)
        await serving.start()
        port = serving.port
        async with site_on(plane, f"https://127.0.0.1:{port}", new_world) as site:
            operator = await site.populated()
            await serving.stop()
            site.proxy.cut()
            await unreachable(operator)
            await site.new_wishes()
            serving = listening(plane, port)
            await serving.start()
            await site.world.converged(PATIENCE)
            await site.world.dismiss(operator)
            await serving.stop()


def listening(plane: EmbeddedControlPlane, port: int) -> Serving:
    """One more way to a server that runs, which can be closed while it goes on."""
    started = plane._started
    pair = started.authority.server("kube-apiserver", hosts={"127.0.0.1"})
    return Serving(Application(started.assembled.server), _tls(started.authority, pair), "127.0.0.1", port)


async def unreachable(operator: Operator) -> None:
    async with asyncio.timeout(PATIENCE):
        while {informer.state for informer in operator.manager.cache.informers()} != {"unreachable"}:
            await asyncio.sleep(0.05)


async def test_a_server_that_is_killed_and_comes_back_with_what_it_had_real(new_world: NewWorld) -> None:
    try:
        plane = ControlPlane.real()
        await plane.start()
    except BinariesNotFound as error:
        pytest.skip(f"needs a real control plane: {error}")
    try:
        assert isinstance(plane, RealControlPlane)
        async with site_on(plane, plane.url, new_world) as site:
            operator = await site.populated()
            for name in NAMES:
                await site.world.change(name, "two")
            (program,) = [each for each in plane.programs if each.name == "kube-apiserver"]
            os.kill(program.pid, signal.SIGKILL)
            while program.exit_code is None:
                await asyncio.sleep(0.01)
            await unreachable(operator)
            plane._started.group.start("kube-apiserver", program.command)
            await answering(site.world.admin)
            await site.new_wishes()
            await site.world.converged(PATIENCE)
    finally:
        await plane.stop()


async def answering(admin: Client) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            with contextlib.suppress(KubernetesError):
                await admin.get(Namespace, "default")
                return
            await asyncio.sleep(0.1)
