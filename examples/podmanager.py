"""PodManager: keeps a number of identical pods running. A complete operator in one file.

    python examples/podmanager.py --kubeconfig FILE

It shows a custom resource, a finalizer, owned objects, a roll-out, events, and status with a condition.
"""

from __future__ import annotations

from typing import Annotated

from kubewright import (
    AlreadyExists,
    CachedClient,
    Column,
    Condition,
    KubernetesError,
    Manager,
    Meta,
    Model,
    ObjectMeta,
    Recorder,
    Request,
    Resource,
    Result,
    Scale,
    TerminalError,
    controller_for,
    now,
    resource,
    run,
)
from kubewright.api.core.v1 import Container, Pod, PodSpec

FINALIZER = "apps.mycompany.com/podmanager-finalizer"
RESYNC = 30.0
MAX_NAME_LENGTH = 63  # it is the value of a label of each pod


class PodManagerSpec(Model):
    image: Annotated[str, Meta(min_length=1)]
    replicas: Annotated[int, Meta(ge=1)] = 3


class PodManagerStatus(Model):
    ready_replicas: int = 0
    current_replicas: int = 0
    observed_generation: int = 0
    selector: str = ""
    conditions: list[Condition] = []


@resource(
    "apps.mycompany.com/v1",
    columns=[
        Column("Desired", ".spec.replicas"),
        Column("Current", ".status.currentReplicas"),
        Column("Ready", ".status.readyReplicas"),
        Column("Age", ".metadata.creationTimestamp"),
    ],
    scale=Scale(".spec.replicas", ".status.currentReplicas", ".status.selector"),
)
class PodManager(Resource[PodManagerSpec, PodManagerStatus]):
    """Keeps a number of identical pods running."""


class PodManagerReconciler:
    def __init__(self, client: CachedClient, events: Recorder) -> None:
        self.client = client
        self.events = events

    async def reconcile(self, request: Request) -> Result:
        manager = await self.client.find(PodManager, request)
        if manager is None:
            return Result()
        if manager.metadata.deletion_timestamp is not None:
            return await self.clean_up(manager)
        if len(manager.metadata.name) > MAX_NAME_LENGTH:
            return await self.refuse(manager, f"its name is longer than {MAX_NAME_LENGTH} characters: create it anew")
        if FINALIZER not in manager.metadata.finalizers:
            manager.metadata.finalizers.append(FINALIZER)
            await self.client.patch(manager)
            return Result(requeue=True)
        try:
            await self.scale(manager)
            await self.roll_out(manager)
        except KubernetesError as error:
            await self.update_status(manager, problem=str(error))
            raise
        await self.update_status(manager)
        return Result(requeue_after=RESYNC)

    async def scale(self, manager: PodManager) -> None:
        """Create missing pods, delete surplus and finished ones."""
        pods = await self.pods_of(manager)
        for finished in [pod for pod in pods if is_finished(pod)]:
            await self.remove(manager, finished)
        live = [pod for pod in pods if is_live(pod)]
        live.sort(key=lambda pod: (not is_ready(pod), is_outdated(pod, manager), index_of(pod)))
        for surplus in live[manager.spec.replicas :]:
            await self.remove(manager, surplus)
        # Terminating and finished pods still hold their names.
        taken = {pod.metadata.name for pod in pods}
        wanted = (f"{manager.metadata.name}-{index}" for index in range(manager.spec.replicas))
        free = [name for name in wanted if name not in taken]
        for name in free[: max(0, manager.spec.replicas - len(live))]:
            await self.create(manager, name)

    async def roll_out(self, manager: PodManager) -> None:
        """Delete pods of another image, to be created anew: a ready one only while all others are ready, too."""
        pods = [pod for pod in await self.pods_of(manager) if is_live(pod)]
        outdated = sorted((pod for pod in pods if is_outdated(pod, manager)), key=index_of)
        ready = [pod for pod in outdated if is_ready(pod)]
        dispensable = [pod for pod in outdated if not is_ready(pod)]
        if sum(is_ready(pod) for pod in pods) >= manager.spec.replicas:
            dispensable += ready[-1:]
        for pod in dispensable:
            await self.remove(manager, pod)

    async def pods_of(self, manager: PodManager) -> list[Pod]:
        """All that exist, what this reconcile has written included."""
        return await self.client.list(Pod, namespace=manager.metadata.namespace, labels=labels_of(manager))

    async def create(self, manager: PodManager, name: str) -> Pod:
        pod = Pod(
            metadata=ObjectMeta(
                name=name,
                namespace=manager.metadata.namespace,
                labels=labels_of(manager),
                owner_references=[manager.as_owner()],
            ),
            spec=PodSpec(containers=[Container(name="app", image=manager.spec.image)]),
        )
        try:
            created = await self.client.create(pod)
        except AlreadyExists as error:
            created = await self.client.get(Pod, name, namespace=manager.metadata.namespace, consistency="live")
            if not any(owner.uid == manager.metadata.uid for owner in created.metadata.owner_references):
                self.events.warning(manager, "Failed", f"Failed to create pod {name}: {error}")
                raise
            return created
        except KubernetesError as error:
            self.events.warning(manager, "Failed", f"Failed to create pod {name}: {error}")
            raise
        self.events.normal(manager, "Created", f"Created pod {name}")
        return created

    async def remove(self, manager: PodManager, pod: Pod) -> None:
        await self.client.delete(pod, uid=pod.metadata.uid, missing_ok=True)
        self.events.normal(manager, "Deleted", f"Deleted pod {pod.metadata.name}")

    async def update_status(self, manager: PodManager, problem: str = "") -> None:
        """Report what exists after this reconcile, and the error that ended it."""
        pods = [pod for pod in await self.pods_of(manager) if is_live(pod)]
        ready = [pod for pod in pods if is_ready(pod)]
        outdated = sum(is_outdated(pod, manager) for pod in pods)
        status = manager.status
        status.current_replicas = len(pods)
        status.ready_replicas = len(ready)
        status.selector = ",".join(f"{name}={value}" for name, value in labels_of(manager).items())
        message = f"{len(ready)} of {manager.spec.replicas} pods are ready"
        message += f", {outdated} of another image" if outdated else ""
        if problem:
            set_condition(manager, is_true=False, reason="Failed", message=f"{message}: {problem}")
        elif len(ready) == manager.spec.replicas and not outdated:
            set_condition(manager, is_true=True, reason="AllPodsReady", message=message)
        else:
            set_condition(manager, is_true=False, reason="PodsNotReady", message=message)
        await self.client.status.patch(manager)  # sends what changed, and nothing when nothing did

    async def refuse(self, manager: PodManager, why: str) -> Result:
        """Report why nothing is done, and wait for a change."""
        if set_condition(manager, is_true=False, reason="Invalid", message=why):
            await self.client.status.patch(manager)
            self.events.warning(manager, "Invalid", why)
        raise TerminalError(why)

    async def clean_up(self, manager: PodManager) -> Result:
        """Let the object go when its pods are gone."""
        if FINALIZER not in manager.metadata.finalizers:
            return Result()
        pods = await self.pods_of(manager)
        for pod in pods:
            if pod.metadata.deletion_timestamp is None:
                await self.remove(manager, pod)
        if pods:
            return Result(requeue_after=1.0)
        manager.metadata.finalizers.remove(FINALIZER)
        # The lock keeps finalizers from coming back that others remove at this moment.
        await self.client.patch(manager, lock=True)
        return Result()


