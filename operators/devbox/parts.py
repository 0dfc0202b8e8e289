"""The objects that a Devbox consists of. None of them is taken from another owner, or from a user."""

from __future__ import annotations

from typing import TypeVar

from kubewright import KubernetesError
from kubewright.api import Object
from kubewright.api.resources import resource_info

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
    devbox, namespace = context.object, context.object.metadata.namespace
    found = await context.client.find(kind, name, namespace=namespace)
    if found is None:
        found = await context.live.find(kind, name, namespace=namespace)
    if found is not None and not is_part(devbox, found):
        info = resource_info(kind)
        raise NameTaken(
            f"the {info.gvk.kind} {name} exists and is not of this Devbox: delete or rename it, or give the Devbox "
            "another name"
        )
    return found


async def ensure_part(context: DevboxContext, wanted: P) -> P:
    """`ensure` of a part."""
    await find_part(context, type(wanted), wanted.metadata.name)
    return await context.ensure(wanted)


def is_part(devbox: Devbox, found: Object) -> bool:
    """Whether the Devbox controls it, or nothing does and it was made for a Devbox of that name."""
    controllers = [each.uid for each in found.metadata.owner_references if each.controller]
    if controllers:
        return controllers == [devbox.metadata.uid]
    return labels_of(devbox.metadata.name).items() <= found.metadata.labels.items()
