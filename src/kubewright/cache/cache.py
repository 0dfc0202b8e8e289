"""`Cache`: the watches of a program, and the objects they keep.

    with cache.watch(Pod, namespace="shop") as pods:
        await pods.synced()
        web = pods.find(ObjectKey("shop", "web-1"))

Watches of equal scope share one connection and one store, whatever Python type they are read as. They are counted: the
first `watch` starts it, the last release stops it and frees its store. Nothing is watched implicitly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Generic, Self, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from kubewright.api.codec import decode
from kubewright.api.dynamic import PartialObject
from kubewright.api.kinds import GroupVersionKind, ObjectKey
from kubewright.api.resources import Object, resource_info
from kubewright.api.selectors import Fields, Labels, field_selector, label_selector
from kubewright.cache.entry import CacheEntry
from kubewright.cache.index import Values, field_values, object_values
from kubewright.cache.informer import Informer, Scope, Subscriber, Transform
from kubewright.cache.selection import Matches, matcher
from kubewright.client import Client
from kubewright.client.skipped import Skipped

T = TypeVar("T", bound=Object)


class CacheOptions(Struct, frozen=True):
    """What a program caches of a kind: the selected objects, in these namespaces, as `transform` leaves them.

    All watches of the kind have these options unless they are given others. Reads through a `CachedClient` are answered
    from what is selected: an object beyond it is not found, and a transformed one comes as it was transformed. Such an
    object is to be patched: an update would remove what the transform dropped, and is refused. `transform` takes and
    returns the JSON of an object, as bytes.
    """

    labels: Labels | None = None
    fields: Fields | None = None
    namespaces: Collection[str] = ()
    transform: Transform | None = None


_NO_OPTIONS = CacheOptions()


class Cache:
    """The watches of one program on one cluster. They run while `run` does."""

    def __init__(
        self,
        client: Client,
        *,
        namespaces: Collection[str] = (),
        options: Mapping[type[Object], CacheOptions] | None = None,
        strict: bool = False,
        stream: bool = True,
        quiet: bool = False,
    ) -> None:
        """`namespaces` confines watches that name none; empty for all. `options` are those of single kinds.

        With `strict` a `CachedClient` refuses to read what no watch can answer, unless the read asks for
        `consistency="live"`. Without `stream` lists are read in pages. With `quiet`, errors of watches are logged at
        DEBUG.
        """
        self._client = client
        self.is_strict = strict
        self._options: dict[GroupVersionKind, CacheOptions] = {}
        if options:
            from kubewright.cache.arguments import options_by_kind  # few programs have any

            self._options = options_by_kind(options)
        self._quiet = quiet
        self._stream = stream
        self._namespaces = tuple(dict.fromkeys(namespaces))
        self._informers: dict[Scope, Informer] = {}
        self._of_kind: dict[GroupVersionKind, list[Informer]] = {}
        self._tasks: dict[Scope, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._handles: set[WatchHandle[Object]] = set()
        self._indexes: dict[GroupVersionKind, dict[str, tuple[object, Values]]] = {}

    @property
    def is_running(self) -> bool:
        """Whether the watches run."""
        return self._group is not None

    async def run(self) -> None:
        """Run the watches until cancelled."""
        if self._group is not None:
            raise RuntimeError("this cache is running already")
        try:
            async with asyncio.TaskGroup() as self._group:
                for informer in self._informers.values():
                    self._start(informer)
                await asyncio.Event().wait()
        finally:
            self._group = None
            self._tasks.clear()

    def watch(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        transform: Transform | None = None,
    ) -> WatchHandle[T]:
        """Watch the objects of a kind until the handle is released. What is not given is as the kind's options say.

        A `metadata_only` type shares the watch of whole objects where there is one, and else watches metadata alone.
        """
        info = resource_info(kind)
        options = self._options.get(info.gvk, _NO_OPTIONS)
        labels = options.labels if labels is None else labels
        fields = options.fields if fields is None else fields
        namespaces = (namespace,) if namespace else tuple(options.namespaces) or None
        own = () if info.namespaced is False else namespaces
        scope = Scope(
            info.gvk,
            "",
            label_selector(labels) if labels is not None else "",
            field_selector(fields) if fields is not None else "",
            issubclass(kind, PartialObject),
            options.transform if transform is None else transform,
        )
        handle = WatchHandle(self, kind, scope, own)
        self._handles.add(cast("WatchHandle[Object]", handle))
        handle.cover(self._namespaces if own is None else own)
        return handle

    @property
    def field_manager(self) -> str:
        """The field manager whose applied fields are kept with the objects: that of the client."""
        return self._client.field_manager

    def shows_all(self, scope: Scope) -> bool:
        """Whether a watch has all that the program sees of a kind: everything, or what the kind's options select."""
        options = self._options.get(scope.gvk, _NO_OPTIONS)
        return (
            scope.transform == options.transform
            and scope.labels == (label_selector(options.labels) if options.labels is not None else "")
            and scope.fields == (field_selector(options.fields) if options.fields is not None else "")
        )

    def namespaces_of(self, gvk: GroupVersionKind) -> tuple[str, ...]:
        """The namespaces of watches and lists of a kind that name none; empty for all."""
        return tuple(self._options.get(gvk, _NO_OPTIONS).namespaces) or self._namespaces

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces of watches that name none; empty for all."""
        return self._namespaces

    def set_namespaces(self, namespaces: Collection[str]) -> None:
        """Watch other namespaces from now on. Watches of namespaces that stay are not interrupted."""
        self._namespaces = tuple(dict.fromkeys(namespaces))
        for handle in list(self._handles):  # a subscriber that is notified may begin or end a watch
            if handle.follows_cache:
                handle.cover(self._namespaces)

    def index(self, kind: type[T], name: str, function: Callable[[T], Iterable[str]] | None = None) -> None:
        """Let lists of a kind be answered by another value: that of the field at the path `name`, or `function`'s.

        For fields it is then used by `list(kind, fields={name: value})`, else by `list(kind, index=(name, value))`.
        A second index of the same name is refused, unless it is the same.
        """
        gvk = resource_info(kind).gvk
        indexes = self._indexes.setdefault(gvk, {})
        if name in indexes:
            if indexes[name][0] is not function:
                raise ValueError(
                    f'{gvk.kind} has an index "{name}" already, by another function: give this one a name of its own'
                )
            return
        values = field_values(name, gvk) if function is None else object_values(kind, function, self.skipped)
        indexes[name] = function, values
        for informer in self.informers(gvk):
            informer.add_index(name, values)

    @property
    def skipped(self) -> Skipped:
        """The objects that lists leave out because they cannot be decoded."""
        return self._client.skipped

    def informers(self, gvk: GroupVersionKind | None = None) -> Sequence[Informer]:
        """The watches, all or those of a kind."""
        return list(self._informers.values()) if gvk is None else self._of_kind.get(gvk, [])

    async def settled(self, informer: Informer) -> None:
        """Wait until a watch has brought its objects, its kind is known not to exist, or it was released."""
        await _either(informer.settled(), informer.released.wait())

    # For WatchHandle

    def acquire(self, kind: type[Object], scope: Scope) -> Informer:
        """One more user of the watch with that scope; it begins with the first."""
        if scope.metadata_only and (whole := replace(scope, metadata_only=False)) in self._informers:
            scope = whole
        informer = self._informers.get(scope)
        if informer is None:
            informer = self._informers[scope] = Informer(
                self._client,
                kind,
                scope,
                stream=self._stream,
                quiet=self._quiet,
                field_manager=self.field_manager,
            )
            self._of_kind.setdefault(scope.gvk, []).append(informer)
            for name, (_, values) in self._indexes.get(scope.gvk, {}).items():
                informer.add_index(name, values)
            if self._group is not None:
                self._start(informer)
        informer.references += 1
        return informer

    def release(self, informer: Informer) -> None:
        """One user less; with the last the watch ends."""
        informer.references -= 1
        if informer.references == 0:
            informer.released.set()
            del self._informers[informer.scope]
            self._of_kind[informer.scope.gvk].remove(informer)
            if (task := self._tasks.pop(informer.scope, None)) is not None:
                task.cancel()

    def forget(self, handle: WatchHandle[T]) -> None:
        """A handle was released."""
        self._handles.discard(cast("WatchHandle[Object]", handle))

    def _start(self, informer: Informer) -> None:
        if self._group is not None:
            name = f"watch {informer.kind_name} {informer.scope}".rstrip()
            self._tasks[informer.scope] = self._group.create_task(informer.run(), name=name)


class WatchHandle(Generic[T]):
    """A counted reference to a watch. Reads decode freshly and show the program's own writes."""

    def __init__(self, cache: Cache, kind: type[T], scope: Scope, namespaces: tuple[str, ...] | None) -> None:
        self.kind = kind
        self.follows_cache = namespaces is None
        self._cache = cache
        self._scope = scope
        self._informers: dict[str, Informer] = {}
        self._subscribers: list[Subscriber] = []
        self._unsubscribe: dict[str, list[Callable[[], None]]] = {}
        self._recovered = asyncio.Event()  # when it covers other namespaces than now

    @property
    def informers(self) -> list[Informer]:
        """The informers behind it: one, or one for each namespace."""
        return list(self._informers.values())

    @property
    def is_synced(self) -> bool:
        """True when the initial list is complete."""
        return all(informer.synced.is_set() for informer in self._informers.values())

    async def synced(self) -> None:
        """Wait until the initial list is complete."""
        while unsynced := [each for each in self._informers.values() if not each.synced.is_set()]:
            await self._while_covered(unsynced[0].synced.wait())

    async def caught_up(self, revision: int) -> None:
        """Wait until it shows all that had been written to its objects when this was called; see `catching_up.py`."""
        for informer in self.informers:
            await informer.caught_up(revision)

    async def settled(self) -> None:
        """Wait until the initial list is complete or it is known that the kind does not exist (yet)."""
        while unsettled := [each for each in self._informers.values() if not each.is_settled]:
            await self._while_covered(unsettled[0].settled())

    async def absent(self) -> None:
        """Wait until it is known that the kind does not exist (yet, or any longer)."""
        while not any(each.is_absent for each in self._informers.values()):
            # One of several namespaces will do: a kind is absent in all of them.
            await self._while_covered(next(iter(self._informers.values())).absent())

    def find(self, key: ObjectKey) -> T | None:
        """The object of a key. Raises `DecodeError` when it does not fit its type."""
        for informer in self._of(key.namespace):
            if (entry := informer.find(key)) is not None:
                return decode(self.kind, entry.body)
        return None

    def list(
        self,
        *,
        namespace: str = "",
        labels: Labels | None = None,
        fields: Fields | None = None,
        index: tuple[str, str] | None = None,
    ) -> list[T]:
        """The objects that match, ordered by namespace and name. Those that cannot be decoded are left out."""
        found = selected(self._of(namespace), namespace, matcher(labels, fields, self._scope.gvk), index)
        return self._cache.skipped.decoded(self.kind, (entry.body for entry in found))

    def subscribe(self, subscriber: Subscriber) -> None:
        """Notify `subscriber` of the existing objects and of every change, until the release."""
        self._subscribers.append(subscriber)
        for namespace, informer in self._informers.items():
            self._unsubscribe[namespace].append(informer.subscribe(subscriber))

    def cover(self, namespaces: Collection[str]) -> None:
        """Watch just these namespaces; none means all. Watches of those that stay are not interrupted."""
        recovered, self._recovered = self._recovered, asyncio.Event()
        recovered.set()
        wanted = tuple(namespaces) or ("",)
        for namespace in [covered for covered in self._informers if covered not in wanted]:
            self._drop(namespace)
        for namespace in wanted:
            if namespace not in self._informers:
                informer = self._cache.acquire(self.kind, replace(self._scope, namespace=namespace))
                self._informers[namespace] = informer
                self._unsubscribe[namespace] = [informer.subscribe(each) for each in self._subscribers]

    def release(self) -> None:
        """Give up the reference; the last one ends the watch. Releasing twice is fine."""
        self._recovered.set()
        for namespace in list(self._informers):
            self._drop(namespace)
        self._subscribers.clear()
        self._cache.forget(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    async def _while_covered(self, waiting: Coroutine[None, None, object]) -> None:
        """Wait for the awaitable, but only while the same namespaces are covered."""
        await _either(waiting, self._recovered.wait())

    def _drop(self, namespace: str) -> None:
        for unsubscribe in self._unsubscribe.pop(namespace):
            unsubscribe()
        self._cache.release(self._informers.pop(namespace))

    def _of(self, namespace: str) -> Iterator[Informer]:
        if namespace and "" not in self._informers:
            informer = self._informers.get(namespace)
            return iter((informer,) if informer is not None else ())
        return iter(self._informers.values())


async def _either(*waiting: Coroutine[None, None, object]) -> None:
    """Wait for the first of them."""
    tasks = [asyncio.create_task(each) for each in waiting]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def selected(
    informers: Iterable[Informer],
    namespace: str,
    matches: Matches | None,
    index: tuple[str, str] | None,
    *,
    own_writes: bool = True,
) -> list[CacheEntry]:
    """The entries of several watches that match, ordered by namespace and name; each object once."""
    # Two watches of different namespaces show the same objects when it turns out that the kind has no namespaces.
    found = {
        entry.key: entry
        for informer in informers
        for entry in informer.select(namespace, index, own_writes=own_writes)
        if matches is None or matches(entry)
    }
    return [found[key] for key in sorted(found)]
