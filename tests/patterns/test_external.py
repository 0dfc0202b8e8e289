from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from datetime import timedelta
from typing import TypeAlias, cast

import pytest

from kubewright import Request
from kubewright.controller.controllers import Controller
from kubewright.controller.queue import Queue
from kubewright.patterns import External
from kubewright.testing import run_virtual

Concerns: TypeAlias = Callable[[str], Request | None]
Follow: TypeAlias = Callable[[], AsyncIterator[str | None]]


class Hypervisor:
    """Another system: machines and their states, and a stream of changes that can be interrupted."""

    def __init__(self) -> None:
        self.machines: dict[str, Hashable] = {}
        self.reads: list[float] = []
        self.failures: list[Exception] = []
        self.streams = 0
        self.stream: asyncio.Queue[str | BaseException | None] = asyncio.Queue()

    async def states(self) -> Mapping[str, Hashable]:
        self.reads.append(asyncio.get_running_loop().time())
        if self.failures:
            raise self.failures.pop(0)
        return self.machines

    async def follow(self) -> AsyncIterator[str | None]:
        self.streams += 1
        while True:
            event = await self.stream.get()
            if isinstance(event, BaseException):
                raise event
            if event == "end":
                return
            yield event


def concerned(machine: str) -> Request | None:
    return Request("default", machine) if machine != "foreign" else None


class Fed:
    """A source that runs, and the keys it has enqueued since the last look."""

    def __init__(self, source: External[str]) -> None:
        self.source = source
        self.queue: Queue[Request] = Queue()

    async def __aenter__(self) -> Fed:
        self._task = asyncio.create_task(self.source.run(self.queue))
        await asyncio.sleep(0.1)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def names(self) -> list[str]:
        await asyncio.sleep(0.1)
        found = []
        while len(self.queue):
            work = await self.queue.get()
            assert work is not None
            found.append(work.key.name)
            self.queue.done(work.key)
        return sorted(found)


def reason(source: External[str]) -> str | None:
    return source.not_ready_reason


def external(system: Hypervisor, every: float = 300) -> External[str]:
    return External("hypervisor", concerns=concerned, events=system.follow, state=system.states, every=every)


def test_what_exists_at_the_start_is_enqueued_and_then_what_changes() -> None:
    async def main() -> None:
        system = Hypervisor()
        system.machines = {"a": "running", "b": "stopped", "foreign": 1}
        async with Fed(external(system)) as fed:
            await fed.source.synced()
            assert await fed.names() == ["a", "b"]
            system.stream.put_nowait("b")
            assert await fed.names() == ["b"]
            system.stream.put_nowait("foreign")
            assert await fed.names() == []
            system.machines = {"a": "stopped", "c": "running", "foreign": 2}
            assert await fed.names() == []
            await asyncio.sleep(300)
            assert await fed.names() == ["a", "b", "c"]
            await asyncio.sleep(300)
            assert await fed.names() == []

    run_virtual(main)


@pytest.mark.parametrize("end", ["end", ConnectionResetError("reset"), asyncio.CancelledError()])
def test_a_stream_that_breaks_or_ends_is_started_again_and_the_state_read_at_once(end: str | BaseException) -> None:
    async def main() -> None:
        system = Hypervisor()
        async with Fed(external(system)) as fed:
            await fed.names()
            system.stream.put_nowait(end)
            await asyncio.sleep(0.5)
            system.machines["a"] = "running"
            assert await fed.names() == []
            await asyncio.sleep(1)
            assert await fed.names() == ["a"]
            assert system.streams == 2

    run_virtual(main)


def test_the_state_is_read_when_a_stream_reports_that_it_is_connected() -> None:
    async def main() -> None:
        system = Hypervisor()
        async with Fed(external(system)) as fed:
            await fed.names()
            system.machines["a"] = "running"
            system.stream.put_nowait(None)
            assert await fed.names() == ["a"]

    run_virtual(main)


def test_the_back_off_of_a_stream_is_reset_by_an_event() -> None:
    async def main() -> None:
        system = Hypervisor()
        async with Fed(external(system)) as fed:
            for _ in range(6):
                system.stream.put_nowait(ConnectionResetError("reset"))
            await asyncio.sleep(1 + 2 + 4 + 8 + 16 + 32 + 1)
            assert system.streams == 7
            system.stream.put_nowait("a")
            system.stream.put_nowait(ConnectionResetError("reset"))
            await asyncio.sleep(1.5)
            assert system.streams == 8
            assert await fed.names() == ["a"]

    run_virtual(main)


