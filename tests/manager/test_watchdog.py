from __future__ import annotations

import asyncio
import logging
import os
import selectors
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest
import uvloop

from kubewright.controlplane import ControlPlane
from kubewright.manager import Manager, watchdog
from kubewright.manager.watchdog import BLOCKED, INTERVAL, STEP, Watchdog, watched_loop
from kubewright.testing.virtual_time import run_virtual

LOGGER = "kubewright.manager.watchdog"
STANDARD_LIBRARY = Path(os.__file__).parent


class Loop:
    """A loop that runs, and is somewhere, when a test says so."""

    def __init__(self) -> None:
        self.frame: FrameType | None = sys._getframe()
        self.callbacks: list[Callable[[], None]] = []
        self.watchdog = Watchdog(lambda: self.frame, self.callbacks.append)

    def run(self) -> FrameType:
        for callback in self.callbacks:
            callback()
        self.callbacks.clear()
        return sys._getframe()

    def stay_blocked(self) -> None:
        self.watchdog.sample()
        for _ in range(round(BLOCKED / STEP) + 1):
            assert self.watchdog.sample() == STEP


def somewhere() -> FrameType:
    return sys._getframe()


def called_from(path: Path, function: Callable[[], FrameType] | None = None) -> Callable[[], FrameType]:
    """A function in another file that calls a function, or is the innermost one."""
    namespace: dict[str, Callable[[], FrameType]] = {"called": function or sys._getframe}
    exec(compile("def function():\n    return called()", str(path), "exec"), namespace)
    return namespace["function"]


@pytest.fixture(autouse=True)
def _everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, LOGGER)


def test_a_blocked_loop_is_reported_with_the_line_and_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop()
    loop.frame = somewhere()
    loop.stay_blocked()
    [record] = caplog.records
    line = somewhere.__code__.co_firstlineno + 1
    assert f"blocked for {BLOCKED:g} s by {__file__}:{line} in somewhere: " in record.message
    assert "asyncio.sleep() instead of time.sleep()" in record.message
    assert "`def reconcile` without async" in record.message
    assert record.levelno == logging.WARNING


def test_the_end_of_a_reported_block_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop()
    loop.stay_blocked()
    caplog.clear()
    loop.frame = loop.run()
    assert loop.watchdog.sample() == INTERVAL
    assert [record.message for record in caplog.records] == [
        f"the event loop runs again, after about {BLOCKED + STEP:g} s"
    ]


def test_the_same_function_is_reported_once_and_another_one_again(caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop()
    for frame in (somewhere(), somewhere(), sys._getframe()):
        loop.frame = frame
        loop.stay_blocked()
        loop.run()
    warned = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warned) == 2
    assert " in somewhere: " in warned[0]
    assert " in test_the_same_function_is_reported_once_and_another_one_again: " in warned[1]


def test_a_busy_loop_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    """It is executing something at every sample, but also what it was sent."""
    loop = Loop()
    loop.frame = somewhere()
    for _ in range(100):
        loop.watchdog.sample()
        loop.run()
    assert caplog.records == []


def test_a_loop_that_waits_is_not_even_woken() -> None:
    """uvloop waits without a frame of its own, asyncio in a selector."""
    loop = Loop()
    loop.watchdog.sample()
    for waiting in (loop.run(), called_from(Path(selectors.__file__))()):
        loop.frame = waiting
        assert loop.watchdog.sample() == INTERVAL
    assert loop.callbacks == []


def test_a_loop_that_is_about_to_answer_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    """A machine under load may not have let it run yet."""
    loop = Loop()
    loop.watchdog.sample()
    loop.frame = loop.run()
    loop.frame, waiting = somewhere(), loop.frame
    loop.watchdog.sample()
    loop.frame = waiting
    for _ in range(100):
        loop.watchdog.sample()
    assert caplog.records == []


