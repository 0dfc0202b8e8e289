from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kubewright import Manager, Request, Result, now
from kubewright.api.authentication.v1 import TokenReview, TokenReviewSpec
from kubewright.api.core.v1 import ConfigMap, ServiceAccount
from kubewright.api.meta import ObjectMeta
from kubewright.api.time import micro_now
from kubewright.cache import CachedClient
from kubewright.client.wait import deleted, exists
from kubewright.controller import controller_for
from kubewright.controlplane import ControlPlane
from kubewright.testing.virtual_time import run_virtual

HOUR = timedelta(hours=1)


def test_the_result_of_main_is_returned_and_its_error_is_raised() -> None:
    async def answers() -> int:
        return 42

    async def fails() -> None:
        raise LookupError("as it is")

    assert run_virtual(answers) == 42
    with pytest.raises(LookupError, match="as it is"):
        run_virtual(fails)


def test_a_year_passes_at_once() -> None:
    year = 365 * 24 * 3600.0

    async def main() -> float:
        await asyncio.sleep(year)
        return asyncio.get_running_loop().time()

    assert run_virtual(main) == pytest.approx(year)


def test_timers_fire_in_their_order_each_at_exactly_its_moment() -> None:
    async def main() -> list[tuple[str, float]]:
        loop, fired = asyncio.get_running_loop(), list[tuple[str, float]]()

        def fire(name: str) -> None:
            fired.append((name, loop.time()))

        for name, when in (("late", 7.25), ("early", 0.5), ("same", 0.5)):
            loop.call_at(when, fire, name)
        await asyncio.sleep(10)
        return fired

    assert run_virtual(main) == [("early", 0.5), ("same", 0.5), ("late", 7.25)]


def test_time_stands_still_while_something_is_ready() -> None:
    async def main() -> float:
        asyncio.get_running_loop().call_later(1, lambda: None)
        for _ in range(100):
            await asyncio.sleep(0)
        return asyncio.get_running_loop().time()

    assert run_virtual(main) == 0.0


def test_a_timeout_ends_a_hanging_wait() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(600):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run_virtual(main) == 600


def test_a_call_from_another_thread_is_waited_for_when_nothing_is_scheduled() -> None:
    async def main() -> None:
        called, loop, ready = asyncio.Event(), asyncio.get_running_loop(), threading.Event()

        def caller() -> None:
            ready.wait(10)
            loop.call_soon_threadsafe(called.set)

        thread = threading.Thread(target=caller)
        thread.start()
        loop.call_soon(ready.set)
        await called.wait()
        thread.join()

    run_virtual(main)


def test_time_stands_still_while_a_thread_works() -> None:
    async def main() -> float:
        loop, release = asyncio.get_running_loop(), threading.Event()
        async with asyncio.timeout(3600):
            working = asyncio.create_task(asyncio.to_thread(release.wait, 10))
            await asyncio.sleep(0)
            loop.call_soon(release.set)
            assert await working
        return loop.time()

    assert run_virtual(main) == 0.0


def test_a_timer_that_a_thread_waits_for_fires_all_the_same() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()

        def work() -> float:
            return asyncio.run_coroutine_threadsafe(asyncio.sleep(0.01, 1.5), loop).result(10)

        assert await asyncio.to_thread(work) == 1.5
        return loop.time()

    assert run_virtual(main) == pytest.approx(0.01)


def test_data_of_a_socket_arrive_before_time_passes() -> None:
    async def main() -> tuple[bytes, float]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readline())
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"echo\n")
            line = await reader.readline()
            writer.close()
            await writer.wait_closed()
        return line, asyncio.get_running_loop().time()

    assert run_virtual(main) == (b"echo\n", 0.0)


def test_left_over_tasks_are_cancelled_and_may_clean_up() -> None:
    cleaned = list[float]()

    async def straggler() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(5)
            cleaned.append(asyncio.get_running_loop().time())

    async def main() -> asyncio.Task[None]:
        task = asyncio.create_task(straggler())
        await asyncio.sleep(1)
        return task

    assert run_virtual(main).cancelled()
    assert cleaned == [6.0]


def test_the_error_for_a_program_that_can_never_end_names_where_it_waits(tmp_path: Path) -> None:
    """In a process of its own: a thread that another test left behind could still make a call."""
    program = tmp_path / "program.py"
    program.write_text(
        """
import asyncio
from kubewright.testing.virtual_time import run_virtual

async def waits_in_vain():
    await asyncio.Event().wait()

async def main():
    await asyncio.create_task(waits_in_vain(), name="the-one")

run_virtual(main)
"""
    )

    ended = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 1
    assert "NeverEnds: nothing will ever happen again" in ended.stderr
    assert f"the-one (waits_in_vain) at {program}:6" in ended.stderr


