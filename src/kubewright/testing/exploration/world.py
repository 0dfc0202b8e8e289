"""`World`: what a scenario sees and does, as a user of the cluster and of the operator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from kubewright.api.codec import decode
from kubewright.api.resources import Object, resource_info
from kubewright.client import Client
from kubewright.client.wait import Expectation
from kubewright.controlplane.embedded.storage.store import StoredObject

T = TypeVar("T", bound=Object)
W = TypeVar("W")


class World(Generic[W]):
    """One run of the scenario. Faults strike the operator, never what is done here.

    `list` and `get` are plain functions that see the objects at this very moment, for `always`.
    """

    def __init__(
        self,
        client: Client,
        outside: W,
        objects: dict[str, StoredObject],
        patience: float,
        settled: Callable[[], Awaitable[None]],
    ) -> None:
        self.client = client
        """A client with all rights, for whatever has no method here."""
        self.outside = outside
        """What `outside()` has made for this world; None without it."""
        self._objects = objects
        self._patience = patience
        self._settled = settled

    async def create(self, obj: T) -> T:
        """Create an object, and return it as the server has it."""
        return await self.client.create(obj)

    async def change(self, obj: T, change: Callable[[T], object]) -> T:
        """Read an object, have `change` change it, and patch it. `obj` is only named by it."""
        there = await self.client.get(obj)
        change(there)
        return await self.client.patch(there)

    async def delete(self, obj: Object) -> None:
        """Delete an object, and return without waiting for its finalizers."""
        await self.client.delete(type(obj), obj.metadata.name, namespace=obj.metadata.namespace or None)

    async def wait(self, obj: T, expectation: Expectation | Callable[[T], object]) -> None:
        """Return when it holds of the object of that name; fails when that takes longer than the patience of `explore`.

        As `client.wait_for`, which takes the same expectations.
        """
        namespace = obj.metadata.namespace or None
        await self.client.wait_for(
            type(obj), obj.metadata.name, expectation, namespace=namespace, timeout=self._patience
        )

    async def settled(self) -> None:
        """Return when the operator has come to rest: for scenarios of several steps."""
        await self._settled()

    def list(self, kind: type[T]) -> list[T]:
        """All objects of a kind, in all namespaces, ordered by namespace and name."""
        directory = directory_of(kind)
        return [decode(kind, self._objects[key].raw) for key in sorted(self._objects) if key.startswith(directory)]

    def get(self, obj: T) -> T | None:
        """The object of that kind, namespace and name, if there is one."""
        metadata = obj.metadata
        namespace = metadata.namespace or self.client.namespace
        key = directory_of(type(obj)) + (
            metadata.name if resource_info(type(obj)).namespaced is False else f"{namespace}/{metadata.name}"
        )
        found = self._objects.get(key)
        return decode(type(obj), found.raw) if found is not None else None


def directory_of(kind: type[Object]) -> str:
    """Where the embedded control plane stores objects of that kind."""
    info = resource_info(kind)
    return f"/{info.gvk.group or 'core'}/{info.plural}/"