@pytest.mark.parametrize(
    "within",
    [
        called_from(STANDARD_LIBRARY / "subprocess.py"),
        called_from(STANDARD_LIBRARY / "site-packages" / "requests" / "api.py"),
        called_from(Path("/venv/lib/site-packages/requests/api.py"), called_from(STANDARD_LIBRARY / "socket.py")),
        called_from(Path(watchdog.__file__).parents[1] / "client" / "config" / "exec_plugin.py"),
    ],
    ids=["standard library", "its site-packages", "a library that uses it", "kubewright"],
)
def test_the_line_is_that_of_the_users_code(within: Callable[[], FrameType], caplog: pytest.LogCaptureFixture) -> None:
    def reconcile() -> FrameType:
        return within()

    loop = Loop()
    loop.frame = called_from(Path(watchdog.__file__).with_name("worker.py"), reconcile)()
    loop.stay_blocked()
    [record] = caplog.records
    assert f"{__file__}:{reconcile.__code__.co_firstlineno + 1} in " in record.message


def test_of_an_operator_that_is_installed_it_is_the_line_that_kubewright_called(
    caplog: pytest.LogCaptureFixture,
) -> None:
    packages = STANDARD_LIBRARY / "site-packages"
    loop = Loop()
    loop.watchdog.sample()
    requests = called_from(packages / "requests" / "api.py", called_from(STANDARD_LIBRARY / "socket.py"))
    operator = called_from(packages / "operator" / "main.py", requests)
    framework = called_from(Path(watchdog.__file__), operator)

    def run_callbacks() -> None:
        loop.callbacks.pop()()
        loop.frame = framework()

    run_callbacks()  # beneath it is what runs the test, which is no part of the loop
    loop.stay_blocked()
    [record] = caplog.records
    assert f"{packages / 'operator' / 'main.py'}:2 in function" in record.message


# Real loops


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("INTERVAL", "STEP", "BLOCKED"):
        monkeypatch.setattr(watchdog, name, getattr(watchdog, name) / 20)


@pytest.fixture
def reported() -> Iterator[threading.Event]:
    """Set when the function `block` was reported."""
    reported = threading.Event()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if f"{__file__}:" in record.getMessage() and "block_the_loop: " in record.getMessage():
                reported.set()

    handler = Handler()
    logging.getLogger(LOGGER).addHandler(handler)
    yield reported
    logging.getLogger(LOGGER).removeHandler(handler)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_call_that_blocks_a_real_loop_is_found(
    new_loop: Callable[[], asyncio.AbstractEventLoop], reported: threading.Event
) -> None:
    async def block_the_loop() -> bool:
        return reported.wait(30)

    async def program() -> bool:
        with watched_loop():
            return await block_the_loop()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(program())


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_real_loop_that_waits_is_probed_once_and_then_left_alone(
    new_loop: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    sampled = Watchdog.sample

    async def program() -> None:
        settled = asyncio.Event()
        loop = asyncio.get_running_loop()

        def sample(self: Watchdog) -> float:
            pauses.append(sampled(self))
            if pauses[-3:] == [watchdog.INTERVAL] * 3:
                loop.call_soon_threadsafe(settled.set)
            return pauses[-1]

        monkeypatch.setattr(Watchdog, "sample", sample)
        with watched_loop():
            await settled.wait()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(program())


async def test_its_thread_ends_with_the_block_however_that_ends() -> None:
    before = threading.enumerate()
    with watched_loop():
        assert [thread.name for thread in threading.enumerate() if thread not in before] == ["event loop watchdog"]
    assert threading.enumerate() == before
    with pytest.raises(ValueError, match="inside"), watched_loop():
        raise ValueError("inside")
    assert threading.enumerate() == before


async def test_a_manager_is_watched_while_it_runs(embedded_control_plane: ControlPlane) -> None:
    async with embedded_control_plane.client() as client:
        manager = Manager(client)
        has_begun = asyncio.Event()

        async def work() -> None:
            has_begun.set()

        manager.add(work)
        async with manager.running():
            await has_begun.wait()
            assert "event loop watchdog" in [thread.name for thread in threading.enumerate()]
        assert "event loop watchdog" not in [thread.name for thread in threading.enumerate()]


def test_a_loop_in_virtual_time_is_not_watched() -> None:
    async def program() -> None:
        before = threading.enumerate()
        with watched_loop():
            assert threading.enumerate() == before

    run_virtual(program)