def test_the_embedded_control_plane_runs_in_virtual_time() -> None:
    async def main() -> tuple[str, float]:
        async with ControlPlane.embedded() as plane, plane.client() as client:
            made = await client.create(ConfigMap(metadata=ObjectMeta(name="settings", namespace="default")))
            await asyncio.sleep(3600)
            found = await client.get(ConfigMap, "settings", namespace="default")
            assert found.metadata.uid == made.metadata.uid
            return found.metadata.name, asyncio.get_running_loop().time()

    name, now = run_virtual(main)
    assert name == "settings"
    assert now >= 3600


def test_timestamps_move_with_the_clock_of_the_loop() -> None:
    async def main() -> tuple[datetime, datetime, datetime]:
        before = now()
        await asyncio.sleep(3600.25)
        return before, now(), micro_now()

    real = datetime.now(UTC)
    before, after, exact = run_virtual(main)

    assert real - timedelta(seconds=1) <= before <= datetime.now(UTC)
    assert after - before == HOUR
    assert exact - before == HOUR + timedelta(seconds=0.25)
    assert now() < after  # outside it is the machine's clock again


def test_a_thread_sees_the_virtual_present() -> None:
    async def main() -> tuple[datetime, datetime]:
        await asyncio.sleep(3600)
        return now(), await asyncio.to_thread(now)

    here, there = run_virtual(main)
    assert here == there


def test_the_embedded_control_plane_stamps_with_virtual_time() -> None:
    async def main() -> list[datetime | None]:
        async with ControlPlane.embedded() as plane, plane.client() as admin:
            client, times = admin.in_namespace("default"), list[datetime | None]()
            for name in ("first", "second"):
                meta = ObjectMeta(name=name, finalizers=["example.com/held"])
                made = await client.create(ConfigMap(metadata=meta))
                assert made.metadata.creation_timestamp == now()
                await asyncio.sleep(3600)
                await client.delete(made)
                times.append(made.metadata.creation_timestamp)
                times.append((await client.get(ConfigMap, name)).metadata.deletion_timestamp)
            return times

    times = run_virtual(main)
    start = times[0]
    assert start is not None
    assert times == [start, start + HOUR, start + HOUR, start + 2 * HOUR]


def test_a_token_expires_when_its_virtual_time_is_over() -> None:
    async def main() -> list[bool | None]:
        async with ControlPlane.embedded() as plane, plane.client() as admin:
            client = admin.in_namespace("default")
            await client.wait_for(ServiceAccount, "default", exists, timeout=20)
            token = (await client.token("default", expiration_seconds=3600)).status.token or ""
            verdicts = list[bool | None]()
            for _ in range(2):
                review = await admin.create(TokenReview(spec=TokenReviewSpec(token=token)))
                verdicts.append(review.status.authenticated)
                await asyncio.sleep(2 * 3600)
            return verdicts

    assert run_virtual(main) == [True, None]


class Expiring:
    """Deletes what is older than an hour, by its timestamp."""

    def __init__(self, client: CachedClient) -> None:
        self.client = client

    async def reconcile(self, request: Request) -> Result:
        found = await self.client.find(ConfigMap, request)
        if found is None or found.metadata.creation_timestamp is None or found.metadata.name != "short-lived":
            return Result()
        left = found.metadata.creation_timestamp + HOUR - now()
        if left > timedelta(0):
            return Result(requeue_after=left.total_seconds())
        await self.client.delete(found)
        return Result()


def test_a_time_to_live_by_timestamps_ends_at_its_moment() -> None:
    async def main() -> timedelta:
        async with ControlPlane.embedded() as plane, plane.client() as admin, asyncio.TaskGroup() as tasks:
            client, manager = admin.in_namespace("default"), Manager(admin)
            controller_for(manager, ConfigMap).complete(Expiring(manager.client))
            tasks.create_task(manager.run())
            made = await client.create(ConfigMap(metadata=ObjectMeta(name="short-lived")))
            began = micro_now()
            await client.wait_for(made, deleted, timeout=2 * 3600)
            manager.stop()
            return micro_now() - began

    assert run_virtual(main) == pytest.approx(HOUR, abs=timedelta(seconds=2))