def test_a_read_that_fails_changes_nothing_and_is_why_the_source_is_not_ready() -> None:
    async def main() -> None:
        system = Hypervisor()
        system.machines = {"a": "running"}
        source = external(system)
        assert reason(source) == "hypervisor has not been read yet"
        async with Fed(source) as fed:
            assert await fed.names() == ["a"]
            assert reason(source) is None
            system.failures = [ConnectionResetError("reset")]
            await asyncio.sleep(300)
            assert reason(source) == "hypervisor: reset"
            assert await fed.names() == []
            await asyncio.sleep(1)
            assert reason(source) is None
            assert await fed.names() == []

    run_virtual(main)


def test_a_read_that_takes_too_long_has_failed_and_is_repeated() -> None:
    async def main() -> None:
        answers = [asyncio.Event(), asyncio.Event()]
        answers[1].set()

        async def states() -> Mapping[str, Hashable]:
            await answers.pop(0).wait()
            return {"a": "running"}

        source = External("hypervisor", concerns=concerned, state=states, timeout=20)
        async with Fed(source) as fed:
            await asyncio.sleep(20)
            assert reason(source) == "hypervisor: no answer within 20 s"
            assert await fed.names() == []
            await source.synced()
            assert reason(source) is None
            assert await fed.names() == ["a"]

    run_virtual(main)


def test_a_timeout_of_the_system_itself_is_reported_as_its_own() -> None:
    async def main() -> None:
        system = Hypervisor()
        system.failures = [TimeoutError("the hypervisor is busy")]
        source = external(system)
        async with Fed(source):
            assert reason(source) == "hypervisor: the hypervisor is busy"

    run_virtual(main)


def test_on_a_standby_nothing_is_read() -> None:
    async def main() -> None:
        system = Hypervisor()
        system.machines = {"a": "running"}
        source = external(system)
        reconciled: list[str] = []

        async def reconcile(request: Request) -> None:
            reconciled.append(request.name)

        controller: Controller[Request] = Controller("machines", reconcile)
        controller.watch(source)
        async with asyncio.TaskGroup() as tasks:
            sources = tasks.create_task(controller.run_sources())
            await source.synced()
            await asyncio.sleep(1000)
            assert (system.reads, system.streams, reason(source)) == ([], 0, None)
            workers = tasks.create_task(controller.run_workers())
            await asyncio.sleep(1)
            assert reconciled == ["a"]
            controller.stop()
            await workers
            sources.cancel()

    run_virtual(main)


def test_a_mistake_in_the_mapping_is_logged_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(machine: str) -> Request:
        if machine == "bad":
            raise KeyError(machine)
        return Request("default", machine)

    async def main() -> None:
        system = Hypervisor()
        system.machines = {"bad": 1, "good": 1}
        async with Fed(External("hypervisor", concerns=broken, state=system.states)) as fed:
            assert await fed.names() == ["good"]

    run_virtual(main)
    assert "which objects 'bad' concerns is not known" in caplog.text


@pytest.mark.parametrize("wrong", [("default", "web"), "web", [("default", "web")]])
def test_a_mapping_to_something_else_than_requests_is_logged(wrong: object, caplog: pytest.LogCaptureFixture) -> None:
    """A plain tuple of two strings would be enqueued as two keys."""

    async def main() -> None:
        system = Hypervisor()
        system.machines = {"bad": 1}

        def concerns(machine: str) -> Request:
            return cast(Request, wrong)

        async with Fed(External("hypervisor", concerns=concerns, state=system.states)) as fed:
            assert await fed.names() == []

    run_virtual(main)
    assert "expected Request(namespace, name)" in caplog.text


def test_what_cannot_work_is_refused_where_it_is_written() -> None:
    system = Hypervisor()
    with pytest.raises(ValueError, match="every=0: expected a number of seconds above 0"):
        external(system, every=0)
    with pytest.raises(TypeError, match=r"every=.*: expected a number of seconds, 60"):
        external(system, every=cast(float, timedelta(minutes=1)))
    with pytest.raises(ValueError, match="timeout=0: expected a number of seconds above 0"):
        External("hypervisor", concerns=concerned, state=system.states, timeout=0)
    with pytest.raises(TypeError, match=r"events of External is a function of \(\), not <async_generator"):
        External("hypervisor", concerns=concerned, state=system.states, events=cast("Follow", system.follow()))

    async def concerns(machine: str) -> Request:
        return Request("default", machine)

    with pytest.raises(TypeError, match=r"concerns of External is a function of \(id\) that returns at once"):
        External("hypervisor", concerns=cast("Concerns", concerns), state=system.states)
