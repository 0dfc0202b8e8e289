"""The state machine under every disturbance, in virtual time, on an embedded control plane without sockets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from tests.client.conftest import ScriptedBody, ScriptedServer
from tests.faults.wire import behind_a_proxy

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object, resource
from kubewright.cache.entry import CacheEntry
from kubewright.cache.reflector import Reflector
from kubewright.cache.reflector_state import Blocked, Watching
from kubewright.client import Client
from kubewright.client.config.config import Config
from kubewright.client.http.response import Headers
from kubewright.client.wait import deleted, established
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.endpoints.request import Target
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manifest.crd import definition_of
from kubewright.testing.virtual_time import run_virtual


@resource("reflector.example.com/v1")
class Gadget(Object):
    """A kind that can be installed and removed."""


class RecordingSink:
    """A sink that records the events."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.known: dict[str, int] = {}
        self._listed: dict[str, int] = {}
        self._news = asyncio.Event()

    def init(self) -> None:
        self._listed = {}
        self._record("init")

    def init_apply(self, entry: CacheEntry) -> None:
        self._listed[entry.key.name] = entry.revision

    def init_done(self, revision: int) -> None:
        self.known = self._listed
        self._record(f"init_done {len(self.known)}")

    def apply(self, entry: CacheEntry) -> None:
        self.known[entry.key.name] = entry.revision
        self._record(f"apply {entry.key.name}")

    def delete(self, entry: CacheEntry) -> None:
        del self.known[entry.key.name]
        self._record(f"delete {entry.key.name}")

    def progress(self, revision: int) -> None:
        self._news.set()

    def gone(self) -> None:
        self.known = {}
        self._record("gone")

    def _record(self, event: str) -> None:
        self.events.append(event)
        self._news.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(3600):
            while not holds():
                self._news.clear()
                await self._news.wait()


class World:
    """A control plane, a reflector of its ConfigMaps in one namespace, and what it emits."""

    def __init__(self, plane: EmbeddedControlPlane, client: Client, reflector: Reflector, sink: RecordingSink) -> None:
        self.plane = plane
        self.client = client
        self.reflector = reflector
        self.sink = sink

    async def create(self, name: str) -> ConfigMap:
        return await self.client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace="default")))

    @property
    def problem(self) -> str | None:
        blocked = self.reflector.blocked
        return blocked.reason if blocked is not None else None

    async def until_problem(self, problem: str) -> None:
        async with asyncio.timeout(3600):
            while self.problem != problem:
                await self.reflector.changed()

    async def in_step(self) -> None:
        """Wait until exactly what exists has been emitted."""
        existing = await self.client.list(ConfigMap, namespace="default")
        wanted = {each.metadata.name: int(each.metadata.resource_version) for each in existing}
        await self.sink.until(lambda: self.sink.known == wanted)


@asynccontextmanager
async def world(kind: type[Object] = ConfigMap, *, stream: bool = True, start: bool = True) -> AsyncIterator[World]:
    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as client:
        assert isinstance(plane, EmbeddedControlPlane)
        sink = RecordingSink()
        reflector = Reflector(client, kind, sink, namespace="default", stream=stream)
        task = asyncio.create_task(reflector.run()) if start else None
        try:
            yield World(plane, client, reflector, sink)
        finally:
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario()

    run_virtual(main)


def is_watch(target: Target) -> bool:
    return target.verb == "watch" and target.resource == "configmaps"


def is_read(target: Target) -> bool:
    return target.verb in ("list", "watch") and target.resource == "configmaps"


@pytest.mark.parametrize("stream", [True, False])
def test_existing_objects_are_emitted_first_then_changes(stream: bool) -> None:
    async def scenario() -> None:
        async with world(stream=stream, start=False) as here:
            created = await here.create("a")
            task = asyncio.create_task(here.reflector.run())
            await here.sink.until(lambda: "init_done 1" in here.sink.events)
            await here.create("b")
            await here.client.delete(created)
            await here.in_step()
            assert here.sink.events == ["init", "init_done 1", "apply b", "delete a"]
            assert isinstance(here.reflector.state, Watching)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    run(scenario)


