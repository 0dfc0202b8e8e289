"""Releases, with a registry in memory. In virtual time."""

from __future__ import annotations

import asyncio

from operators.devbox import DevBoxRelease, DevBoxReleaseSpec, InMemoryCommitter, InMemoryRegistry
from operators.devbox.release_types import ReleasePhase
from operators.devbox.tests.world import LONG, World, running_world

from kubewright import Field, KubernetesError, ObjectMeta
from kubewright.client import MergePatch
from kubewright.patterns import get_condition
from kubewright.testing import count_requests, settled, virtual


def release(*, start: bool = False, version: str = "v1.0") -> DevBoxRelease:
    return DevBoxRelease(
        metadata=ObjectMeta(name="first", namespace="default"),
        spec=DevBoxReleaseSpec(devbox_name="it", version=version, start_devbox_after_release=start),
    )


async def ended(world: World, phase: ReleasePhase) -> DevBoxRelease:
    found = await world.admin.wait_for(DevBoxRelease, "first", Field("status.phase").equals(phase), timeout=LONG)
    assert found is not None
    return found


def reason(found: DevBoxRelease) -> str:
    condition = get_condition(found, "Ready")
    assert condition is not None
    return condition.reason


@virtual
async def test_a_release_waits_until_the_devbox_is_stopped_and_starts_it_again_once() -> None:
    registry = InMemoryRegistry("registry.example.com")
    async with running_world(committer=InMemoryCommitter(registry), registry=registry) as world:
        await world.admin.create(release(start=True))
        await settled(world.manager)
        waiting = await world.admin.get(DevBoxRelease, "first")
        assert (waiting.status.phase, reason(waiting)) == ("Pending", "DevboxMissing")
        await world.run()
        await settled(world.manager)
        waiting = await world.admin.get(DevBoxRelease, "first")
        assert (waiting.status.original_devbox_state, reason(waiting)) == ("Running", "DevboxNotStopped")
        # Nothing is polled while it waits.
        with count_requests(world.own) as requests:
            await asyncio.sleep(60)
        assert requests.attempts == []

        await world.set_state("Stopped")
        found = await ended(world, "Success")
        content = found.status.source_image.rpartition(":")[2]
        assert found.status.target_image == "registry.example.com/default/it:v1.0"
        assert registry.images[found.status.target_image] == content
        running = await world.reaches("Running")
        assert running.status.record.base_image == found.status.source_image
        await world.set_state("Stopped")
        await world.reaches("Stopped")
        await asyncio.sleep(60)
        stopped = await world.at_rest()
        assert stopped.spec.state == "Stopped"
        # What is released outlives the commits that it was made from.
        assert registry.images[found.status.target_image] == content
        assert found.status.source_image not in registry.images

        # As when the operator ends before it has written that the Devbox was started.
        await world.kill()
        await world.admin.status.patch(DevBoxRelease, "first", MergePatch({"status": {"conditions": None}}))
        await world.start()
        assert (await world.at_rest()).spec.state == "Stopped"


@virtual
async def test_a_release_of_an_image_that_is_gone_fails_for_good() -> None:
    registry = InMemoryRegistry()
    async with running_world(committer=InMemoryCommitter(registry), registry=registry) as world:
        await world.run()
        await world.set_state("Shutdown")
        await world.reaches("Shutdown")
        registry.images.clear()
        await world.admin.create(release())
        found = await ended(world, "Failed")
        assert reason(found) == "ImageMissing"
        assert (await world.read()).spec.state == "Shutdown"


@virtual
async def test_a_registry_that_does_not_answer_is_named_and_asked_again() -> None:
    class Flaky(InMemoryRegistry):
        answers = False

        async def tag(self, source: str, target: str) -> None:
            if not self.answers:
                raise KubernetesError("the registry does not answer")
            await super().tag(source, target)

    registry = Flaky()
    async with running_world(committer=InMemoryCommitter(registry), registry=registry) as world:
        await world.run()
        await world.set_state("Stopped")
        stopped = await world.reaches("Stopped")
        await world.admin.create(release())
        await asyncio.sleep(60)
        waiting = await world.admin.get(DevBoxRelease, "first")
        assert (waiting.status.phase, reason(waiting)) == ("Pending", "RegistryFailed")
        source, target = stopped.status.record.base_image, "registry.local/default/it:v1.0"
        ready = get_condition(waiting, "Ready")
        assert ready is not None
        assert ready.message == f"{source} is not released as {target} yet: the registry does not answer"
        registry.answers = True
        await ended(world, "Success")


@virtual
async def test_without_a_registry_a_release_fails_and_says_why() -> None:
    async with running_world() as world:
        await world.run()
        await world.admin.create(release())
        found = await ended(world, "Failed")
        assert reason(found) == "NoRegistry"
