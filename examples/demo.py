"""The PodManager example at work, on a control plane that this program starts and ends.

    make demo                 the embedded control plane; stays until Ctrl-C, for you to try things
    make demo REAL=1          the genuine kube-apiserver, etcd and kube-controller-manager
    make demo HEADLESS=1      without waiting; exits with 1 and says which step failed, if one does

No node of either runs containers: a scheduler and a simulation of pods do as if.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path

from operators.podmanager import PodManager, PodManagerSpec, setup

from kubewright import Client, ControlPlane, KubernetesError, Manager, ObjectMeta
from kubewright.api.codec import decode
from kubewright.api.core.v1 import Pod, ServiceAccount
from kubewright.cache import CacheEntry, WriteOrigin
from kubewright.client.wait import Field, condition, deleted, established, exists
from kubewright.controlplane import ControlPlaneError
from kubewright.controlplane.controllers.nodes import SimulatedNodes
from kubewright.controlplane.controllers.pod_simulator import PodSimulator
from kubewright.controlplane.controllers.scheduler import Scheduler
from kubewright.manager.signals import stop_on_signals
from kubewright.manifest.crd import definition_of

NAME = "my-pod-manager"
PATIENCE = 30.0

TRY = f"""
try, in another terminal:
  export KUBECONFIG={{kubeconfig}}
  kubectl get podmanagers
  kubectl get pods -l podmanager={NAME}
  kubectl delete pod {NAME}-0
  kubectl scale podmanager {NAME} --replicas 4
  kubectl events --for podmanager/{NAME}
  kubectl delete podmanager {NAME}
