"""Who controls whom: controller references, and claiming objects by label selector.

A controller owns what refers to it as its controller. It adopts what its selector matches and nobody controls, and
releases what its selector no longer matches. It never touches what another one controls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from kubewright.api.meta import LabelSelector, LabelSelectorRequirement, OwnerReference
from kubewright.api.resource import Object
from kubewright.client import Client, StrategicMergePatch
from kubewright.client.errors import Invalid, NotFound
from kubewright.controlplane.controllers.loop import Mirror

OwnerT = TypeVar("OwnerT", bound=Object)
OwnedT = TypeVar("OwnedT", bound=Object)


def controller_of(obj: Object) -> OwnerReference | None:
    """The reference to the one object that controls `obj`."""
    return next((reference for reference in obj.metadata.owner_references if reference.controller), None)


def controller_reference(owner: Object) -> OwnerReference:
    """The reference by which `owner` controls another object; that one holds up the owner's foreground deletion."""
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def owner_index(obj: Object) -> tuple[str]:
    """For a mirror: objects by the uid of their controller, and those without one by `orphans_of` their namespace."""
    reference = controller_of(obj)
    return (reference.uid if reference is not None else orphans_of(obj.metadata.namespace),)


def orphans_of(namespace: str) -> str:
    """The value of `owner_index` for what nobody controls in a namespace. No uid contains a slash."""
    return f"{namespace}/"


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether all requirements of the selector hold of the labels."""
    return all(labels.get(name) == value for name, value in selector.match_labels.items()) and all(
        _holds(requirement, labels) for requirement in selector.match_expressions
    )


def _holds(requirement: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    match requirement.operator:
        case "In":
            return labels.get(requirement.key) in requirement.values
        case "NotIn":
            return labels.get(requirement.key) not in requirement.values
        case "Exists":
            return requirement.key in labels
        case "DoesNotExist":
            return requirement.key not in labels
        case _:
            return False


async def claimed(
    client: Client, owner: OwnerT, selector: LabelSelector, candidates: Iterable[OwnedT], mirror: Mirror[OwnedT]
) -> list[OwnedT]:
    """Those of the candidates that `owner` controls, after adopting and releasing. A dying owner does neither."""
    mine: list[OwnedT] = []
    may_adopt: bool | None = None
    dying = owner.metadata.deletion_timestamp is not None
    for candidate in candidates:
        controller = controller_of(candidate)
        matches = selects(selector, candidate.metadata.labels)
        if controller is not None and controller.uid != owner.metadata.uid:
            continue
        if controller is not None and matches:
            mine.append(candidate)
        elif controller is not None and not dying:
            await _release(client, owner, candidate, mirror)
        elif controller is None and matches and not dying and candidate.metadata.deletion_timestamp is None:
            if may_adopt is None:
                may_adopt = await _still_wanted(client, owner)
            if may_adopt and (adopted := await _adopt(client, owner, candidate, mirror)) is not None:
                mine.append(adopted)
    return mine


async def _still_wanted(client: Client, owner: OwnerT) -> bool:
    # Asked of the server: what is adopted for an owner that is gone would be deleted with it.
    fresh = await client.find(type(owner), owner.metadata.name, namespace=owner.metadata.namespace)
    return fresh is not None and fresh.metadata.uid == owner.metadata.uid and fresh.metadata.deletion_timestamp is None


async def _adopt(client: Client, owner: Object, orphan: OwnedT, mirror: Mirror[OwnedT]) -> OwnedT | None:
    reference = controller_reference(owner)
    patch = StrategicMergePatch(
        {
            "metadata": {
                "uid": orphan.metadata.uid,
                "ownerReferences": [
                    {
                        "apiVersion": reference.api_version,
                        "kind": reference.kind,
                        "name": reference.name,
                        "uid": reference.uid,
                        "controller": True,
                        "blockOwnerDeletion": True,
                    }
                ],
            }
        }
    )
    try:
        return mirror.record(await client.patch(orphan, patch))
    except NotFound:
        return None


async def _release(client: Client, owner: Object, owned: OwnedT, mirror: Mirror[OwnedT]) -> None:
    patch = StrategicMergePatch(
        {
            "metadata": {
                "uid": owned.metadata.uid,
                "ownerReferences": [{"$patch": "delete", "uid": owner.metadata.uid}],
            }
        }
    )
    try:
        mirror.record(await client.patch(owned, patch))
    except (NotFound, Invalid):
        # It is gone, or another one of the same name has taken its place: nothing left to release.
        return
