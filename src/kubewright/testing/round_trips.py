"""Whether the versions of a kind convert into each other without loss, tried with many objects.

def test_versions() -> None:
    assert_round_trips(PodManagerV1Beta1, PodManager, stashed=["status.selector"])
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeVar, cast

from kubewright.api.codec import decode, encode, to_json
from kubewright.api.errors import DecodeError
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.origin import same
from kubewright.api.resources import Object, resource_info
from kubewright.webhook.conversion import Spoke, Versions, converts
from kubewright.webhook.conversion_step import ConversionError, Converter

HubT = TypeVar("HubT", bound=Object)


def assert_round_trips(
    spoke: type[Spoke[HubT]], hub: type[HubT], *, stashed: Collection[str] = (), examples: int = 100
) -> None:
    """Fail with the simplest object that is not the same after a conversion to the other version and back.

    It is tried in both directions, with so many examples each, the same ones every time. The methods alone have to keep
    everything, so that a field they forget is found. Those that one of the versions cannot express are in `stashed`, as
    `spec.flag` or, in the items of a list, `spec.cabins[].view`: they are kept by the annotation, which is tried, too.

    Needs the package hypothesis.
    """
    try:
        from hypothesis import HealthCheck, given, settings

        from kubewright.testing.strategies import contents_of
    except ImportError:
        raise RuntimeError("assert_round_trips needs the package hypothesis: pip install hypothesis") from None
    versions = converts(hub, spoke)
    to_hub, from_hub = versions.converters(versions.spokes[0])
    for forth, back in ((to_hub, from_hub), (from_hub, to_hub)):
        trip = _Trip(versions, forth, back, stashed)
        settings(
            max_examples=examples,
            derandomize=True,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        )(given(contents_of(forth.source))(trip.attempt))()


class _Trip:
    """From a version to the other one and back."""

    def __init__(self, versions: Versions, forth: Converter, back: Converter, stashed: Collection[str]) -> None:
        self._versions = versions
        self._forth = forth
        self._back = back
        self._stashed = stashed

    def attempt(self, content: JSONObject) -> None:
        """Raise an AssertionError when an object with that content is not the same afterwards."""
        source, target = self._forth.source, self._forth.target
        gvk = resource_info(source).gvk
        names: JSONObject = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {"name": "example"}}
        obj = decode(source, encode({**names, **content}))
        before = _content(obj)
        way = f"from {source.__name__} to {target.__name__} and back"
        try:
            by_methods = _content(self._fitting(self._back, self._fitting(self._forth, obj)))
            there = self._versions.convert({**names, **before}, resource_info(target).gvk.api_version)
            by_webhook = _content(decode(source, encode(self._versions.convert(there, gvk.api_version))))
        except ConversionError as error:
            raise AssertionError(f"{way}: {error}\n  the object: {_shown(before)}") from error.__cause__
        for path, one, other in _differences(before, by_methods, ""):
            if not any(path == each or path.startswith((f"{each}.", f"{each}[")) for each in self._stashed):
                raise AssertionError(
                    f"{way}: {path} was {one} and is {other}\n  the object: {_shown(before)}\n"
                    f'  if that is because {target.__name__} cannot express it, write stashed=["{path}"]'
                )
        for path, one, other in _differences(before, by_webhook, ""):
            raise AssertionError(f"{way}, stashed: {path} was {one} and is {other}\n  the object: {_shown(before)}")

    def _fitting(self, converter: Converter, obj: Object) -> Object:
        try:
            return decode(converter.target, encode(converter(obj)))
        except DecodeError as error:
            raise ConversionError(f"what {converter.name} returned is not valid: {error}") from None


def _content(obj: Object) -> JSONObject:
    """All but its names and its metadata, with every default of the type."""
    content = cast(JSONObject, to_json(obj))
    return {name: value for name, value in content.items() if name not in ("apiVersion", "kind", "metadata")}


def _differences(before: JSONValue, after: JSONValue, path: str) -> Iterator[tuple[str, str, str]]:
    """What differs, by path, with the values before and after."""
    if same(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before | after:
            inner = f"{path}.{name}" if path else name
            if name in before and name in after:
                yield from _differences(before[name], after[name], inner)
            else:
                was, now = (_shown(each[name]) if name in each else "absent" for each in (before, after))
                yield inner, was, now
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for one, other in zip(before, after, strict=True):
            yield from _differences(one, other, f"{path}[]")
    else:
        yield path, _shown(before), _shown(after)


def _shown(value: JSONValue) -> str:
    return encode(value).decode()
