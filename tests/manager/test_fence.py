from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading

import pytest
import uvloop

from kubewright.manager.fence import clock_of, fenced, system_clock
from kubewright.testing.virtual_time import VirtualTimeLoop


def test_a_deadline_that_has_passed_is_reported_once_from_another_thread() -> None:
    reported: list[tuple[str, str]] = []
    struck = threading.Event()

    def exit_(message: str) -> None:
        reported.append((threading.current_thread().name, message))
        struck.set()

    with fenced(lambda: system_clock() - 1, exit_):
        assert struck.wait(30)
    assert reported == [
        ("leader fence", "the lease has run out while the event loop was blocked; exiting, as another may lead now")
    ]


@pytest.mark.parametrize("ahead", [None, 3600.0], ids=["no deadline", "one far ahead"])
def test_nothing_happens_before_the_deadline(ahead: float | None) -> None:
    reported: list[str] = []
    requested = threading.Semaphore(0)

    def deadline() -> float | None:
        requested.release()
        return system_clock() + ahead if ahead is not None else None

    with fenced(deadline, reported.append):
        # The second question means that the first answer was acted on.
        assert requested.acquire(timeout=30)
        assert requested.acquire(timeout=30)
    assert reported == []


def test_the_deadline_is_read_again_each_time() -> None:
    """A renewal moves it."""
    struck = threading.Event()
    answers = iter([None, system_clock() + 3600, system_clock() - 1])
    with fenced(lambda: next(answers), lambda message: struck.set()):
        assert struck.wait(30)


def test_its_thread_ends_with_the_block_however_that_ends() -> None:
    before = threading.enumerate()
    with fenced(lambda: None):
        assert len(threading.enumerate()) == len(before) + 1
    assert threading.enumerate() == before
    with pytest.raises(ValueError, match="inside"), fenced(lambda: None):
        raise ValueError("inside")
    assert threading.enumerate() == before


def test_a_process_whose_event_loop_is_blocked_exits_when_its_lease_has_run_out() -> None:
    """The whole way: a manager that leads, a runnable that blocks the loop, and a lease that cannot be renewed."""
    program = textwrap.dedent(
        """
        import asyncio, time
        from kubewright.controlplane import ControlPlane
        from kubewright.manager import Manager
        from kubewright.manager.leader_election import LeaderElection

        async def block():
            print("blocking", flush=True)
            time.sleep(600)

        async def main():
            async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as client:
                election = LeaderElection(
                    client, "fenced", namespace="default", lease_duration=2, renew_deadline=1.5, retry_period=0.5
                )
                manager = Manager(client, election=election)
                manager.add(block)
                await manager.run()

        asyncio.run(main())
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "blocking\n")
    # The watchdog may name the line that blocks at the same moment.
    assert (
        "kubewright: the lease has run out while the event loop was blocked; exiting, as another may lead now"
        in done.stderr.splitlines()
    )
    assert "Traceback" not in done.stderr


def test_a_lease_goes_by_the_clock_of_the_machine_except_in_virtual_time() -> None:
    """uvloop's own clock stands still within a callback, and any loop's while the machine is suspended."""
    for loop, is_real in (asyncio.new_event_loop(), True), (uvloop.new_event_loop(), True), (VirtualTimeLoop(), False):
        assert (clock_of(loop) is system_clock) is is_real
        assert clock_of(loop) == (system_clock if is_real else loop.time)
        loop.close()
