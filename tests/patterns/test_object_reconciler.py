from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Generic, TypeVar

import pytest
from tests.patterns.parcels import Parcel, ParcelStatus, parcel

from kubewright import (
    Client,
    Manager,
    Model,
    NotFound,
    ObjectMeta,
    Request,
    Resource,
    Result,
    controller_for,
    definition_of,
    resource,
)
from kubewright.api import Object
from kubewright.cache import CachedClient
from kubewright.client.wait import deleted
from kubewright.patterns import NotYet, ObjectReconciler, set_condition
from kubewright.testing import Install, Running, count_requests, settled

S = TypeVar("S", bound=Object)
T = TypeVar("T", bound=Object)

FINALIZER = "patterns.kubewright.test/cleanup"


class ParcelReconciler(ObjectReconciler[Parcel]):
    """Does what a test says."""

    finalizer = FINALIZER

    def __init__(self, client: CachedClient) -> None:
        super().__init__(client)
        self.converging: Callable[[Parcel], Result | None] = lambda obj: None
        self.cleaning: Callable[[Parcel], None] = lambda obj: None
        self.converged: list[str] = []
        self.cleaned: list[str] = []

    async def converge(self, obj: Parcel) -> Result | None:
        self.converged.append(obj.metadata.name)
        return self.converging(obj)

    async def cleanup(self, obj: Parcel) -> None:
        self.cleaning(obj)
        self.cleaned.append(obj.metadata.name)


@pytest.fixture
async def obj(admin: Client, namespace: str, install: Install) -> Parcel:
    await install(Parcel)
    return await admin.create(parcel(namespace=namespace))


@pytest.fixture
def reconciler(admin: Client) -> ParcelReconciler:
    """Reads from the server: nothing is watched."""
    return ParcelReconciler(Manager(admin).client)


async def test_item_26_an_object_that_is_gone_is_no_error(
    admin: Client, install: Install, reconciler: ParcelReconciler
) -> None:
    await install(Parcel)
    with count_requests(admin) as requests:
        assert await reconciler.reconcile(Request("default", "nowhere")) is None
    assert (reconciler.converged, requests.writes) == ([], 0)


async def test_the_finalizer_goes_on_first_in_a_reconcile_of_its_own(
    admin: Client, obj: Parcel, reconciler: ParcelReconciler
) -> None:
    assert await reconciler.reconcile(obj.key) == Result(requeue=True)
    held = await admin.get(obj)
    assert (held.metadata.finalizers, held.status, reconciler.converged) == ([FINALIZER], obj.status, [])
    await reconciler.reconcile(obj.key)
    assert reconciler.converged == ["web"]


async def test_cleanup_has_succeeded_before_the_object_is_gone(
    admin: Client, obj: Parcel, reconciler: ParcelReconciler
) -> None:
    await reconciler.reconcile(obj.key)
    await admin.delete(obj)

    def busy(obj: Parcel) -> None:
        obj.status.phase = "Stopping"
        raise NotYet("the machine is running", after=timedelta(seconds=2))

    reconciler.cleaning = busy
    assert await reconciler.reconcile(obj.key) == Result(requeue_after=2.0)
    there = await admin.get(obj)
    assert (there.metadata.finalizers, there.status.phase) == ([FINALIZER], "Stopping")
    reconciler.cleaning = lambda obj: None
    assert await reconciler.reconcile(obj.key) is None
    assert reconciler.cleaned == ["web"]
    await admin.wait_for(obj, deleted, timeout=30)


async def test_a_failing_cleanup_keeps_the_finalizer(admin: Client, obj: Parcel, reconciler: ParcelReconciler) -> None:
    await reconciler.reconcile(obj.key)
    await admin.delete(obj)

    def fail(obj: Parcel) -> None:
        obj.status.phase = "Stuck"
        raise RuntimeError("no")

    reconciler.cleaning = fail
    with pytest.raises(RuntimeError):
        await reconciler.reconcile(obj.key)
    there = await admin.get(obj)
    assert (there.metadata.finalizers, there.status.phase) == ([FINALIZER], "Stuck")
    reconciler.cleaning = lambda obj: None
    await reconciler.reconcile(obj.key)