"""


class StepFailed(Exception):
    """Which step did not do what it should, and why."""


@contextmanager
def step(words: str) -> Generator[None]:
    """One thing that the demo does. Its errors are reported with its name."""
    say(f"\n{words}")
    try:
        yield
    except (KubernetesError, StepFailed) as error:
        raise StepFailed(f'"{words}" failed: {error}') from error


def check(holds: bool, expected: str, found: object) -> None:
    """Raise `StepFailed` unless it is so."""
    if not holds:
        raise StepFailed(f"expected {expected}, found {found}")


def say(words: str) -> None:
    print(words, flush=True)


async def demo(*, real: bool, wait: bool) -> None:
    """Everything, from the start of the control plane to its end."""
    began = time.perf_counter()
    plane = ControlPlane.real(controller_manager=True) if real else ControlPlane.embedded()
    async with plane, plane.client() as admin:
        client = admin.in_namespace("default")
        say(f"Kubernetes {plane.version} ({'real' if real else 'embedded'}) after {time.perf_counter() - began:.1f} s")
        with tempfile.TemporaryDirectory(prefix="kubewright-demo-") as folder:
            kubeconfig = plane.write_kubeconfig(Path(folder) / "kubeconfig")
            await install(client)
            manager = Manager(admin, webhook_address="0")
            setup(manager)
            simulation = [SimulatedNodes(admin).run, Scheduler(admin).run, PodSimulator(admin).run] if real else []
            async with asyncio.TaskGroup() as group:
                simulating = [group.create_task(run()) for run in simulation]
                group.create_task(manager.run())
                with printing(manager):
                    await walk(client)
                    say(TRY.format(kubeconfig=kubeconfig))
                    if wait:
                        say("Ctrl-C ends it.")
                        await asyncio.Event().wait()
                    await farewell(client)
                manager.stop()
                for task in simulating:
                    task.cancel()


async def install(client: Client) -> None:
    """What is needed before anybody can ask for a PodManager."""
    with step("install the definition of PodManager"):
        definition = await client.create(definition_of(PodManager))
        await client.wait_for(definition, established, timeout=PATIENCE)
        await client.wait_for(ServiceAccount, "default", exists, timeout=PATIENCE)


async def walk(client: Client) -> None:
    """The actions of a user of the operator, and their expected effects."""
    with step("apply a PodManager that wants 3 pods"):
        spec = PodManagerSpec(image="nginx:1.29", replicas=3)
        created = await client.apply(PodManager(metadata=ObjectMeta(name=NAME), spec=spec), field_manager="demo")
        await converged(client, created, 3)

    with step(f"delete the pod {NAME}-1 behind its back"):
        lost = await client.get(Pod, f"{NAME}-1")
        await client.delete(lost)
        another = Field("metadata.uid").satisfies(lambda uid: uid not in (None, lost.metadata.uid), "is another one")
        await client.wait_for(Pod, f"{NAME}-1", another & condition("Ready"), timeout=PATIENCE)
        await converged(client, created, 3)

    for replicas in (5, 2):
        with step(f"scale to {replicas}"):
            await client.scale(created, replicas=replicas)
            await converged(client, created, replicas)


async def converged(client: Client, created: PodManager, replicas: int) -> None:
    """Wait until the manager says that all is as wanted, and see whether it is."""
    counted = Field("status.readyReplicas").equals(replicas)
    await client.wait_for(created, condition("Ready") & counted, timeout=PATIENCE)
    wanted = {f"{NAME}-{index}" for index in range(replicas)}
    for surplus in await client.list(Pod, labels={"podmanager": NAME}):
        if surplus.metadata.name not in wanted:
            await client.wait_for(surplus, deleted, timeout=PATIENCE)
    pods = {pod.metadata.name for pod in await client.list(Pod, labels={"podmanager": NAME})}
    check(pods == wanted, f"the pods {', '.join(sorted(wanted))}", ", ".join(sorted(pods)) or "none")


async def farewell(client: Client) -> None:
    """The finalizer lets the object go when its pods are gone."""
    with step("delete the PodManager"):
        await client.delete(PodManager, NAME, missing_ok=True)
        await client.wait_for(PodManager, NAME, deleted, timeout=PATIENCE)
        left = await client.list(Pod, labels={"podmanager": NAME})
        check(not left, "no pods to be left", ", ".join(pod.metadata.name for pod in left))


@contextmanager
def printing(manager: Manager) -> Generator[None]:
    """Say what the manager sees happen to pods and to their PodManager."""
    known: dict[str, str] = {}

    def print_change(what: str, state: str) -> None:
        if known.get(what) != state:
            known[what] = state
            say(f"  {what}: {state}")

    def pod_changed(old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None) -> None:
        pod = decode(Pod, new.body) if new is not None else None
        entry = new or old
        if entry is not None and "podmanager" in entry.labels:
            print_change(f"pod {entry.key.name}", state_of(pod) if pod is not None else "gone")

    def manager_changed(old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None) -> None:
        for each in decode(PodManager, new.body).status.conditions if new is not None else ():
            print_change(f"podmanager {NAME}", f"{each.type}={each.status}, {each.message}")

    with manager.cache.watch(Pod) as pods, manager.cache.watch(PodManager) as managers:
        pods.subscribe(pod_changed)
        managers.subscribe(manager_changed)
        yield


def state_of(pod: Pod) -> str:
    if pod.metadata.deletion_timestamp is not None:
        return "terminating"
    is_ready = any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)
    return "ready" if is_ready else str(pod.status.phase).lower()


async def until_signalled(work: Coroutine[object, object, None]) -> None:
    """Run something to its end; the first Ctrl-C ends it early, but in order."""
    task = asyncio.create_task(work)

    def stop() -> None:
        task.cancel()

    async with stop_on_signals(stop):
        await asyncio.wait((task,))
    if not task.cancelled():
        task.result()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m examples.demo",
        description="Shows the PodManager example at work.",
        epilog="example: python -m examples.demo --real --headless",
    )
    parser.add_argument("--real", action="store_true", help="on the genuine kube-apiserver")
    parser.add_argument("--headless", action="store_true", help="end when all steps are done, without waiting")
    options = parser.parse_args()
    wait = not options.headless and sys.stdout.isatty()
    problems: list[str] = []
    try:
        asyncio.run(until_signalled(demo(real=options.real, wait=wait)))
    except* (StepFailed, KubernetesError, ControlPlaneError) as failures:
        problems = [str(failure) for failure in failures.exceptions]
    if problems:
        sys.exit(f"demo: {'; '.join(problems)}")
    say("\nended cleanly")


if __name__ == "__main__":
    main()
