"""`ObjectReconciler`: the frame around one object.

    class WidgetReconciler(ObjectReconciler[Widget]):
        finalizer = "example.com/cleanup"

        async def converge(self, widget: Widget) -> Result | None:
            widget.status.phase = "Running"

        async def cleanup(self, widget: Widget) -> None:
            await self.machines.delete(widget.metadata.uid)

    controller_for(manager, Widget).complete(WidgetReconciler(manager.client))

It reads the object, puts the finalizer on, calls `converge`, writes the status, and calls `cleanup` before it takes the
finalizer off. All of that can be done by hand: `add_finalizer`, `client.status.patch`, `remove_finalizer`.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import ClassVar, Generic, Protocol, TypeVar, cast

from kubewright.api import Object
from kubewright.api.model import has_field
from kubewright.api.resources import resource_info
from kubewright.cache import CachedClient
from kubewright.client.errors import Conflict, NotFound
from kubewright.controller import Request, Result
from kubewright.manager.permissions import Permission
from kubewright.patterns.finalizers import add_finalizer, check_finalizer, remove_finalizer
from kubewright.patterns.kind_of import kind_of
from kubewright.patterns.not_yet import NotYet

T = TypeVar("T", bound=Object)


class _WithStatus(Protocol):
    status: object


class _Observing(Protocol):
    observed_generation: int


_log = logging.getLogger(__name__)


class ObjectReconciler(ABC, Generic[T]):
    """Reconciles the objects of one kind. Derive from it, naming the kind, and define `converge`.

    Guarantees:
    - If `converge` ever began, `cleanup` has succeeded before the object is gone: the finalizer goes on first, in a
      reconcile of its own, and comes off by a patch that leaves the finalizers of others alone. A new leader begins
      when its cache shows what the one before has written. If the object turns out to be gone when the status is
      written, as when its finalizers were removed by hand, `cleanup` is called again.
    - The status is written once, after a return, a `NotYet` or an error, and not at all when nothing in it changed or
      after a cancellation. `observedGeneration` is set where the status has it. What others write into the status at
      the same time survives, and an object that has taken the name of the reconciled one gets nothing of its status.
    - An object that is gone is not an error, and neither is `NotYet`.
    """

    finalizer: ClassVar[str] = ""
    """The finalizer to hold the object with until `cleanup` is done; none without a cleanup."""

    kind: type[T]
    """The kind of the objects, from the base class `ObjectReconciler[Kind]`."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        kind = kind_of(cls, ObjectReconciler)
        if kind is not None:
            cls.kind = cast("type[T]", kind)
        if cls.finalizer:
            check_finalizer(cls.finalizer)
        elif cls.cleanup is not ObjectReconciler.cleanup:
            raise TypeError(
                f"{cls.__name__} has a cleanup and no finalizer, so that its objects would be gone before: set "
                'finalizer = "example.com/cleanup"'
            )

    def __init__(self, client: CachedClient) -> None:
        self.client = client
        self._waiting: dict[Request, str] = {}

    @property
    def needed_permissions(self) -> list[Permission]:
        """What it writes itself: the finalizer, and the status where the kind has one. Managers read it."""
        needed = [Permission(self.kind, "patch")] if self.finalizer else []
        if resource_info(self.kind).has_status:
            needed.append(Permission(self.kind, "patch", subresource="status"))
        return needed

    @abstractmethod
    async def converge(self, obj: T, /) -> Result | None:
        """Make the observed state match the spec, and put the outcome into `obj.status`.

        The status is written afterwards, and nothing else of `obj`: other changes of it go out by `client.patch`.
        Raise `NotYet` to wait for something; any other exception is retried with back-off.
        """

    async def cleanup(self, obj: T, /) -> None:
        """Remove what the object's deletion does not; `NotYet` keeps the finalizer. It may run more than once."""

    def is_observed(self, obj: T, /) -> bool:
        """Whether `observedGeneration` becomes the present one with this status. It does, unless a subclass says that
        what an earlier spec began is not done yet.
        """
        return True

    async def reconcile(self, request: Request) -> Result | None:
        """Reconcile one object."""
        obj = await self.client.find(self.kind, request)
        if obj is None:
            self._waiting.pop(request, None)
            return None
        if obj.metadata.deletion_timestamp is not None:
            return await self._finalize(request, obj)
        if self.finalizer and self.finalizer not in obj.metadata.finalizers:
            # Nothing else in this reconcile: what it adds must not be missed if the patch was refused or lost.
            return Result(requeue=True) if await add_finalizer(self.client, obj, self.finalizer) else None
        try:
            result = await self.converge(obj)
        except NotYet as waiting:
            result = self._wait(request, waiting)
        except Exception as error:
            await self._report(obj, error)
            raise
        else:
            self._waiting.pop(request, None)
        if not await self._write_status(obj):
            await self._clean_again(obj)
        return result

    async def _finalize(self, request: Request, obj: T) -> Result | None:
        if self.finalizer not in obj.metadata.finalizers:
            return None
        try:
            await self.cleanup(obj)
        except NotYet as waiting:
            await self._write_status(obj)
            return self._wait(request, waiting)
        except Exception as error:
            await self._report(obj, error)
            raise
        self._waiting.pop(request, None)
        await remove_finalizer(self.client, obj, self.finalizer)
        return None

    def _wait(self, request: Request, waiting: NotYet) -> Result:
        """Log what the object waits for, once."""
        if self._waiting.get(request) != waiting.message:
            self._waiting[request] = waiting.message
            _log.info("waiting: %s", waiting.message)
        return waiting.result

    async def _report(self, obj: T, error: Exception) -> None:
        """Write the status of a reconcile that failed; the error of the reconcile is the one that counts."""
        try:
            if not await self._write_status(obj):
                await self._clean_again(obj)
        except Exception as other:
            error.add_note(f"and its status could not be written: {other}")

    async def _clean_again(self, obj: T) -> None:
        """Undo what was made for an object that was gone already: there is none that could be waited with."""
        if self.finalizer in obj.metadata.finalizers:
            _log.info("the object is gone; cleaning up what was made for it meanwhile")
            try:
                await self.cleanup(obj)
            except NotYet as waiting:
                _log.warning("not waited for, as the object is gone: %s", waiting.message)

    async def _write_status(self, obj: T) -> bool:
        """Write the status; False when there is no such object any more."""
        status = cast(_WithStatus, obj).status if has_field(obj, "status") else None
        if status is None:
            return True
        if has_field(status, "observed_generation") and self.is_observed(obj):
            cast(_Observing, status).observed_generation = obj.metadata.generation
        try:
            await self.client.status.patch(obj, lock=True)
        except Conflict:
            if not await self._is_there(obj):
                return False
            await self.client.status.patch(obj)
        except NotFound:
            if await self._is_there(obj):
                raise  # the kind has no status to write to
            return False
        return True

    async def _is_there(self, obj: T) -> bool:
        there = await self.client.find(obj, consistency="live")
        return there is not None and there.metadata.uid == obj.metadata.uid