async def test_finalizers_of_others_are_left_alone(admin: Client, obj: Parcel, reconciler: ParcelReconciler) -> None:
    obj.metadata.finalizers.append("example.com/theirs")
    await admin.patch(obj)
    await reconciler.reconcile(obj.key)
    await admin.delete(obj)
    await reconciler.reconcile(obj.key)
    there = await admin.get(obj)
    assert there.metadata.finalizers == ["example.com/theirs"]
    with count_requests(admin) as requests:
        assert await reconciler.reconcile(obj.key) is None
    assert (reconciler.cleaned, requests.writes) == (["web"], 0)
    there.metadata.finalizers.clear()
    await admin.patch(there)


def count(obj: Parcel) -> None:
    obj.status.seen = obj.spec.size
    set_condition(obj, "Ready", True, "Done")


async def test_item_52_the_status_is_written_once_and_not_at_all_when_nothing_changed(
    admin: Client, obj: Parcel, reconciler: ParcelReconciler
) -> None:
    await reconciler.reconcile(obj.key)
    reconciler.converging = count
    with count_requests(admin) as requests:
        await reconciler.reconcile(obj.key)
    assert requests.writes == 1
    there = await admin.get(obj)
    assert (there.status.seen, there.status.observed_generation) == (1, 1)
    with count_requests(admin) as requests:
        await reconciler.reconcile(obj.key)
    assert requests.writes == 0
    there.spec.size = 2
    await admin.patch(there)
    await reconciler.reconcile(obj.key)
    assert (await admin.get(obj)).status.observed_generation == 2


async def test_a_generation_is_observed_when_the_reconciler_says_so(
    admin: Client, obj: Parcel, reconciler: ParcelReconciler
) -> None:
    class Patient(ParcelReconciler):
        def is_observed(self, obj: Parcel) -> bool:
            return obj.status.phase == "Delivered"

    reconciler = Patient(reconciler.client)
    await reconciler.reconcile(obj.key)
    for phase, observed in (("Travelling", 0), ("Delivered", 1)):

        def report(obj: Parcel, phase: str = phase) -> None:
            obj.status.phase = phase

        reconciler.converging = report
        await reconciler.reconcile(obj.key)
        status = (await admin.get(obj)).status
        assert (status.phase, status.observed_generation) == (phase, observed)


async def test_item_53_what_others_write_into_the_status_meanwhile_survives(
    admin: Client, obj: Parcel, reconciler: ParcelReconciler
) -> None:
    await reconciler.reconcile(obj.key)

    async def foreign() -> None:
        there = await admin.get(obj)
        there.status.phase = "Foreign"
        set_condition(there, "Theirs", True, "Done")
        await admin.status.patch(there)

    class Interrupted(ParcelReconciler):
        async def converge(self, obj: Parcel) -> Result | None:
            await foreign()
            count(obj)
            return None

    await Interrupted(reconciler.client).reconcile(obj.key)
    there = await admin.get(obj)
    assert (there.status.phase, there.status.seen) == ("Foreign", 1)
    assert {condition.type for condition in there.status.conditions} == {"Theirs", "Ready"}


async def test_the_status_is_written_when_a_reconcile_waits_or_fails(
    admin: Client, obj: Parcel, reconciler: ParcelReconciler
) -> None:
    await reconciler.reconcile(obj.key)

    def wait(obj: Parcel) -> None:
        obj.status.phase = "Waiting"
        raise NotYet("no node yet", after=5)

    def fail(obj: Parcel) -> None:
        obj.status.phase = "Failing"
        raise RuntimeError("broken")

    reconciler.converging = wait
    assert await reconciler.reconcile(obj.key) == Result(requeue_after=5.0)
    assert (await admin.get(obj)).status.phase == "Waiting"
    reconciler.converging = fail
    with pytest.raises(RuntimeError, match="broken"):
        await reconciler.reconcile(obj.key)
    assert (await admin.get(obj)).status.phase == "Failing"


