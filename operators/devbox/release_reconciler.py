"""Releases a Devbox: when it is stopped, its commit gets the version as another tag.

What is done once is remembered in the status before the next part: tagging, which may be repeated, and starting the
Devbox again, which may not.
"""

from __future__ import annotations

from kubewright import CachedClient, Recorder, Result
from kubewright.patterns import ObjectReconciler, is_true, set_condition

from .registry import ImageMissing, Registry
from .release_types import DevBoxRelease
from .types import Devbox

STARTED = "DevboxStarted"


class DevBoxReleaseReconciler(ObjectReconciler[DevBoxRelease]):
    """Reconciles DevBoxReleases. Without a registry all of them fail, and say so."""

    def __init__(self, client: CachedClient, events: Recorder, registry: Registry | None) -> None:
        super().__init__(client)
        self.events = events
        self.registry = registry

    async def converge(self, release: DevBoxRelease) -> Result | None:
        """Do the next part. Changes of the Devbox enqueue the release: nothing is polled."""
        if release.status.phase == "Failed":
            return None
        if release.status.phase == "Success":
            await self.start(release)
            return None
        devbox = await self.client.find(Devbox, release.spec.devbox_name, namespace=release.metadata.namespace)
        if devbox is None:
            set_condition(release, "Ready", False, "DevboxMissing", f"there is no Devbox {release.spec.devbox_name}")
            return None
        if release.status.original_devbox_state is None:
            release.status.original_devbox_state = devbox.spec.state
        if self.registry is None:
            self.fail(release, "NoRegistry", "the operator has no registry for releases")
            return None
        # A phase of an earlier generation may be that of an earlier content.
        is_reached = devbox.status.phase == devbox.spec.state and devbox.status.observed_generation == (
            devbox.metadata.generation
        )
        if devbox.spec.state not in ("Stopped", "Shutdown") or not is_reached:
            message = f"the Devbox is {devbox.status.phase}: stop it or shut it down"
            set_condition(release, "Ready", False, "DevboxNotStopped", message)
            return None
        await self.tag(release, devbox, self.registry)
        return Result(requeue=True)

    async def tag(self, release: DevBoxRelease, devbox: Devbox, registry: Registry) -> None:
        """Give the commit its version."""
        name = f"{devbox.metadata.namespace}/{devbox.metadata.name}:{release.spec.version}"
        source, target = devbox.status.record.base_image, f"{registry.host}/{name}"
        release.status.source_image, release.status.target_image = source, target
        try:
            await registry.tag(source, target)
        except ImageMissing as error:
            self.fail(release, "ImageMissing", str(error))
            return
        except Exception as error:
            message = f"{source} is not released as {target} yet: {error}"
            if set_condition(release, "Ready", False, "RegistryFailed", message):
                self.events.warning(release, "RegistryFailed", message)
            raise
        release.status.phase, release.status.devbox_generation = "Success", devbox.metadata.generation
        set_condition(release, "Ready", True, "Released", f"{source} is released as {target}")
        self.events.normal(release, "Released", f"{source} is released as {target}")

    async def start(self, release: DevBoxRelease) -> None:
        """Have the Devbox run again, at most once, if the release asks for it.

        It may have been started, and the status not have been written: then it is of another generation.
        """
        if not release.spec.start_devbox_after_release or is_true(release, STARTED):
            return
        devbox = await self.client.find(Devbox, release.spec.devbox_name, namespace=release.metadata.namespace)
        if devbox is None or devbox.metadata.generation != release.status.devbox_generation:
            message = f"the Devbox {release.spec.devbox_name} has changed since it was released"
            set_condition(release, STARTED, True, "DevboxChanged", message)
            return
        devbox.spec.state = "Running"
        await self.client.patch(devbox, lock=True)
        self.events.normal(release, STARTED, f"The Devbox {devbox.metadata.name} is to run again")
        set_condition(release, STARTED, True, "Done")

    def fail(self, release: DevBoxRelease, reason: str, message: str) -> None:
        """Give up for good."""
        release.status.phase = "Failed"
        set_condition(release, "Ready", False, reason, message)
        self.events.warning(release, reason, message)
