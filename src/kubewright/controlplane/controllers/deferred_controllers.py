"""A controller that begins with the first object that concerns it: until then it costs one subscription to a watch.

Most control planes are started for a test and see neither a Job nor a StatefulSet. So what the controllers of such
kinds need, from their module to their workers, is loaded and made when the first such object is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import TypeAlias, cast

from kubewright.api.dynamic import Dynamic, metadata_only
from kubewright.api.naming import default_plural
from kubewright.cache import Cache, CacheEntry, WriteOrigin
from kubewright.client import Client
from kubewright.controlplane.controllers.clock import Clock
from kubewright.controlplane.controllers.runtime import BuiltInController

Concerns: TypeAlias = Callable[[CacheEntry], bool]
"""Whether an object concerns a controller at all, by its metadata."""


def is_of_user(service: CacheEntry) -> bool:
    """Whether a Service is another one than that of the API server, which is there from the beginning."""
    return service.key != ("default", "kubernetes")


def may_be_mirrored(endpoints: CacheEntry) -> bool:
    """Whether Endpoints were written by a user."""
    labels = endpoints.label_names
    return (
        "endpointslice.kubernetes.io/skip-mirror" not in labels and "endpoints.kubernetes.io/managed-by" not in labels
    )


def holds_token(secret: CacheEntry) -> bool:
    """Whether a Secret is, by its annotation, for the token of a service account."""
    return b'"kubernetes.io/service-account.name"' in secret.body


class Deferred:
    """Runs a controller, made by `make`, from the first object of a kind on that concerns it."""

    def __init__(
        self,
        name: str,
        make: Callable[[], BuiltInController],
        api_version: str,
        kind: str,
        plural: str,
        namespaced: bool,
        concerns: Concerns,
        cache: Cache,
    ) -> None:
        self.name = name
        self._make = make
        # Its class is not needed before there is an object.
        self._view = metadata_only(
            Dynamic.of(api_version, kind, plural=plural or default_plural(kind), namespaced=namespaced)
        )
        self._concerns = concerns
        self._cache = cache

    async def run(self) -> None:
        """Wait for the first object, then run the controller until cancelled."""
        awaited = asyncio.Event()

        def changed(old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None) -> None:
            if new is not None and self._concerns(new):
                awaited.set()

        with self._cache.watch(self._view) as handle:
            handle.subscribe(changed)
            await awaited.wait()
        await self._make().run()


def deferred(
    name: str,
    module: str,
    api_version: str,
    kind: str,
    concerns: Concerns = lambda entry: True,
    *,
    plural: str = "",
    namespaced: bool = True,
) -> Callable[..., BuiltInController]:
    """Makes a controller of this package, by `module:class`, that begins with an object of a kind.

    One that shares its cache with no other is not deferred.
    """

    def make(
        client: Client, *, clock: Clock | None = None, cache: Cache | None = None, **options: object
    ) -> BuiltInController:
        def made() -> BuiltInController:
            file, _, class_name = module.partition(":")
            controller = getattr(import_module(f"{__package__}.{file}"), class_name)
            return cast("BuiltInController", controller(client, clock=clock, cache=cache, **options))

        return made() if cache is None else Deferred(name, made, api_version, kind, plural, namespaced, concerns, cache)

    return make