def test_a_broken_watch_is_resumed_where_it_was() -> None:
    async def scenario() -> None:
        async with world(start=False) as here:
            here.plane.faults.cut_watches(is_watch, after_events=3, times=1)
            await here.create("a")
            task = asyncio.create_task(here.reflector.run())
            await here.sink.until(lambda: "init_done 1" in here.sink.events)
            for name in ("b", "c", "d"):
                await here.create(name)
            await here.in_step()
            assert here.sink.events == ["init", "init_done 1", "apply b", "apply c", "apply d"]
            assert here.reflector.restarts >= 1
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    run(scenario)


@pytest.mark.parametrize("stream", [True, False])
def test_an_expired_watch_is_relisted_without_what_was_deleted_meanwhile(stream: bool) -> None:
    async def scenario() -> None:
        async with world(stream=stream) as here:
            doomed = await here.create("doomed")
            await here.create("kept")
            await here.in_step()
            here.plane.faults.fail(is_read, code=503, times=None)
            here.plane.faults.cut_open_watches(is_watch)
            await here.until_problem("unreachable")
            await here.client.delete(doomed)
            here.plane.compact()
            here.plane.faults.clear()
            await here.in_step()
            assert here.sink.events.count("init") == 2
            assert set(here.sink.known) == {"kept"}

    run(scenario)


def test_a_server_that_does_not_stream_lists_is_read_in_pages() -> None:
    async def scenario() -> None:
        async with world(start=False) as here:
            here.plane.faults.fail(is_watch, code=400, times=1)
            await here.create("a")
            task = asyncio.create_task(here.reflector.run())
            await here.in_step()
            await here.create("b")
            await here.in_step()
            assert here.sink.events == ["init", "init_done 1", "apply b"]
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    run(scenario)


@pytest.mark.parametrize("code", [429, 500, 503, 504])
def test_a_failing_server_is_retried_with_backoff_until_it_answers(code: int) -> None:
    async def scenario() -> None:
        async with world(start=False) as here:
            here.plane.faults.fail(is_read, code=code, times=None)
            task = asyncio.create_task(here.reflector.run())
            await asyncio.sleep(300)
            attempts = here.reflector.restarts
            assert here.problem == "unreachable"
            assert 5 < attempts < 60
            here.plane.faults.clear()
            await here.create("a")
            await here.in_step()
            assert not here.problem
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    run(scenario)


def test_a_revoked_permission_is_waited_for_until_it_is_granted_again() -> None:
    async def scenario() -> None:
        async with world() as here:
            await here.create("a")
            await here.in_step()
            here.plane.faults.fail(is_read, code=403, message="no", times=None)
            here.plane.faults.cut_open_watches(is_watch)
            await here.until_problem("forbidden")
            await here.create("b")
            here.plane.faults.clear()
            await here.in_step()
            assert here.problem is None

    run(scenario)


async def install(client: Client) -> None:
    definition = await client.create(definition_of(Gadget))
    await client.wait_for(definition, established)


async def uninstall(client: Client) -> None:
    definition = definition_of(Gadget)
    await client.delete(definition)
    await client.wait_for(type(definition), definition.metadata.name, deleted)


