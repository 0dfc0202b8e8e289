from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping

import pytest
from tests.patterns.errands import Errand, ErrandReconciler, Records, errand, failing, world

from kubewright import CachedClient, Client, ControlPlane, Manager, controller_for
from kubewright.client.wait import Field
from kubewright.patterns import NotYet
from kubewright.testing import RecordedEvents, run_virtual


class Overlapping(CachedClient):
    """Two lists that run at the same time end at the same time."""

    barrier: asyncio.Barrier

    def list(self, *args: object, **options: object) -> object:  # type: ignore[override]  # of one kind only
        found = Client.list(self, Errand, namespace="default")

        async def both() -> list[Errand]:
            objects = [each async for each in found]
            await self.barrier.wait()
            return [each for each in objects if each.metadata.uid == self.seen]

        return both()

    seen = ""


def test_requests_that_do_not_see_each_other_yet_run_one_at_a_time() -> None:
    async def main() -> None:
        async with ControlPlane.embedded(definitions=[Errand], controllers=[]) as plane, plane.client() as admin:
            client = Overlapping(admin, Manager(admin).cache)
            client.barrier = asyncio.Barrier(2)
            reconciler = ErrandReconciler(client, RecordedEvents(), Records())
            running = 0

            async def act(request: Errand) -> str:
                nonlocal running
                running += 1
                assert running == 1
                await asyncio.sleep(1)
                running -= 1
                return "done"

            reconciler.acting = act
            keys = [(await admin.create(errand(name, user="bob"))).key for name in ("a", "b")]
            await asyncio.gather(*(reconciler.reconcile(key) for key in keys))
            phases = sorted([(await admin.get(Errand, key)).status.phase for key in keys])
            assert phases == ["Completed", "Pending"]

    run_virtual(main)


def test_a_request_is_woken_when_the_one_before_it_is_deleted_or_expires() -> None:
    async def main() -> None:
        async with world(failing(*[NotYet("busy", after=500)] * 9)) as it:
            for name in ("first", "second", "third"):
                await it.admin.create(errand(name, user="bob"))
                await asyncio.sleep(1)
            await it.admin.delete(Errand, "first")
            await asyncio.sleep(0.5)
            assert [await it.phase("second"), await it.phase("third")] == ["Processing", "Pending"]
            await it.admin.wait_for(Errand, "second", Field("status.phase").equals("Failed"), timeout=3600)
            await asyncio.sleep(0.5)
            assert await it.phase("third") == "Processing"

    run_virtual(main)


def test_item_86_requests_of_one_key_run_one_at_a_time_the_oldest_first() -> None:
    running: dict[str, int] = {}
    order: list[str] = []

    async def act(request: Errand) -> str:
        user = request.spec.user
        running[user] = running.get(user, 0) + 1
        assert running[user] == 1
        order.append(request.metadata.name)
        await asyncio.sleep(7)
        running[user] -= 1
        return "done"

    async def main() -> None:
        async with world(act) as it:
            names = ["c", "a", "d", "b"]
            for name in names:
                await it.admin.create(errand(name, user="bob"))
                await asyncio.sleep(1)
            await it.admin.create(errand("other", user="eve"))
            await asyncio.sleep(0.5)
            assert await it.phase("other") == "Processing", "another key does not wait"
            await asyncio.sleep(28)
            assert [await it.phase(name) for name in names] == ["Completed"] * 4
            assert [name for name in order if name != "other"] == names

    run_virtual(main)


def test_a_request_whose_key_or_description_cannot_be_found_holds_up_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Strict(ErrandReconciler):
        def serialize_by(self, request: Errand) -> Hashable | None:
            if request.spec.user == "nobody":
                raise KeyError(request.spec.user)
            return "all"

        def describe(self, request: Errand) -> Mapping[str, str]:
            raise KeyError(request.spec.what)

    async def main() -> None:
        async with world(made=Strict) as it:
            await it.admin.create(errand("bad", user="nobody"))
            await asyncio.sleep(1)
            await it.admin.create(errand("good", user="bob"))
            await asyncio.sleep(1)
            assert [await it.phase("bad"), await it.phase("good")] == ["Pending", "Completed"]
            assert it.events.reasons == ["Completed"]
            assert it.records.phases == [("Pending", "Processing"), ("Processing", "Completed")]

    run_virtual(main)
    assert "what default/good requests could not be described" in caplog.text


