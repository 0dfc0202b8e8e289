"""How a world ends: its objects, without what differs from run to run by itself.

Left out are uids, revisions, managed fields, times, generations, addresses and nodes; a time that is set is `<time>`, a
uid names its object, `observedGeneration` is current or behind, and generated names are their prefix and a star.
Leases, Events and Nodes are not compared; Events are counted by object and reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, cast

import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.resources import Object
from kubewright.controlplane.embedded.storage.store import StoredObject
from kubewright.testing.exploration.world import directory_of

EVENTS: Final = "/core/events/"
NOT_COMPARED: Final = (EVENTS, "/coordination.k8s.io/leases/", "/core/nodes/")
"""What changes although nothing happens."""

_LEFT_OUT: Final = ("uid", "resourceVersion", "managedFields", "generation", "creationTimestamp", "selfLink")
_ASSIGNED: Final[dict[str, tuple[str, ...]]] = {
    "/core/pods/": (
        "spec.nodeName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
        "status.containerStatuses.*.containerID",
    ),
    "/core/persistentvolumes/": ("spec.claimRef.resourceVersion",),
    "/core/services/": ("spec.clusterIP", "spec.clusterIPs", "spec.ports.*.nodePort"),
    "/core/endpoints/": (
        "subsets.*.addresses.*.ip",
        "subsets.*.addresses.*.nodeName",
        "subsets.*.notReadyAddresses.*.ip",
        "subsets.*.notReadyAddresses.*.nodeName",
    ),
    "/discovery.k8s.io/endpointslices/": ("endpoints.*.addresses", "endpoints.*.nodeName"),
}
_TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}\b")  # of the admission of pods
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class EventKey:
    """Events of one sort."""

    regarding: str
    type: str
    reason: str

    def __str__(self) -> str:
        return f"{self.type} {self.reason} of {self.regarding}"


@dataclass(frozen=True, slots=True)
class EndState:
    """The objects of a world by their names, and how often each event was recorded."""

    objects: dict[str, JSONValue]
    events: Counter[EventKey]


class Normalizer:
    """Makes the end states of one exploration comparable; `ignore` are fields that may differ, by kind."""

    def __init__(self, prepared: Mapping[str, StoredObject], ignore: Mapping[type[Object], Collection[str]]) -> None:
        self._prepared = dict(prepared)
        self._ignored: dict[str, list[tuple[str, ...]]] = {
            directory: [tuple(path.split(".")) for path in paths] for directory, paths in _ASSIGNED.items()
        }
        for kind, paths in ignore.items():
            self._ignored.setdefault(directory_of(kind), []).extend(tuple(path.split(".")) for path in paths)

    def end_state(self, objects: Mapping[str, StoredObject], uids: Mapping[str, str]) -> EndState:
        """The end state of the objects in the store; `uids` has the keys of all that have been there."""
        names = _Names(objects.values(), uids, {_metadata(entry).get("uid") for entry in objects.values()})
        found: list[tuple[str, JSONValue]] = []
        for key in {**objects, **self._prepared}:
            entry, before = objects.get(key), self._prepared.get(key)
            # What was there before a world is part of its end only where the world has changed it.
            if entry is before or key.startswith(NOT_COMPARED) or ("*",) in self._ignored.get(_directory(key), ()):
                continue
            value = self._normalized(entry, names) if entry is not None else "deleted"
            if before is None or value != self._normalized(before, names):
                found.append((names.text(label_of(key)), value))
        return EndState(_numbered(found), _events(objects, names))

    def _normalized(self, entry: StoredObject, names: _Names) -> JSONValue:
        value = cast(JSONObject, msgspec.json.decode(entry.raw))
        for path in self._ignored.get(_directory(entry.key), ()):
            _remove(value, path)
        metadata = value.get("metadata")
        generation: JSONValue = None
        if isinstance(metadata, dict):
            generation = metadata.get("generation")
            for name in _LEFT_OUT:
                metadata.pop(name, None)
        return _plain(value, names, generation)


def label_of(key: str) -> str:
    """The object of a key of the store: `widgets.example.com default/web`."""
    _, group, resource, name = key.split("/", 3)
    return f"{resource} {name}" if group == "core" else f"{resource}.{group} {name}"


class _Names:
    """What uids and generated names are replaced by."""

    def __init__(self, entries: Iterable[StoredObject], uids: Mapping[str, str], present: Collection[object]) -> None:
        # Names may themselves be made of uids.
        self._uids = {uid: f"<uid of {_UID.sub('*', label_of(key))}>" for uid, key in uids.items() if uid in present}
        self._generated: dict[str, str] = {}
        for entry in entries:
            metadata = _metadata(entry)
            prefix, name = metadata.get("generateName"), metadata.get("name")
            if isinstance(prefix, str) and isinstance(name, str) and prefix:
                self._generated[name] = f"{prefix}*"
        self._pattern = re.compile("|".join(map(re.escape, self._generated))) if self._generated else None

    def text(self, value: str) -> str:
        if self._pattern is not None:
            value = self._pattern.sub(lambda match: self._generated[match[0]], value)
        value = _UID.sub(lambda match: self._uids.get(match[0], "<uid of no object>"), value)
        return _TOKEN_VOLUME.sub("kube-api-access-*", _TIME.sub("<time>", value))


def _plain(value: JSONValue, names: _Names, generation: JSONValue) -> JSONValue:
    if isinstance(value, str):
        return names.text(value)
    if isinstance(value, list):
        return [_plain(item, names, generation) for item in value]
    if not isinstance(value, dict):
        return value
    plain: JSONObject = {}
    for key, item in value.items():
        if key == "observedGeneration" and generation is not None:
            plain[key] = "current" if item == generation else f"{item}, and the generation is {generation}"
            continue
        # Their order has no meaning.
        if key == "conditions" and isinstance(item, list):
            item = sorted(item, key=lambda entry: str(entry.get("type")) if isinstance(entry, dict) else str(entry))
        plain[names.text(key)] = _plain(item, names, generation)
    return plain


def _remove(value: JSONValue, path: tuple[str, ...]) -> None:
    """Remove what is at the path; a star is any key or item."""
    first, rest = path[0], path[1:]
    if isinstance(value, list) and first == "*":
        for item in value if rest else ():
            _remove(item, rest)
        if not rest:
            value.clear()
    elif isinstance(value, dict):
        for key in list(value) if first == "*" else [first]:
            if rest:
                _remove(value.get(key), rest)
            else:
                value.pop(key, None)


def _numbered(found: Iterable[tuple[str, JSONValue]]) -> dict[str, JSONValue]:
    """By name; those of the same name, as only generated ones are, in the order of their contents."""
    objects: dict[str, JSONValue] = {}
    for name, value in sorted(found, key=lambda each: (each[0], msgspec.json.encode(each[1], order="sorted"))):
        number, unique = 1, name
        while unique in objects:
            number += 1
            unique = f"{name} ({number})"
        objects[unique] = value
    return objects


def _events(objects: Mapping[str, StoredObject], names: _Names) -> Counter[EventKey]:
    counted: Counter[EventKey] = Counter()
    for key, entry in objects.items():
        if key.startswith(EVENTS):
            value = entry.value
            regarding, series = value.get("involvedObject"), value.get("series")
            about = regarding if isinstance(regarding, dict) else {}
            name = names.text(f"{about.get('kind')} {about.get('namespace', '')}/{about.get('name')}")
            count = series.get("count") if isinstance(series, dict) else value.get("count")
            counted[EventKey(name, str(value.get("type")), str(value.get("reason")))] += (
                count if isinstance(count, int) else 1
            )
    return counted


def _metadata(entry: StoredObject) -> JSONObject:
    metadata = entry.value.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _directory(key: str) -> str:
    return "/".join(key.split("/", 3)[:3]) + "/"