def labels_of(manager: PodManager) -> dict[str, str]:
    """With the uid, so that a manager created anew never adopts the pods of its predecessor."""
    return {"app": "my-app", "podmanager": manager.metadata.name, "podmanager-uid": manager.metadata.uid}


def set_condition(manager: PodManager, *, is_true: bool, reason: str, message: str) -> bool:
    """Set the condition Ready, whose time is that of its last change of status. True when something changed."""
    status = manager.status
    condition = Condition(
        type="Ready",
        status="True" if is_true else "False",
        reason=reason,
        message=message,
        observed_generation=manager.metadata.generation,
        last_transition_time=now(),
    )
    before = [present for present in status.conditions if present.type == "Ready"]
    if before and before[0].status == condition.status:
        condition.last_transition_time = before[0].last_transition_time
    status.observed_generation = manager.metadata.generation
    status.conditions = [*(present for present in status.conditions if present.type != "Ready"), condition]
    return before != [condition]


def is_finished(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None and pod.status.phase in ("Failed", "Succeeded")


def is_live(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None and not is_finished(pod)


def is_ready(pod: Pod) -> bool:
    if pod.status.phase != "Running" or pod.metadata.deletion_timestamp is not None:
        return False
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)


def is_outdated(pod: Pod, manager: PodManager) -> bool:
    return any(each.name == "app" and each.image != manager.spec.image for each in pod.spec.containers)


def index_of(pod: Pod) -> int:
    suffix = pod.metadata.name.rpartition("-")[2]
    return int(suffix) if suffix.isdecimal() else 0


def setup(manager: Manager) -> None:
    controller_for(manager, PodManager).owns(Pod).workers(4).complete(
        PodManagerReconciler(manager.client, manager.recorder("podmanager"))
    )


if __name__ == "__main__":
    run(setup, name="podmanager")
