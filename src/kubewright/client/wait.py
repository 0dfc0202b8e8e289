"""Waiting until something holds of an object, in programs and in tests.

    await client.wait_for(deployment, available, timeout=120)
    await client.wait_for(Pod, "web-1", ready & ~deleted)
    await client.wait_for(job, Field("status.succeeded").equals(1))

An expectation is a function of the object, or of None when there is no object, with a description for errors.
They combine with `&`, `|` and `~`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar, cast

from kubewright.api.codec import decode, decode_json, encode, origin, to_json
from kubewright.api.dynamic import Dynamic
from kubewright.api.errors import refusing
from kubewright.api.field_path import FieldPath
from kubewright.api.markers import JSONInput, JSONValue
from kubewright.api.origin import same
from kubewright.api.resources import Object
from kubewright.api.shape import SCALAR, Shape
from kubewright.client.backoff import Backoff
from kubewright.client.endpoint import Endpoint
from kubewright.client.errors import Expired, KubernetesError

if TYPE_CHECKING:
    from kubewright.client.reader import Reader

T = TypeVar("T", bound=Object)
View: TypeAlias = "dict[str, JSONValue] | None"
"""What an expectation tests: the JSON of the object, or None when there is none."""

_RESTART = Backoff(0.1, 5.0)  # of a watch that ended


class WaitTimeout(KubernetesError, TimeoutError):
    """What was waited for did not come. The message has the expectation and the state that was seen last."""


class Expectation:
    """Something that may hold of an object, and its description for errors."""

    def __init__(self, description: str, holds: Callable[[View], bool], paths: tuple[FieldPath, ...] = ()) -> None:
        """`paths` are the fields that it is about: kinds that have no such fields are refused."""
        self.description = description
        self.holds = holds
        self.paths = paths

    def __and__(self, other: Expectation) -> Expectation:
        return Expectation(
            f"({self.description} and {other.description})",
            lambda view: self.holds(view) and other.holds(view),
            self.paths + other.paths,
        )

    def __or__(self, other: Expectation) -> Expectation:
        return Expectation(
            f"({self.description} or {other.description})",
            lambda view: self.holds(view) or other.holds(view),
            self.paths + other.paths,
        )

    def __invert__(self) -> Expectation:
        return Expectation(f"not {self.description}", lambda view: not self.holds(view), self.paths)

    if not TYPE_CHECKING:
        __call__ = refusing("an expectation is given as it is, without parentheses: wait_for(pod, ready)")
        __bool__ = refusing("expectations are combined with &, | and ~, not with and, or and not")

    def __repr__(self) -> str:
        return f"Expectation({self.description})"


def expectation_of(expected: Expectation | Callable[[T], object] | None) -> Expectation | Callable[[T], object]:
    """What is expected. Raises a TypeError for what is neither an expectation nor a function of the object."""
    if isinstance(expected, Expectation):
        return expected
    if isinstance(expected, str):
        raise TypeError(f'expected an expectation, not the text "{expected}": use condition("{expected}")')
    given: object = expected
    if isinstance(given, Field):
        raise TypeError('a field is not yet an expectation: write Field("status.phase").equals("Running")')
    if given is condition:
        raise TypeError('of which condition? Write condition("Ready")')
    if not callable(expected):
        raise TypeError(
            "expected an expectation, such as ready, condition(...) or Field(...).equals(...), or a function of the "
            f"object, not {expected!r}"
        )
    import inspect  # few programs wait for a function

    if inspect.iscoroutinefunction(expected):
        raise TypeError(f"{expected.__name__} is async: expected a plain function of the object, without await")
    return expected


class Field:
    """A field of an object by its path: `spec.ports[0].name`, `metadata.labels["app.kubernetes.io/name"]`."""

    def __init__(self, path: str) -> None:
        self._path = FieldPath(path)
        for step in self._path.steps:
            if isinstance(step, str) and "_" in step and f'["{step}"]' not in path and f"['{step}']" not in path:
                raise ValueError(
                    f'Field("{path}"): fields have their JSON names here: write {_camel_case(step)} instead of {step}, '
                    f'or ["{step}"] for a field that is really called so'
                )

    def read(self, view: View) -> JSONValue:
        """The value, or None when it is not there."""
        return self._path.read(view)

    def equals(self, expected: JSONInput) -> Expectation:
        """That the field has this value."""
        value = to_json(expected)
        return Expectation(f"{self._path.text} = {value!r}", lambda view: same(self.read(view), value), (self._path,))

    def satisfies(self, test: Callable[[JSONValue], bool], description: str) -> Expectation:
        """That `test` is true of the field's value (None when absent); `description` names what it tests."""
        return Expectation(f"{self._path.text} {description}", lambda view: test(self.read(view)), (self._path,))


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def condition(type_: str, status: str = "True") -> Expectation:
    """That `status.conditions` says so, of the generation that is there now."""
    if status not in ("True", "False", "Unknown"):
        raise ValueError(f'condition("{type_}", {status!r}): the status is the text "True", "False" or "Unknown"')

    def holds(view: View) -> bool:
        return any(
            isinstance(entry, dict)
            and entry.get("type") == type_
            and entry.get("status") == status
            and _is_current(entry, view)
            for entry in _conditions(view)
        )

    return Expectation(f"{type_}={status}", holds)


def _is_current(entry: dict[str, JSONValue], view: View) -> bool:
    """A condition about an older generation says nothing of this one."""
    observed, generation = entry.get("observedGeneration"), _GENERATION.read(view)
    return not isinstance(observed, int) or not isinstance(generation, int) or observed >= generation


