from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
import uvloop

from kubewright.manager.signals import stop_on_signals

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop, uvloop.new_event_loop]


@pytest.mark.parametrize("new_loop", LOOPS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_stops_and_each_further_one_forces(
    new_loop: Callable[[], asyncio.AbstractEventLoop], number: signal.Signals
) -> None:
    async def main() -> None:
        calls: list[str] = []
        stopped, forced = asyncio.Event(), asyncio.Event()

        def stop() -> None:
            calls.append("stop")
            stopped.set()

        def force() -> None:
            calls.append("force")
            # From the handler, not from within the loop.
            loop.call_soon_threadsafe(forced.set)

        loop = asyncio.get_running_loop()
        async with asyncio.timeout(10), stop_on_signals(stop, force):
            os.kill(os.getpid(), number)
            await stopped.wait()
            assert calls == ["stop"]
            for _ in range(2):
                forced.clear()
                os.kill(os.getpid(), signal.SIGTERM)
                await forced.wait()
            assert calls == ["stop", "force", "force"]

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())


@pytest.mark.parametrize("new_loop", LOOPS)
def test_the_previous_handlers_are_restored(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    received: list[int] = []

    def mine(number: int, frame: object) -> None:
        received.append(number)

    async def main() -> None:
        async with stop_on_signals(lambda: None, lambda: None):
            assert signal.getsignal(signal.SIGTERM) is not mine
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGINT)
    original = signal.signal(signal.SIGTERM, mine)
    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(main())
        assert signal.getsignal(signal.SIGTERM) is mine
        assert received == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGTERM, original)


async def test_the_handlers_are_restored_after_an_error() -> None:
    before = [signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)]
    with pytest.raises(ValueError, match="inside"):
        async with stop_on_signals(lambda: None, lambda: None):
            raise ValueError("inside")
    assert [signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)] == before


def test_in_another_thread_it_is_an_error_because_signals_do_not_reach_it() -> None:
    errors: list[str] = []

    async def main() -> None:
        try:
            async with stop_on_signals(lambda: None):
                raise AssertionError
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    thread.join(10)
    assert errors == ["signals reach the main thread only: handle them there, and not in this one"]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_the_second_signal_ends_a_program_whose_loop_hangs_with_exit_code_1(loop: str) -> None:
    program = f"""
import asyncio, {loop}
from kubewright.manager.signals import stop_on_signals

async def main():
    async with stop_on_signals(lambda: print("never")):
        print("ready", flush=True)
        while True:
            pass

with asyncio.Runner(loop_factory={loop}.new_event_loop) as runner:
    runner.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        # Two of one kind may be taken for one.
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 1
        assert process.stdout.read() == ""