async def test_a_cancelled_reconcile_writes_nothing(admin: Client, obj: Parcel, reconciler: ParcelReconciler) -> None:
    await reconciler.reconcile(obj.key)

    def cancel(obj: Parcel) -> None:
        obj.status.phase = "Half"
        raise asyncio.CancelledError

    reconciler.converging = cancel
    with count_requests(admin) as requests, pytest.raises(asyncio.CancelledError):
        await reconciler.reconcile(obj.key)
    assert requests.writes == 0


async def test_what_is_made_for_an_object_that_is_gone_meanwhile_is_cleaned_up_again(
    admin: Client, obj: Parcel, reconciler: ParcelReconciler
) -> None:
    """As when its finalizers are removed by hand."""

    class Deleted(ParcelReconciler):
        async def converge(self, obj: Parcel) -> Result | None:
            there = await admin.get(obj)
            there.metadata.finalizers.clear()
            await admin.patch(there)
            await admin.delete(obj)
            count(obj)
            return Result(requeue_after=1)

    await reconciler.reconcile(obj.key)
    late = Deleted(reconciler.client)
    assert await late.reconcile(obj.key) == Result(requeue_after=1)
    assert late.cleaned == ["web"]


async def test_the_wait_is_logged_once_for_each_message(
    admin: Client, obj: Parcel, reconciler: ParcelReconciler, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "kubewright.patterns")
    messages = iter(["no node", "no node", "no disk"])

    def wait(obj: Parcel) -> None:
        raise NotYet(next(messages))

    await reconciler.reconcile(obj.key)
    reconciler.converging = wait
    for _ in range(3):
        await reconciler.reconcile(obj.key)
    assert [record.getMessage() for record in caplog.records] == ["waiting: no node", "waiting: no disk"]


async def test_it_works_under_a_manager_and_settles(
    admin: Client, namespace: str, install: Install, running: Running
) -> None:
    await install(Parcel)
    manager = Manager(admin, namespaces=[namespace])
    reconciler = ParcelReconciler(manager.client)
    reconciler.converging = count
    controller_for(manager, Parcel).complete(reconciler)
    async with running(manager):
        obj = await admin.create(parcel(namespace=namespace))
        await settled(manager, quiet=0.2)
        there = await admin.get(obj)
        assert (there.status.seen, there.metadata.finalizers) == (1, [FINALIZER])
        assert reconciler.converged == ["web"]
        await admin.delete(obj)
        await admin.wait_for(obj, deleted, timeout=30)
    assert reconciler.cleaned == ["web"]


async def test_an_object_that_has_taken_the_name_of_another_gets_nothing_of_its_status(
    admin: Client, namespace: str, install: Install
) -> None:
    await install(Parcel)

    class Replaced(ObjectReconciler[Parcel]):
        async def converge(self, obj: Parcel) -> None:
            await admin.delete(obj)
            await admin.create(parcel(namespace=namespace))
            obj.status.phase = "Running"

    first = await admin.create(parcel(namespace=namespace))
    await Replaced(Manager(admin).client).reconcile(first.key)
    second = await admin.get(first)
    assert second.metadata.uid != first.metadata.uid
    assert second.status == first.status