def _conditions(view: View) -> list[JSONValue]:
    found = _CONDITIONS.read(view)
    return found if isinstance(found, list) else []


_CONDITIONS = Field("status.conditions")
_GENERATION = Field("metadata.generation")
_OBSERVED = Field("status.observedGeneration")


def _is_observed(view: View) -> bool:
    """The controller has seen the newest generation, as far as it says which one it has seen."""
    observed, generation = _OBSERVED.read(view), _GENERATION.read(view)
    return not isinstance(generation, int) or not isinstance(observed, int) or observed >= generation


exists = Expectation("exists", lambda view: view is not None)
"""There is an object of that name."""

deleted = Expectation("deleted", lambda view: view is None)
"""There is none; with an object given, also when another one has taken its name."""

ready = condition("Ready")
"""Pods, nodes and most custom resources."""

available = Expectation("Available", lambda view: _is_observed(view) and condition("Available").holds(view))
"""Deployments and API services."""

established = condition("Established")
"""Custom resource definitions: objects of the kind can be created from now on."""

complete = condition("Complete")
"""Jobs."""


async def wait(
    client: Reader,
    kind: type[T],
    endpoint: Endpoint,
    expectation: Expectation | Callable[[T], object],
    *,
    uid: str,
    timeout: float,
) -> T | None:
    """See `Client.wait_for`. A watch that broke or expired is begun again; a refusal is raised."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float | None):
        raise TypeError(f"timeout={timeout!r}: expected a number of seconds")
    if isinstance(expectation, Expectation):
        for path in expectation.paths:
            _check_path(kind, path)
    seen = _Seen[T](uid)
    try:
        async with asyncio.timeout(timeout):
            while not await _watched(client, kind, endpoint, expectation, seen):
                # Also after an orderly end: a server that ends every watch at once must not be retried without pause.
                seen.restarts += 1
                await asyncio.sleep(_RESTART.delay(seen.restarts))
    except TimeoutError:
        raise WaitTimeout(
            f"{endpoint.request('wait for')}: expected {_described(expectation)}, which did not come within "
            f"{timeout:g} s; {_summary(seen.view)}"
        ) from None
    return seen.object


def _check_path(kind: type[Object], path: FieldPath) -> None:
    """Raise a ValueError for a field that the type of a kind does not have: it would be waited for in vain."""
    shape = Shape("scalar") if issubclass(kind, Dynamic) else Shape("model", model=kind)
    for step in path.steps:
        known = shape.fields
        if known and step not in known:
            import difflib

            close = difflib.get_close_matches(str(step), known, n=1)
            fix = f'did you mean "{close[0]}"?' if close else f"it has {', '.join(known)}"
            raise ValueError(
                f'Field("{path.text}"): {shape.name} has no field "{step}": {fix} '
                "(Dynamic.of(...) has fields that the type does not know)"
            )
        shape = known.get(str(step)) or shape.item or SCALAR


class _Seen(Generic[T]):
    """The object as it was seen last, as far as it is the one that is waited for."""

    def __init__(self, uid: str) -> None:
        self._uid = uid
        self.object: T | None = None
        self.view: View = None
        self.restarts = 0  # since the last event

    def holds(self, expectation: Expectation | Callable[[T], object]) -> bool:
        if isinstance(expectation, Expectation):
            return expectation.holds(self.view)
        return self.object is not None and bool(expectation(self.object))

    def show(self, obj: T | None) -> None:
        if obj is not None and self._uid and obj.metadata.uid != self._uid:
            obj = None
        self.object = obj
        self.view = None if obj is None else cast(View, decode_json(origin(obj) or encode(obj)))


async def _watched(
    client: Reader, kind: type[T], endpoint: Endpoint, expectation: Expectation | Callable[[T], object], seen: _Seen[T]
) -> bool:
    """True when the expectation holds; False when the watch ended before and must be begun again."""
    selection = {"metadata.name": endpoint.name}
    namespace = endpoint.namespace or None
    try:
        # Not `list`, which leaves out an object that does not fit its type: that is not the same as none.
        async with aclosing(client.raw_pages(kind, namespace=namespace, fields=selection)) as pages:
            metadata, items = await anext(pages)
        seen.show(decode(kind, items[0]) if items else None)
        if seen.holds(expectation):
            return True
        revision = metadata.resource_version
        async with client.watch(kind, namespace=namespace, fields=selection, resource_version=revision) as events:
            async for event in events:
                seen.restarts = 0
                if event.type == "BOOKMARK":
                    continue
                seen.show(None if event.type == "DELETED" else event.object)
                if seen.holds(expectation):
                    return True
    except KubernetesError as error:
        if not error.is_temporary and not isinstance(error, Expired):
            raise
    return False


def _described(expectation: Expectation | Callable[[T], object]) -> str:
    if isinstance(expectation, Expectation):
        return expectation.description
    code = getattr(expectation, "__code__", None)
    name = getattr(expectation, "__qualname__", type(expectation).__name__)
    return f"{name} ({code.co_filename}:{code.co_firstlineno}) to hold" if code else f"{name} to hold"


def _summary(view: View) -> str:
    if view is None:
        return "there is no such object"
    seen = [
        f"{entry.get('type')}={entry.get('status')}" + (f" ({entry['reason']})" if entry.get("reason") else "")
        for entry in _conditions(view)
        if isinstance(entry, dict)
    ]
    phase = Field("status.phase").read(view)
    if phase is not None:
        seen.insert(0, f"phase={phase}")
    if Field("metadata.deletionTimestamp").read(view):
        seen.insert(0, f"being deleted, finalizers {Field('metadata.finalizers').read(view) or 'none'}")
    return f"last seen: {', '.join(seen) or 'no conditions'}"