def test_an_absent_kind_is_waited_for_and_its_removal_is_emitted() -> None:
    """The sink can see why: objects of a kind that is not served for a while are still stored."""

    class CheckingBlocked(RecordingSink):
        reflector: Reflector
        blocked: list[Blocked | None]

        def gone(self) -> None:
            self.blocked.append(self.reflector.blocked)
            super().gone()

    async def scenario() -> None:
        async with world(start=False) as here:
            sink = CheckingBlocked()
            sink.blocked = []
            sink.reflector = Reflector(here.client, Gadget, sink, namespace="default")
            task = asyncio.create_task(sink.reflector.run())
            await sink.until(lambda: sink.events[:1] == ["gone"])
            await install(here.client)
            await here.client.create(Gadget(metadata=ObjectMeta(name="a", namespace="default")))
            await sink.until(lambda: set(sink.known) == {"a"})
            await uninstall(here.client)
            await sink.until(lambda: sink.events[-1] == "gone")
            assert {blocked and blocked.reason for blocked in sink.blocked} == {"absent"}
            await install(here.client)
            await sink.until(lambda: sink.events[-1] == "init_done 0")
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    run(scenario)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("kind", [ConfigMap, Gadget])
@pytest.mark.parametrize("lost", ["/namespaces/default/", "/"], ids=["the kind", "everything"])
def test_an_error_page_of_a_proxy_emits_nothing(kind: type[Object], lost: str, stream: bool) -> None:
    """The default backend of an ingress answers 404 as well, in HTML; what is known stays known, and resumes."""

    async def scenario() -> None:
        async with world(start=False) as here:
            await install(here.client)
            await here.client.create(kind(metadata=ObjectMeta(name="a", namespace="default")))
            proxied = here.plane.client()
            proxy = behind_a_proxy(proxied)
            sink = RecordingSink()
            reflector = Reflector(proxied, kind, sink, namespace="default", stream=stream)
            task = asyncio.create_task(reflector.run())
            await sink.until(lambda: "a" in sink.known)
            await asyncio.sleep(1)
            before = list(sink.events)
            proxy.loses = lambda target: lost in target
            here.plane.faults.cut_open_watches(lambda target: target.verb == "watch")
            await asyncio.sleep(300)
            assert sink.events == before
            assert reflector.blocked is not None
            assert reflector.blocked.reason == "unreachable"
            assert "default backend - 404" in str(reflector.blocked)
            proxy.loses = lambda target: False
            await here.client.create(kind(metadata=ObjectMeta(name="b", namespace="default")))
            await sink.until(lambda: "b" in sink.known)
            assert sink.events == [*before, "apply b"]
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await proxied.aclose()

    run(scenario)


