"""Managed fields across the scale subresource, whose objects are of another kind with another path to the replicas.

The manager of the replicas of an object manages `.spec.replicas` of its Scale, and vice versa.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.managedfields.entries import FieldManager, stored_managers, written
from kubewright.controlplane.embedded.managedfields.fieldset import Path, difference, has, of_paths

SCALE_VERSION = "autoscaling/v1"
_REPLICAS_OF_SCALE: Path = ("f:spec", "f:replicas")


def scale_entries(entries: JSONValue, *, replicas: Mapping[str, Sequence[str] | None]) -> list[JSONValue]:
    """The managed fields of the Scale of an object that has `entries`.

    `replicas` is where each version of the kind keeps its replicas, as names; None for a version without scale.
    """
    return written(
        replace(manager, api_version=SCALE_VERSION, fields=of_paths([_REPLICAS_OF_SCALE]))
        for manager in stored_managers(entries).values()
        if _manages(manager, _path(replicas.get(manager.api_version)))
    )


def entries_after_scale(
    entries: JSONValue, scaled: JSONValue, *, api_version: str, replicas: Mapping[str, Sequence[str] | None]
) -> list[JSONValue]:
    """The managed fields of an object, `entries` before, after a write through its Scale, which has `scaled` now."""
    before, after = stored_managers(entries), stored_managers(scaled)
    result: list[FieldManager] = []
    for identity, manager in before.items():
        if manager.api_version not in replicas:
            continue
        path = _path(replicas[manager.api_version])
        if not _manages(manager, path) or after.pop(identity, None) is not None:
            result.append(manager)
            continue
        fields = difference(manager.fields, of_paths([path]))
        if fields:
            result.append(replace(manager, fields=fields))
    for identity, manager in after.items():
        if has(manager.fields, _REPLICAS_OF_SCALE):
            # Of new managers the real server forgets the time.
            time = before[identity].time if identity in before else ""
            fields = of_paths([_path(replicas.get(api_version))])
            result.append(replace(manager, api_version=api_version, time=time, fields=fields))
    return written(result)


def _path(names: Sequence[str] | None) -> Path:
    return tuple(f"f:{name}" for name in names or ())


def _manages(manager: FieldManager, path: Path) -> bool:
    return has(manager.fields, path)