async def test_the_status_is_written_after_the_object_was_changed_in_converge(admin: Client, obj: Parcel) -> None:
    class Labelling(ObjectReconciler[Parcel]):
        async def converge(self, obj: Parcel) -> None:
            obj.metadata.labels["seen"] = "yes"
            await self.client.patch(obj)
            obj.status.phase = "Running"
            set_condition(obj, "Ready", True, "Done")

    await Labelling(Manager(admin).client).reconcile(obj.key)
    there = await admin.get(obj)
    assert (there.metadata.labels, there.status.phase) == ({"seen": "yes"}, "Running")
    assert [condition.type for condition in there.status.conditions] == ["Ready"]


async def test_a_kind_without_a_status_endpoint_is_an_error(admin: Client, namespace: str, install: Install) -> None:
    """It is answered like an object that is gone, and the status would be lost without a word."""

    @resource("plain.patterns.kubewright.test/v1")
    class Box(Resource[CrateSpec, ParcelStatus]):
        """Whose definition is that of somebody else."""

    definition = definition_of(Box)
    definition.spec.versions[0].subresources = None
    await install(definition)
    box = await admin.create(Box(metadata=ObjectMeta(name="web", namespace=namespace), spec=CrateSpec()))

    class BoxReconciler(ObjectReconciler[Box]):
        async def converge(self, obj: Box) -> None:
            obj.status.phase = "Running"

    with pytest.raises(NotFound):
        await BoxReconciler(Manager(admin).client).reconcile(box.key)


class CrateSpec(Model):
    pass


@resource("patterns.kubewright.test/v1")
class Crate(Resource[CrateSpec, None]):
    """Without a status."""


async def test_a_kind_without_status_needs_none(admin: Client, namespace: str, install: Install) -> None:
    class CrateReconciler(ObjectReconciler[Crate]):
        async def converge(self, obj: Crate) -> Result | None:
            return Result(requeue_after=3)

    await install(Crate)
    crate = await admin.create(Crate(metadata=ObjectMeta(name="web", namespace=namespace), spec=CrateSpec()))
    with count_requests(admin) as requests:
        assert await CrateReconciler(Manager(admin).client).reconcile(crate.key) == Result(requeue_after=3)
    assert requests.writes == 0


def test_a_class_that_names_no_kind_is_refused() -> None:
    with pytest.raises(TypeError, match="Nameless does not name its kind"):

        class Nameless(ObjectReconciler):  # type: ignore[type-arg]
            pass


def test_a_cleanup_without_a_finalizer_is_refused() -> None:
    with pytest.raises(TypeError, match="Careless has a cleanup and no finalizer"):

        class Careless(ObjectReconciler[Parcel]):
            async def cleanup(self, obj: Parcel) -> None:
                pass


def test_an_unqualified_finalizer_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a qualified name"):

        class Sloppy(ObjectReconciler[Parcel]):
            finalizer = "cleanup"


def test_the_kind_is_inherited(admin: Client) -> None:
    class Derived(ParcelReconciler):
        pass

    assert Derived(Manager(admin).client).kind is Parcel


def test_a_base_class_may_leave_the_kind_to_derived_ones() -> None:
    class Labelled(Generic[S]):
        pass

    class Both(ObjectReconciler[T], Generic[S, T]):
        async def converge(self, obj: T, /) -> None: ...

    class Swapped(Both[T, S]):
        pass

    class Named(Labelled[Crate], Both[Crate, Parcel]):
        pass

    class Other(Swapped[Parcel, Crate]):
        pass

    assert not hasattr(Both, "kind")
    assert Named.__new__(Named).kind is Parcel
    assert Other.__new__(Other).kind is Crate


def test_a_wait_of_no_time_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a number of seconds above 0"):
        NotYet("busy", after=0)
    with pytest.raises(ValueError, match="expected a number of seconds above 0"):
        NotYet("busy", after=float("nan"))


def test_a_reconciler_without_converge_cannot_be_made(admin: Client) -> None:
    class Empty(ObjectReconciler[Parcel]):
        pass

    with pytest.raises(TypeError, match=r"abstract class Empty .*converge"):
        Empty(Manager(admin).client)  # type: ignore[abstract]
