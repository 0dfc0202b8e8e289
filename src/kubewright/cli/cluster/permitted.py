"""A refusal of the server, explained by all rules that the user lacks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from kubewright.api.errors import KubernetesError
from kubewright.api.resources import Object
from kubewright.client import Client
from kubewright.client.errors import Forbidden
from kubewright.manager.permissions import Permission, explain, missing_permissions


@asynccontextmanager
async def permitted(client: Client, objects: Iterable[Object], *verbs: str) -> AsyncIterator[None]:
    """A `Forbidden` in the block is raised with all rules that are needed for these verbs and objects, and missing."""
    try:
        yield
    except Forbidden as error:
        needed = [Permission(type(obj), *verbs, namespace=obj.metadata.namespace or "") for obj in objects]
        try:
            missing = await missing_permissions(client, needed)
        except KubernetesError:
            missing = []
        if not missing:
            raise
        notes = getattr(error, "__notes__", ())
        raise KubernetesError("\n".join([str(error), explain(missing), *notes])) from None
