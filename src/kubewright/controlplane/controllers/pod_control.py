"""Creating and deleting the pods of a workload, with the events about it that kube-controller-manager emits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from kubewright.api.core.v1 import Pod, PodTemplateSpec
from kubewright.api.errors import KubernetesError
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object
from kubewright.cache import CachedClient
from kubewright.client.errors import NotFound
from kubewright.controlplane.controllers.reporting import is_refused_by_deletion, message_of
from kubewright.manager.recorder import Recorder

BURST = 500
"""The maximum number of pods that one reconcile creates or deletes."""


def pod_from(template: PodTemplateSpec, owner: Object, *, name: str = "") -> Pod:
    """A pod of a template, controlled by its owner; its name is generated from the owner's unless it is given."""
    return Pod(
        metadata=ObjectMeta(
            name=name,
            generate_name="" if name else f"{owner.metadata.name}-",
            namespace=owner.metadata.namespace,
            labels=dict(template.metadata.labels),
            annotations=dict(template.metadata.annotations),
            finalizers=list(template.metadata.finalizers),
            owner_references=[owner.as_owner()],
        ),
        spec=msgspec.structs.replace(template.spec),
    )


class PodControl:
    """Creates and deletes pods for their owners."""

    def __init__(self, client: CachedClient, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder

    async def create_all(self, owner: Object, pods: Sequence[Pod]) -> None:
        """Create the pods, or raise the first failure. In a namespace that is being deleted nothing is created."""
        # In batches of 1, 2, 4 …: when a quota or a webhook refuses them all, only one request is wasted.
        start, batch = 0, 1
        while start < len(pods):
            answers = await asyncio.gather(
                *(self.create(owner, pod) for pod in pods[start : start + batch]), return_exceptions=True
            )
            for answer in answers:
                if isinstance(answer, BaseException):
                    if is_refused_by_deletion(answer):
                        return
                    raise answer
            start += batch
            batch *= 2

    async def create(self, owner: Object, pod: Pod) -> Pod:
        """Create one pod."""
        try:
            created = await self._client.create(pod)
        except KubernetesError as error:
            if not is_refused_by_deletion(error):
                self._recorder.warning(owner, "FailedCreate", f"Error creating: {message_of(error)}")
            raise
        self._recorder.normal(owner, "SuccessfulCreate", f"Created pod: {created.metadata.name}")
        return created

    async def delete_all(self, owner: Object, pods: Sequence[Pod]) -> None:
        """Delete the pods, or raise a failure after all were tried."""
        answers = await asyncio.gather(*(self.delete(owner, pod) for pod in pods), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def delete(self, owner: Object, pod: Pod) -> None:
        """Delete one pod, unless it is gone."""
        try:
            await self._client.delete(pod, uid=pod.metadata.uid)
        except NotFound:
            return
        except KubernetesError as error:
            self._recorder.warning(owner, "FailedDelete", f"Error deleting: {message_of(error)}")
            raise
        self._recorder.normal(owner, "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")
