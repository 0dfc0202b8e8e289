"""Which EndpointSlices to create, update and delete so that they hold the desired endpoints.

Nothing here talks to a server. An endpoint stays in the slice that it is in, and slices are filled before new ones are
made: every changed slice is sent to every node of a cluster.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from kubewright.api.discovery.v1 import Endpoint, EndpointPort, EndpointSlice

MAX_ENDPOINTS = 100

Ports = tuple[tuple[object, ...], ...]
"""A set of ports, as a key."""


@dataclass(slots=True)
class Changes:
    """What to do; what is to be updated has its name."""

    create: list[EndpointSlice] = field(default_factory=list)
    update: list[EndpointSlice] = field(default_factory=list)
    delete: list[EndpointSlice] = field(default_factory=list)

    def recycle(self, may: Callable[[EndpointSlice], bool]) -> None:
        """Replace slices that would be deleted instead of creating new ones, as far as they may be."""
        for unwanted in list(self.delete):
            if not self.create:
                return
            if may(unwanted) and unwanted.address_type == self.create[-1].address_type:
                self.update.append(renamed_as(unwanted, self.create.pop()))
                self.delete.remove(unwanted)


def renamed_as(present: EndpointSlice, new: EndpointSlice) -> EndpointSlice:
    """The new slice under the name of a present one."""
    meta = new.metadata
    new.metadata = msgspec.structs.replace(
        present.metadata,
        labels=meta.labels,
        annotations=meta.annotations,
        owner_references=meta.owner_references,
    )
    return new


def key_of(ports: Iterable[EndpointPort]) -> Ports:
    """The same for the same set of ports."""
    return tuple(
        sorted(
            ((port.name or "", port.port or 0, port.protocol or "", port.app_protocol or "") for port in ports),
        )
    )


def identity(endpoint: Endpoint) -> tuple[object, ...]:
    """The same for an endpoint that is only updated."""
    target = endpoint.target_ref
    who = (target.namespace, target.name) if target is not None else ("", "")
    return (*sorted(endpoint.addresses), endpoint.hostname or "", *who)


def pack(
    existing: Iterable[EndpointSlice],
    desired: Iterable[Endpoint],
    labels: dict[str, str],
    new: Callable[[], EndpointSlice],
) -> Changes:
    """The changes for slices of one set of ports and one address type; `new` makes an empty one."""
    missing = {identity(endpoint): endpoint for endpoint in desired}
    changes, unchanged = Changes(), list[EndpointSlice]()
    for one in existing:
        kept, is_changed = list[Endpoint](), False
        for endpoint in one.endpoints:
            wanted = missing.pop(identity(endpoint), None)
            if wanted is not None:
                kept.append(wanted)
                is_changed |= comparable(wanted) != comparable(endpoint)
        if len(kept) != len(one.endpoints) and not kept:
            changes.delete.append(one)
        elif is_changed or len(kept) != len(one.endpoints) or one.metadata.labels != labels:
            changes.update.append(_changed(one, kept, labels))
        else:
            unchanged.append(one)
    for one in sorted(changes.update, key=lambda one: -len(one.endpoints)):
        _fill(one, missing)
    while missing:
        fitting = [one for one in unchanged if len(one.endpoints) + len(missing) <= MAX_ENDPOINTS]
        if fitting:
            fullest = max(fitting, key=lambda one: len(one.endpoints))
            unchanged.remove(fullest)
            filled = _changed(fullest, list(fullest.endpoints), labels)
            changes.update.append(filled)
        else:
            filled = new()
            changes.create.append(filled)
        _fill(filled, missing)
    return changes


def _fill(one: EndpointSlice, missing: dict[tuple[object, ...], Endpoint]) -> None:
    for key in list(missing)[: max(0, MAX_ENDPOINTS - len(one.endpoints))]:
        one.endpoints.append(missing.pop(key))


def _changed(one: EndpointSlice, endpoints: list[Endpoint], labels: dict[str, str]) -> EndpointSlice:
    changed = copy.copy(one)
    changed.endpoints = endpoints
    changed.metadata = msgspec.structs.replace(one.metadata, labels=labels, annotations=dict(one.metadata.annotations))
    return changed


def comparable(endpoint: Endpoint) -> Endpoint:
    """The endpoint for a comparison: of which revision its pod was does not matter."""
    target = endpoint.target_ref
    if target is None or not target.resource_version:
        return endpoint
    return msgspec.structs.replace(endpoint, target_ref=msgspec.structs.replace(target, resource_version=None))
