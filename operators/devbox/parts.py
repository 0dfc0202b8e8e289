"""The objects that a Devbox consists of. None of them is taken from another owner, or from a user."""

from __future__ import annotations

from typing import TypeVar

from kubewright import KubernetesError, set_controller_reference
from kubewright.api import Object
from kubewright.api.resources import resource_info
from kubewright.patterns import check_adoption

from .context import DevboxContext
from .names import labels_of
from .types import Devbox

P = TypeVar("P", bound=Object)


class NameTaken(KubernetesError):
    """An object that a Devbox needs exists already and is not one of its own."""


async def find_part(context: DevboxContext, kind: type[P], name: str) -> P | None:
    """The part of that name. What the cache does not show is asked for, so that nothing is made twice.

    Raises `NameTaken` for one that is not a part of the Devbox.
    """
    found = await context.client.find(kind, name, namespace=context.object.metadata.namespace)
    return found if found is not None and is_part(context.object, found) else await find_stored(context, kind, name)


async def find_stored(context: DevboxContext, kind: type[P], name: str) -> P | None:
    """`find_part` as the server has it."""
    devbox = context.object
    found = await context.live.find(kind, name, namespace=devbox.metadata.namespace)
    if found is not None and not is_part(devbox, found):
        labels = ",".join(f"{key}={value}" for key, value in labels_of(devbox.metadata.name).items())
        raise NameTaken(
            f"the {resource_info(kind).gvk.kind} {name} exists and is not of this Devbox: label it {labels} if it is "
            "to be, or else delete it, or give the Devbox another name"
        )
    return found


async def ensure_part(context: DevboxContext, wanted: P) -> P:
    """`ensure` of a part."""
    found = await find_part(context, type(wanted), wanted.metadata.name)
    if found is not None:
        await check_adoption(context.client, context.object, found)
    return await context.ensure(wanted)


def is_part(devbox: Devbox, found: Object) -> bool:
    """Whether the Devbox controls it, or nothing does and it was made for a Devbox of that name."""
    return is_controlled(devbox, found) or (
        not any(each.controller for each in found.metadata.owner_references)
        and labels_of(devbox.metadata.name).items() <= found.metadata.labels.items()
    )


def is_controlled(devbox: Devbox, found: Object) -> bool:
    """Whether it goes with the Devbox."""
    return any(each.controller and each.uid == devbox.metadata.uid for each in found.metadata.owner_references)


def is_watched(devbox: Devbox, found: Object) -> bool:
    """Whether the cache shows it, and its changes enqueue the Devbox."""
    return is_controlled(devbox, found) and labels_of(devbox.metadata.name).items() <= found.metadata.labels.items()


async def adopt(context: DevboxContext, found: Object) -> None:
    """Have the Devbox control a part that has lost its owner: one that was orphaned, or edited."""
    if not is_controlled(context.object, found):
        await take_over(context, found)
        await context.client.patch(found)


async def take_over(context: DevboxContext, found: Object) -> None:
    """Set the Devbox as the owner of a part that was found; who calls it writes that."""
    await check_adoption(context.client, context.object, found)
    set_controller_reference(context.object, found)
