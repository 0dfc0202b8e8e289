"""Handlers: from an event to the keys that are enqueued for it.

    @mapped
    def those_named(secret: Secret) -> Iterable[ObjectKey]: ...     # of the object

    @Handler
    def every_widget(event: Event[Object]) -> Iterable[Request]: ...   # of the event

An update enqueues the owners that the object had before as well as those it has now.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import wraps
from typing import Generic, TypeAlias, TypeVar, cast

from kubewright.api.errors import DecodeError
from kubewright.api.header import OwnerHeader
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object, resource_info
from kubewright.cache.entry import CacheEntry
from kubewright.controller.arguments import check_function, name_of
from kubewright.controller.event import Event
from kubewright.controller.reconcile import Request

T = TypeVar("T", bound=Object)
Key = TypeVar("Key")

Keys: TypeAlias = Callable[[Event[Object]], Iterable[Key]]
LaterKeys: TypeAlias = Callable[[Event[Object]], Awaitable[Iterable[Key]]]

_KEYS = 'such as Request("namespace", "name"), or the .key of an object'

_log = logging.getLogger(__name__)


def _check_no_stream(function: Callable[..., object]) -> None:
    if inspect.isasyncgenfunction(function):
        raise TypeError(f"{name_of(function)} is async and yields: return a list of keys instead")


class Handler(Generic[Key]):
    """A function from an event to the keys that it concerns. One that is async is called beside the watch."""

    __slots__ = ("keys", "later_keys")

    def __init__(self, function: Keys[Key] | LaterKeys[Key]) -> None:
        check_function(function, "a handler", "event", may_be_async=True)
        _check_no_stream(function)
        is_async = inspect.iscoroutinefunction(function)
        self.keys = cast("Keys[Key]", function) if not is_async else None
        """The function; None when it is async."""
        self.later_keys = cast("LaterKeys[Key]", function) if is_async else None
        """The function when it is async."""

    def __call__(self, event: Event[Object]) -> Iterable[Key]:
        """The keys that the event concerns, by a function that is not async."""
        if self.keys is None:
            raise TypeError(f"{self.later_keys!r} is async: await later_keys(event)")
        return self.keys(event)

    def __repr__(self) -> str:
        return f"Handler({getattr(self.keys or self.later_keys, '__name__', 'function')})"


class RequestHandler(Handler[Request]):
    """A handler whose keys are known to be requests."""

    __slots__ = ()


class OwnerHandler(RequestHandler):
    """A handler that enqueues owners of one kind."""

    __slots__ = ("owner",)

    def __init__(self, owner: type[Object], function: Keys[Request]) -> None:
        super().__init__(function)
        self.owner = owner


def checked_requests(handler: Handler[Request]) -> Handler[Request]:
    """The same handler, which raises `WrongKeys` when its function returns something else than requests."""
    given: object = handler
    if isinstance(handler, RequestHandler) or not isinstance(given, Handler):
        return handler
    if (later := handler.later_keys) is not None:

        @RequestHandler
        @wraps(later)
        async def checked_later(event: Event[Object]) -> Iterable[Request]:
            return dict(_keys(later, await later(event)))

        return checked_later
    direct = cast("Keys[Request]", handler.keys)

    @RequestHandler
    @wraps(direct)
    def checked(event: Event[Object]) -> Iterable[Request]:
        return dict(_keys(direct, direct(event)))

    return checked


@RequestHandler
def for_object(event: Event[Object]) -> Iterable[Request]:
    """The object itself."""
    entry = event.entry
    return (Request(entry.namespace, entry.name),)


def for_owner(
    kind: type[Object],
    *,
    controller_only: bool = True,
    elsewhere: Callable[[OwnerHeader, str], str | None] | None = None,
) -> Handler[Request]:
    """The owners of that kind, in whatever version they are referred to; by default only the controlling one.

    An owner is in the namespace of what it owns. `elsewhere` returns the namespace of an owner that is not, which is
    logged for the first such object that this program creates.
    """
    info = resource_info(kind)
    group, name = info.gvk.group, info.gvk.kind
    if info.namespaced is None:
        raise ValueError(f"{name}: whether an owner of this kind has a namespace is not known; give namespaced=")
    is_namespaced = info.namespaced

    def owners(entry: CacheEntry | None) -> Iterable[OwnerHeader]:
        for owner in entry.owners if entry is not None else ():
            if owner.kind == name and (owner.controller or not controller_only) and _group(owner.api_version) == group:
                yield owner

    def keys(entry: CacheEntry | None) -> Iterable[Request]:
        for owner in owners(entry):
            yield Request(cast(CacheEntry, entry).namespace if is_namespaced else "", owner.name)

    def report(event: Event[Object]) -> None:
        nonlocal elsewhere
        for owner in owners(event.new):
            namespace = elsewhere(owner, event.key.namespace) if elsewhere is not None else None
            if namespace is not None:
                elsewhere = None  # once is enough
                _log.error(
                    '%s "%s" names %s "%s" in namespace "%s" as its owner: an owner must be in the same namespace, and '
                    "the garbage collector deletes such objects. Use a label, and watches(%s, mapped(…))",
                    event.kind.__name__,
                    event.key,
                    name,
                    owner.name,
                    namespace,
                    event.kind.__name__,
                )

    def owners_of(event: Event[Object]) -> Iterable[Request]:
        if elsewhere is not None and event.old is None and event.write_origin is not None:
            report(event)
        return dict.fromkeys((*keys(event.old), *keys(event.new)))

    return OwnerHandler(kind, owners_of)


def mapped(
    function: Callable[[T], Iterable[Request]] | Callable[[T], Awaitable[Iterable[Request]]],
) -> Handler[Request]:
    """The keys that a function gives for the object. It may be async, to read from the cache for instance."""
    check_function(function, "a map function", "object", may_be_async=True)
    _check_no_stream(function)
    if inspect.iscoroutinefunction(function):
        asynchronous = cast("Callable[[T], Awaitable[Iterable[Request]]]", function)

        @RequestHandler
        async def mapped_later(event: Event[Object]) -> Iterable[Request]:
            found: dict[Request, None] = {}
            for each in _decoded(event):
                found.update(_keys(function, await asynchronous(cast(T, each))))
            return found

        return mapped_later
    direct = cast("Callable[[T], Iterable[Request]]", function)

    @RequestHandler
    def mapped_to(event: Event[Object]) -> Iterable[Request]:
        found: dict[Request, None] = {}
        for each in _decoded(event):
            found.update(_keys(function, direct(cast(T, each))))
        return found

    return mapped_to


class WrongKeys(TypeError):
    """A handler or map function returned something else than keys. The message says it all."""


def _keys(function: Callable[..., object], returned: object) -> Iterator[tuple[Request, None]]:
    """What a map function returned, checked: not all code is type-checked."""
    if inspect.iscoroutine(returned):
        returned.close()
        raise WrongKeys(f"{name_of(function)} returned a coroutine: make it an async function, and await it there")
    if isinstance(returned, str | ObjectKey | Object) or not isinstance(returned, Iterable):
        raise WrongKeys(f"{name_of(function)} returned {_shown(returned)}: expected a list of keys, {_KEYS}")
    for key in returned:
        if not isinstance(key, ObjectKey):
            raise WrongKeys(f"{name_of(function)} returned {_shown(key)} instead of a key: expected keys {_KEYS}")
        yield key, None


def _shown(value: object) -> str:
    return f"the {value.kind} {value.key}" if isinstance(value, Object) else repr(value)


def _decoded(event: Event[Object]) -> list[Object]:
    """The object before and after, as far as it fits its type: what it was must not hide what it has become."""
    decoded: list[Object] = []
    for entry in (event.old, event.new):
        try:
            each = event.old_object if entry is event.old else event.new_object
        except DecodeError as error:
            _log.warning("not mapped: %s", error)
        else:
            decoded += (each,) if each is not None else ()
    return decoded


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]
