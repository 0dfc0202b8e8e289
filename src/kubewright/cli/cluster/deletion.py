"""Deleting objects one by one, and waiting until they have gone."""

from __future__ import annotations

from contextlib import suppress

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.apps.v1 import Deployment
from kubewright.api.core.v1 import Namespace, Pod
from kubewright.api.resources import Object
from kubewright.cli.cluster.custom_objects import StillThere, custom_objects
from kubewright.cli.cluster.plan import PlannedChange, action, described
from kubewright.cli.cluster.progress import ChangeProgress
from kubewright.cli.cluster.waiting import wait_until_none
from kubewright.client import Client
from kubewright.client.errors import NotFound
from kubewright.client.paths import Propagation


async def delete(client: Client, step: PlannedChange, progress: ChangeProgress) -> None:
    """Delete the object that the step is about, unless another one has taken its place. A Deployment goes when its
    pods have ended.
    """
    propagation: Propagation | None = "Foreground" if isinstance(step.obj, Deployment) else None
    async with progress.change(action(step), is_deletion=True):
        with suppress(NotFound):
            await client.delete(step.obj, uid=step.obj.metadata.uid, propagation=propagation)


async def wait_until_gone(client: Client, step: PlannedChange, progress: ChangeProgress) -> None:
    """Return when it has gone. Raises `StillThere` with what blocks that."""
    obj = step.obj

    async def reasons() -> list[str]:
        found = await find(client, obj)
        if found is None or found.metadata.uid != obj.metadata.uid:
            return []
        return [f"{described(obj)} to go: {await _blocked(client, found)}"]

    if left := await wait_until_none(reasons, deadline=progress.deadline, line=progress.line):
        raise StillThere(f"not gone after {progress.deadline.timeout:g} s: {left[0]}")
    progress.gone(action(step))


async def find(client: Client, obj: Object) -> Object | None:
    """The object, if there is any; there is none of a kind that the server does not serve."""
    try:
        return await client.find(obj)
    except NotFound:
        return None


async def _blocked(client: Client, obj: Object) -> str:
    """What an object that is being deleted waits for."""
    match obj:
        case Namespace():
            messages = [each.message for each in obj.status.conditions if each.status == "True" and each.message]
            return "; ".join(messages) or "what is in it is being deleted"
        case Deployment():
            pods = await client.list(Pod, namespace=obj.metadata.namespace, labels=obj.spec.selector)
            names = ", ".join(pod.metadata.name for pod in pods)
            return f"its pods are ending: {names}" if names else "its pods are ending"
        case CustomResourceDefinition():
            left = await custom_objects(client, obj)
            return f"{left} are still there" if left.objects else "its objects are being deleted"
    return f"finalizers {', '.join(obj.metadata.finalizers) or 'none'}"
