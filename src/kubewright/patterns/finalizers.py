"""Finalizers: an object that has one stays until it is removed, so that what belongs to the object is cleaned up first.

    widget = await add_finalizer(client, widget, "example.com/cleanup")       # before anything is made for it
    ...
    await remove_finalizer(client, widget, "example.com/cleanup")             # after all of it is gone

`ObjectReconciler` does both. Finalizers of others are never touched, and what they add or remove at the same time is
kept.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TypeVar

from kubewright.api import Object
from kubewright.client import Client
from kubewright.client.errors import Conflict, Invalid, NotFound

T = TypeVar("T", bound=Object)


async def add_finalizer(client: Client, obj: T, finalizer: str) -> T | None:
    """Put the finalizer on the object and return it as the server has it; nothing is sent when it is there already.

    Returns None when the object is gone or being deleted, which is too late for a finalizer.
    """
    check_finalizer(finalizer)
    if finalizer in obj.metadata.finalizers:
        return obj
    obj.metadata.finalizers.append(finalizer)
    try:
        return await client.patch(obj)
    except NotFound:
        return None
    except (Invalid, Conflict):
        # The server accepts no new finalizers on an object that is being deleted; and another may have taken its name.
        there = await Client.find(client, type(obj), obj.key)
        if there is None or there.metadata.deletion_timestamp is not None or there.metadata.uid != obj.metadata.uid:
            return None
        raise


async def remove_finalizer(client: Client, obj: T, finalizer: str) -> None:
    """Take the finalizer off; nothing is sent when it is not there. An object that is gone is not an error."""
    if finalizer not in obj.metadata.finalizers:
        return
    obj.metadata.finalizers.remove(finalizer)
    with suppress(NotFound):
        await client.patch(obj)


def check_finalizer(finalizer: str) -> None:
    """Raise ValueError unless it is a qualified name, as the server expects of custom resources."""
    domain, _, name = finalizer.partition("/")
    if "." not in domain or not name:
        raise ValueError(
            f'the finalizer "{finalizer}" is not a qualified name: expected a domain and a name, such as '
            '"example.com/cleanup"'
        )
