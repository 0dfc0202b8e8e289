"""Makes the pods of a PodManager match its spec.

Pods are named `<name>-0`, `<name>-1` …; the names make their creation idempotent. A pod that is deleted, has ended or
has another image is replaced.
"""

from __future__ import annotations

from kubewright import (
    AlreadyExists,
    CachedClient,
    KubernetesError,
    ObjectMeta,
    Recorder,
    Request,
    Result,
    set_controller_reference,
)
from kubewright.api.core.v1 import Container, Pod, PodSpec
from kubewright.manager.metrics import Counter, Labelled
from kubewright.patterns import NotYet, ObjectReconciler, is_true, set_condition

from .types import PodManager

RESYNC = 30.0


class PodManagerReconciler(ObjectReconciler[PodManager]):
    """Reconciles PodManagers."""

    finalizer = "apps.mycompany.com/podmanager-finalizer"

    def __init__(self, client: CachedClient, events: Recorder, reconciles: Labelled[Counter]) -> None:
        super().__init__(client)
        self.events = events
        self.reconciles = reconciles

    async def reconcile(self, request: Request) -> Result | None:
        """Reconcile one PodManager, and count it."""
        try:
            result = await super().reconcile(request)
        except Exception:
            self.reconciles.labels(result="error").add()
            raise
        self.reconciles.labels(result="requeue" if result is not None and result.requeue else "success").add()
        return result

    async def converge(self, manager: PodManager) -> Result:
        """Create, delete and replace pods, and report what there is."""
        try:
            await self.scale(manager)
            await self.roll_out(manager)
        except KubernetesError as error:
            await self.report(manager, problem=str(error))
            raise
        await self.report(manager)
        return Result(requeue_after=RESYNC)

    async def cleanup(self, manager: PodManager) -> None:
        """Delete the pods, and wait until they are gone."""
        pods = await self.pods_of(manager)
        for pod in pods:
            if pod.metadata.deletion_timestamp is None:
                await self.delete(manager, pod)
        if pods:
            raise NotYet(f"{len(pods)} pods are left", after=1)

    async def scale(self, manager: PodManager) -> None:
        """Create missing pods, delete surplus and finished ones."""
        pods = await self.pods_of(manager)
        for finished in [pod for pod in pods if is_finished(pod)]:
            await self.delete(manager, finished)
        live = [pod for pod in pods if is_live(pod)]
        live.sort(key=lambda pod: (not is_ready(pod), is_outdated(pod, manager), index_of(pod)))
        for surplus in live[manager.spec.replicas :]:
            await self.delete(manager, surplus)
        # Terminating and finished pods still hold their names.
        taken = {pod.metadata.name for pod in pods}
        names = (f"{manager.metadata.name}-{index}" for index in range(manager.spec.replicas))
        free = [name for name in names if name not in taken]
        for name in free[: max(0, manager.spec.replicas - len(live))]:
            await self.create(manager, name)

    async def roll_out(self, manager: PodManager) -> None:
        """Delete pods of another image, to be recreated: a ready one only while all others are ready, too."""
        pods = [pod for pod in await self.pods_of(manager) if is_live(pod)]
        outdated = sorted((pod for pod in pods if is_outdated(pod, manager)), key=index_of)
        dispensable = [pod for pod in outdated if not is_ready(pod)]
        if sum(is_ready(pod) for pod in pods) >= manager.spec.replicas:
            dispensable += [pod for pod in outdated if is_ready(pod)][-1:]
        for pod in dispensable:
            await self.delete(manager, pod)

    async def report(self, manager: PodManager, problem: str = "") -> None:
        """Put what exists after this reconcile into the status, and the problem that ended it."""
        pods = [pod for pod in await self.pods_of(manager) if is_live(pod)]
        ready, outdated = sum(is_ready(pod) for pod in pods), sum(is_outdated(pod, manager) for pod in pods)
        status = manager.status
        status.current_replicas, status.ready_replicas = len(pods), ready
        status.selector = ",".join(f"{name}={value}" for name, value in labels_of(manager).items())
        message = f"{ready} of {manager.spec.replicas} pods are ready"
        message += f", {outdated} of another image" if outdated else ""
        if problem:
            set_condition(manager, "Ready", False, "Failed", f"{message}: {problem}")
        elif ready == manager.spec.replicas and not outdated:
            set_condition(manager, "Ready", True, "AllPodsReady", message)
        else:
            set_condition(manager, "Ready", False, "PodsNotReady", message)

    async def pods_of(self, manager: PodManager) -> list[Pod]:
        """All that exist, what this reconcile has written included."""
        return await self.client.list(Pod, namespace=manager.metadata.namespace, labels=labels_of(manager))

    async def create(self, manager: PodManager, name: str) -> None:
        """Create a pod of that name, unless it is there already and ours."""
        pod = Pod(
            metadata=ObjectMeta(name=name, namespace=manager.metadata.namespace, labels=labels_of(manager)),
            spec=PodSpec(containers=[Container(name="app", image=manager.spec.image)]),
        )
        set_controller_reference(manager, pod)
        try:
            await self.client.create(pod)
        except KubernetesError as error:
            if isinstance(error, AlreadyExists) and await self.is_ours(manager, pod):
                return
            self.events.warning(manager, "Failed", f"Failed to create pod {name}: {error}")
            raise
        self.events.normal(manager, "Created", f"Created pod {name}")

    async def is_ours(self, manager: PodManager, pod: Pod) -> bool:
        """Whether the pod that has the name is one that the cache has not shown yet."""
        there = await self.client.find(pod, consistency="live")
        return there is not None and any(owner.uid == manager.metadata.uid for owner in there.metadata.owner_references)

    async def delete(self, manager: PodManager, pod: Pod) -> None:
        """Delete just this pod, not one that has taken its name since."""
        await self.client.delete(pod, uid=pod.metadata.uid, missing_ok=True)
        self.events.normal(manager, "Deleted", f"Deleted pod {pod.metadata.name}")


def labels_of(manager: PodManager) -> dict[str, str]:
    """With the uid, so that a recreated manager never adopts the pods of its predecessor."""
    return {"app": "my-app", "podmanager": manager.metadata.name, "podmanager-uid": manager.metadata.uid}


def is_finished(pod: Pod) -> bool:
    """Whether it has ended and is not being deleted."""
    return pod.metadata.deletion_timestamp is None and pod.status.phase in ("Failed", "Succeeded")


def is_live(pod: Pod) -> bool:
    """Whether it counts as one of the replicas."""
    return pod.metadata.deletion_timestamp is None and not is_finished(pod)


def is_ready(pod: Pod) -> bool:
    """Whether it runs and is ready; one that is terminating is not."""
    return pod.metadata.deletion_timestamp is None and pod.status.phase == "Running" and is_true(pod, "Ready")


def is_outdated(pod: Pod, manager: PodManager) -> bool:
    """Whether it runs another image."""
    return any(each.name == "app" and each.image != manager.spec.image for each in pod.spec.containers)


def index_of(pod: Pod) -> int:
    """The number in its name."""
    suffix = pod.metadata.name.rpartition("-")[2]
    return int(suffix) if suffix.isdecimal() else 0