def test_a_request_that_is_held_while_it_is_deleted_holds_no_other_up() -> None:
    """Nothing comes of it any more."""

    async def main() -> None:
        async with world(failing(NotYet("busy", after=500))) as it:
            held = errand("first", user="bob")
            held.metadata.finalizers = ["example.com/held"]
            await it.admin.create(held)
            await asyncio.sleep(1)
            await it.admin.create(errand("second", user="bob"))
            await asyncio.sleep(1)
            assert [await it.phase("first"), await it.phase("second")] == ["Processing", "Pending"]
            await it.admin.delete(Errand, "first")
            await asyncio.sleep(1)
            assert await it.phase("second") == "Completed"

    run_virtual(main)


@pytest.mark.parametrize("keys", [1, 100])
def test_the_turns_of_many_requests_cost_a_few_calls_for_each(keys: int) -> None:
    """Not one for each pair of requests."""
    number, calls = 100, 0

    class Counting(ErrandReconciler):
        def serialize_by(self, request: Errand) -> Hashable | None:
            nonlocal calls
            calls += 1
            return super().serialize_by(request)

    async def main() -> None:
        async with world(made=Counting) as it:
            for index in range(number):
                await it.admin.create(errand(f"errand-{index}", user=f"user-{index % keys}"))
            last = f"errand-{number - 1}" if keys > 1 else None
            while len(it.records.records) < 2 * number:
                await asyncio.sleep(1)
            assert last is None or await it.phase(last) == "Completed"

    run_virtual(main)
    assert calls <= 6 * number


def test_what_waits_is_not_reconciled_before_its_turn() -> None:
    async def main() -> None:
        async with world(failing(NotYet("busy", after=300))) as it:
            await it.admin.create(errand("first", user="bob"))
            await asyncio.sleep(1)
            await it.admin.create(errand("second", user="bob"))
            await asyncio.sleep(1)
            reconciled: list[str] = []
            original = it.reconciler.serialize_by

            def noted(request: Errand) -> Hashable | None:
                reconciled.append(request.metadata.name)
                return original(request)

            it.reconciler.serialize_by = noted  # type: ignore[method-assign]  # calls are noted
            await asyncio.sleep(250)
            assert reconciled == []

    run_virtual(main)


def test_a_request_that_another_process_has_begun_goes_on_before_older_ones() -> None:
    """After a change of the leader: who has begun it has left something undone."""
    order: list[str] = []

    async def act(request: Errand) -> str:
        order.append(request.metadata.name)
        return "done"

    async def main() -> None:
        async with ControlPlane.embedded(definitions=[Errand], controllers=[]) as plane, plane.client() as admin:
            for name in ("older", "begun", "newer"):
                await admin.create(errand(name, user="bob"))
                await asyncio.sleep(1)
            begun = await admin.get(Errand, "begun")
            begun.status.phase = "Processing"
            await admin.status.patch(begun)
            manager = Manager(admin)
            reconciler = ErrandReconciler(manager.client, RecordedEvents(), Records())
            reconciler.acting = act
            controller_for(manager, Errand, workers=4).complete(reconciler)
            async with manager.running():
                await asyncio.sleep(5)
            assert order == ["begun", "older", "newer"]

    run_virtual(main)


def test_a_request_that_is_deleted_while_it_is_acted_upon_holds_its_key_until_then() -> None:
    running: set[str] = set()

    async def act(request: Errand) -> str:
        assert not running
        running.add(request.metadata.name)
        await asyncio.sleep(20)
        running.clear()
        return "done"

    async def main() -> None:
        async with world(act) as it:
            await it.admin.create(errand("first", user="bob"))
            await asyncio.sleep(1)
            await it.admin.create(errand("second", user="bob"))
            await it.admin.delete(Errand, "first")
            await asyncio.sleep(15)
            assert running == {"first"}
            await asyncio.sleep(8)
            assert running == {"second"}

    run_virtual(main)
