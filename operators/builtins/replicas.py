"""The whole loop of a ReplicaSet, on a kind of our own: creates the pods that are missing and deletes surplus ones."""

from __future__ import annotations

from kubewright import ObjectMeta, set_controller_reference
from kubewright.api.core.v1 import Pod
from kubewright.patterns import ObjectReconciler

from .types import PodSet


class PodSetReconciler(ObjectReconciler[PodSet]):
    """Reconciles PodSets."""

    async def converge(self, pod_set: PodSet) -> None:
        """Create or delete pods, and count them. Those that have ended are replaced."""
        namespace, uid = pod_set.metadata.namespace, pod_set.metadata.uid
        pods = [pod for pod in await self.client.list(Pod, namespace=namespace) if is_active(pod, uid)]
        pods.sort(key=lambda pod: (pod.status.phase == "Running", pod.metadata.name), reverse=True)
        for _ in range(len(pods), pod_set.spec.replicas):
            await self.client.create(self.pod_of(pod_set))
        for surplus in pods[pod_set.spec.replicas :]:
            await self.client.delete(surplus, uid=surplus.metadata.uid, missing_ok=True)
        pod_set.status.replicas = pod_set.spec.replicas

    def pod_of(self, pod_set: PodSet) -> Pod:
        """A new pod of the template."""
        template = pod_set.spec.template
        pod = Pod(
            metadata=ObjectMeta(
                generate_name=f"{pod_set.metadata.name}-",
                namespace=pod_set.metadata.namespace,
                labels=dict(template.metadata.labels),
            ),
            spec=template.spec,
        )
        set_controller_reference(pod_set, pod)
        return pod


def is_active(pod: Pod, owner: str) -> bool:
    """Whether it is a pod of the owner, and neither ends nor has ended."""
    return (
        any(each.controller and each.uid == owner for each in pod.metadata.owner_references)
        and pod.metadata.deletion_timestamp is None
        and pod.status.phase not in ("Succeeded", "Failed")
    )