@pytest.mark.parametrize("stream", [True, False])
def test_a_stray_404_emits_nothing(stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with world(stream=stream) as here:
            await here.create("a")
            await here.in_step()
            before = list(here.sink.events)
            here.plane.faults.fail(is_watch, code=404, times=3)
            here.plane.faults.cut_open_watches(is_watch)
            async with asyncio.timeout(60):
                while "discovery has the kind" not in str(here.reflector.blocked):
                    await here.reflector.changed()
            assert here.problem == "unreachable"
            await here.create("b")
            await here.in_step()
            assert here.sink.events == [*before, "apply b"]
            assert here.problem is None

    run(scenario)
    assert "discovery has the kind" in caplog.text


@pytest.mark.parametrize("quiet", [True, False])
def test_what_blocks_a_watch_is_logged_unless_it_is_quiet(quiet: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with world(start=False) as here:
            here.plane.faults.fail(is_watch, code=403, times=3)
            sink = RecordingSink()
            reflector = Reflector(here.client, ConfigMap, sink, namespace="default", quiet=quiet)
            caplog.clear()
            task = asyncio.create_task(reflector.run())
            await sink.until(lambda: "init_done 0" in sink.events)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    caplog.set_level(logging.INFO, "kubewright.cache")
    run(scenario)
    said = [record.getMessage() for record in caplog.records if record.name == "kubewright.cache.reflector"]
    assert bool(said) is not quiet


def test_a_watch_that_went_silent_is_restarted() -> None:
    """A load balancer that drops a connection without FIN: nothing comes any more, not even an end."""

    async def scenario() -> None:
        async with world() as here:
            await here.create("a")
            await here.in_step()
            here.plane.faults.silence_open_watches(is_watch)
            await here.create("b")
            await here.in_step()
            assert asyncio.get_running_loop().time() < 400
            assert here.reflector.restarts >= 1

    run(scenario)


def test_a_server_whose_revisions_went_back_is_relisted() -> None:
    """As after a restore from a backup: a watch from a revision that is still to come brings nothing, and no error."""

    async def scenario() -> None:
        async with world() as here, ControlPlane.embedded(controllers=[]) as restored, restored.client() as client:
            sink = RecordingSink()
            async with here.plane.client() as follower:
                task = asyncio.create_task(Reflector(follower, ConfigMap, sink, namespace="default").run())
                for number in range(50):
                    await here.create(f"lost-{number}")
                await sink.until(lambda: len(sink.known) == 50)
                await client.create(ConfigMap(metadata=ObjectMeta(name="kept", namespace="default")))
                # As behind an address that moves.
                follower._operations.session._transport = client._operations.session._transport
                here.plane.faults.cut_open_watches(is_watch)
                await sink.until(lambda: set(sink.known) == {"kept"})
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    run(scenario)


DEEP = b'{"a":' * 300_000 + b"1" + b"}" * 300_000  # Python 3.14 skips 260,000 levels


def described(name: str, revision: int, data: bytes = b"{}") -> bytes:
    return b'{"metadata":{"name":"%b","namespace":"default","uid":"u","resourceVersion":"%d"},"data":%b}' % (
        name.encode(),
        revision,
        data,
    )


def line(type_: str, content: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (type_.encode(), content)


END_OF_LIST = line(
    "BOOKMARK", b'{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}'
)


@asynccontextmanager
async def scripted(server: ScriptedServer, sink: RecordingSink, *, stream: bool = True) -> AsyncIterator[Reflector]:
    """A reflector of a scripted server; afterwards the watch must still go on."""
    client = Client(Config(server="https://kubernetes.example.com"), transport=server)
    reflector = Reflector(client, ConfigMap, sink, namespace="default", stream=stream)
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector
        assert not task.done()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("stream", [True, False])
def test_an_object_that_is_nested_too_deeply_ends_no_watch(stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    """kube-apiserver takes 10,000 levels, of which Python 3.11 decodes 1,000. The object is known all the same."""

    async def scenario() -> None:
        server, sink = ScriptedServer(), RecordingSink()
        listed = [described("deep", 1, DEEP), described("fine", 2)]
        changes = [
            line("MODIFIED", described("deep", 10, DEEP)),
            line("MODIFIED", described("deep", 11, DEEP)),
            line("ADDED", described("later", 12)),
            line("DELETED", described("deep", 13, DEEP)),
        ]
        if stream:
            server.streams(*(line("ADDED", each) for each in listed), END_OF_LIST, *changes, ends=False)
        else:
            server.answers(b'{"metadata":{"resourceVersion":"9"},"items":[%b]}' % b",".join(listed))
            server.streams(*changes, ends=False)
        async with scripted(server, sink, stream=stream) as reflector:
            await sink.until(lambda: "delete deep" in sink.events)
            assert sink.events == ["init", "init_done 2", "apply deep", "apply deep", "apply later", "delete deep"]
            assert reflector.blocked is None
            assert reflector._client.skipped.counts == {"ConfigMap": 4}

    run(scenario)
    assert sum("default/deep" in record.getMessage() for record in caplog.records) == 1


def test_an_object_whose_name_or_revision_cannot_be_read_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        server, sink = ScriptedServer(), RecordingSink()
        server.streams(
            line("ADDED", b'{"metadata":{"name":"\xff\xfe","resourceVersion":"1"}}'),
            line("ADDED", b'{"metadata":{"name":"odd","resourceVersion":"yesterday"}}'),
            END_OF_LIST,
            line("ADDED", described("fine", 10)),
            ends=False,
        )
        async with scripted(server, sink) as reflector:
            await sink.until(lambda: "apply fine" in sink.events)
            assert sink.events == ["init", "init_done 0", "apply fine"]
            assert reflector._client.skipped.counts == {"ConfigMap": 2}

    run(scenario)
    assert 'the resourceVersion "yesterday"' in caplog.text


def test_an_object_that_the_sink_fails_for_is_skipped_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(RecordingSink):
        def apply(self, entry: CacheEntry) -> None:
            if entry.name == "bad":
                raise ZeroDivisionError
            super().apply(entry)

    async def scenario() -> None:
        server, sink = ScriptedServer(), Failing()
        bad = [line("MODIFIED", described("bad", revision)) for revision in (10, 11)]
        server.streams(END_OF_LIST, *bad, line("ADDED", described("fine", 12)), ends=False)
        async with scripted(server, sink):
            await sink.until(lambda: "apply fine" in sink.events)

    run(scenario)
    assert [record.exc_info is not None for record in caplog.records if record.levelno == logging.ERROR] == [True]


def test_an_unexpected_error_ends_no_watch_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        server, sink = ScriptedServer(), RecordingSink()
        for _ in range(3):
            server.fails(ZeroDivisionError("surprise"))
        server.streams(END_OF_LIST, line("ADDED", described("fine", 10)), ends=False)
        async with scripted(server, sink) as reflector:
            await reflector.changed()
            blocked = reflector.blocked
            assert blocked is not None
            assert (blocked.reason, str(blocked)) == ("failed", "surprise")
            await sink.until(lambda: "apply fine" in sink.events)
            assert reflector.blocked is None
            assert asyncio.get_running_loop().time() > 0.1

    run(scenario)
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert errors[0].exc_info is not None


@pytest.mark.parametrize("bookmarks", [True, False])
def test_a_server_that_does_not_know_streamed_lists_is_soon_read_in_pages(bookmarks: bool) -> None:
    """It sends what exists, and then changes, for as long as the watch lasts: never the end of the list."""

    async def scenario() -> None:
        server, sink = ScriptedServer(), RecordingSink()
        bookmark = [line("BOOKMARK", b'{"metadata":{"resourceVersion":"3"}}')] if bookmarks else []
        server.streams(*(line("ADDED", described(name, 1)) for name in ("a", "b")), *bookmark, ends=False)
        server.answers(b'{"metadata":{"resourceVersion":"9"},"items":[%b]}' % described("a", 1))
        server.streams(line("ADDED", described("c", 10)), ends=False)
        async with scripted(server, sink) as reflector:
            await sink.until(lambda: "apply c" in sink.events)
            assert sink.events == ["init", "init", "init_done 1", "apply c"]
            assert asyncio.get_running_loop().time() < 15
            assert isinstance(reflector.state, Watching)

    run(scenario)


def test_a_long_list_that_is_streamed_slowly_is_read_to_its_end() -> None:
    class Slow(ScriptedBody):
        async def receive(self, idle_timeout: float | None = None, gather: float = 0.0) -> bytes:
            await asyncio.sleep(0.05)
            return await super().receive(idle_timeout, gather)

    async def scenario() -> None:
        server, sink = ScriptedServer(), RecordingSink()
        objects = [line("ADDED", described(f"n{number}", number + 1)) for number in range(1000)]
        server.left.append((200, Headers(), Slow(*objects, END_OF_LIST, ends=False)))
        async with scripted(server, sink):
            await sink.until(lambda: "init_done 1000" in sink.events)
            await asyncio.sleep(100)
            assert sink.events == ["init", "init_done 1000"]
            assert len(server.sent) == 1

    run(scenario)


def test_an_idle_watch_that_ends_normally_is_resumed_at_once_however_often() -> None:
    """A server without bookmarks: nothing happens, and every watch ends with its time."""

    class Quiet(ScriptedBody):
        async def receive(self, idle_timeout: float | None = None, gather: float = 0.0) -> bytes:
            await asyncio.sleep(60)
            return b""

    async def scenario() -> None:
        server, sink = ScriptedServer(), RecordingSink()
        server.answers(b'{"metadata":{"resourceVersion":"9"},"items":[]}')
        for _ in range(20):
            server.left.append((200, Headers(), Quiet()))
            server.answers(b'{"metadata":{"resourceVersion":"9"},"items":[]}')  # whether it still counts as it did
        server.streams(line("ADDED", described("late", 10)), ends=False)
        async with scripted(server, sink, stream=False):
            await sink.until(lambda: "apply late" in sink.events)
            assert asyncio.get_running_loop().time() < 20 * 60 + 20 * 0.1 + 1

    run(scenario)


def test_a_server_that_ends_every_watch_at_once_is_retried_with_backoff() -> None:
    async def scenario() -> None:
        server, sink = ScriptedServer(), RecordingSink()
        server.answers(b'{"metadata":{"resourceVersion":"9"},"items":[]}')
        for _ in range(12):
            server.streams()
            server.answers(b'{"metadata":{"resourceVersion":"9"},"items":[]}')
        server.streams(line("ADDED", described("late", 10)), ends=False)
        async with scripted(server, sink, stream=False):
            await sink.until(lambda: "apply late" in sink.events)
            assert asyncio.get_running_loop().time() > 60

    run(scenario)
