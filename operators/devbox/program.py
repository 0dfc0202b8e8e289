"""What the operator consists of."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from kubewright import Manager, Permission, Request, controller_for, converts, mapped, serve_webhooks
from kubewright.api import Object
from kubewright.api.batch.v1 import Job
from kubewright.api.core.v1 import PersistentVolumeClaim, Pod, Secret, Service
from kubewright.cache import CacheOptions
from kubewright.controller import beyond_status, foreign_write

from .committer import Committer
from .job_committer import JobCommitter
from .names import LABELS
from .options import Options
from .reconciler import DevboxReconciler
from .registry import Registry
from .release_reconciler import DevBoxReleaseReconciler
from .release_types import DEVBOX_FIELD, DevBoxRelease
from .ssh_keys import require_cryptography
from .types import Devbox
from .v1alpha1 import DevboxV1Alpha1
from .webhooks import check_devbox

NAME = "devbox"

devbox_manager = partial(
    Manager,
    cache={kind: CacheOptions(labels=LABELS) for kind in (Job, PersistentVolumeClaim, Pod, Secret, Service)},
)
"""Caches what Devboxes consist of, and not all Secrets and pods of the cluster."""


def setup(
    manager: Manager,
    options: Options | None = None,
    *,
    committer: Committer | None = None,
    registry: Registry | None = None,
) -> None:
    """Devboxes, woken by what they own, their releases, woken by Devboxes, and admission and conversion of Devboxes."""
    require_cryptography()
    options = options or Options()
    options.check()
    client, events = manager.client, manager.recorder(NAME)
    reconciler = DevboxReconciler(client, events, committer or JobCommitter(client, options), options)
    # What is done next follows from the status: one that another client has changed or removed is seen to at once.
    builder = controller_for(manager, Devbox, where=beyond_status | foreign_write, workers=4)
    builder.owns(Job, PersistentVolumeClaim, Pod, Secret, Service).complete(reconciler)
    add_releases(manager, registry)
    manager.require(
        Permission(Job, "create", "delete"),
        Permission(PersistentVolumeClaim, "create", "delete", "patch"),
        Permission(Pod, "create", "delete", "patch"),
        Permission(Secret, "create", "patch"),
        Permission(Service, "create", "delete", "patch"),
    )
    serve_webhooks(manager, check_devbox, converts(Devbox, DevboxV1Alpha1))


def add_releases(manager: Manager, registry: Registry | None) -> None:
    """The controller of releases, which are also woken by their Devboxes."""
    manager.cache.index(DevBoxRelease, DEVBOX_FIELD)

    async def releases_of(devbox: Object) -> Iterable[Request]:
        named = (DEVBOX_FIELD, devbox.metadata.name)
        found = await manager.client.list(DevBoxRelease, namespace=devbox.metadata.namespace, index=named)
        return [release.key for release in found]

    reconciler = DevBoxReleaseReconciler(manager.client, manager.recorder(NAME), registry)
    builder = controller_for(manager, DevBoxRelease)
    builder.watches(Devbox, mapped(releases_of)).complete(reconciler)
    manager.require(Permission(Devbox, "patch"))
