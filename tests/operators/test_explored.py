"""Whatever fails at whichever API call: every operator that comes with kubewright comes to the same end."""

from __future__ import annotations

from datetime import timedelta

from operators import builtins, devbox, podmanager, wukong
from operators.chaospod import ChaosPod, ChaosPodReconciler, ChaosPodSpec
from operators.user import Options, User
from operators.user.deployed import required_objects
from operators.user.names import KEEP_WORKSPACE
from operators.user.program import add_users
from operators.wukong import simulators
from operators.wukong.cdi import DataVolume
from operators.wukong.kubevirt import VirtualMachine, VirtualMachineInstance, claim_of
from operators.wukong.kubevirt_snapshots import VirtualMachineRestore
from operators.wukong.multus import NetworkAttachmentDefinition
from operators.wukong.types import StartStrategy

from kubewright import Field, Manager, ObjectMeta, Quantity, controller_for, now
from kubewright.api import Object
from kubewright.api.core.v1 import Container, Namespace, Pod, PodSpec, PodTemplateSpec, Secret
from kubewright.client.wait import condition, deleted
from kubewright.testing import World, explore

METADATA = ObjectMeta(name="it", namespace="default")
TEMPLATE = PodTemplateSpec(spec=PodSpec(containers=[Container(name="app", image="app:1")]))

MANAGER = podmanager.PodManager(metadata=METADATA, spec=podmanager.PodManagerSpec(image="app:1", replicas=2))
POD_SET = builtins.PodSet(metadata=METADATA, spec=builtins.PodSetSpec(replicas=2, template=TEMPLATE))
DEVBOX = devbox.Devbox(
    metadata=METADATA,
    spec=devbox.DevboxSpec(image="app:1", resource={"cpu": Quantity(1)}, network=devbox.Network(type="NodePort")),
)
WUKONG = wukong.Wukong(
    metadata=METADATA,
    spec=wukong.WukongSpec(
        cpu=1,
        disks=[wukong.Disk(name="root", size="1Gi", storage_class_name="standard", image="app:1")],
        networks=[wukong.Network(name="lan", type="bridge")],
    ),
)
CHAOS = ChaosPod(metadata=METADATA, spec=ChaosPodSpec(template=TEMPLATE))


def pods(world: World[None]) -> list[Pod]:
    return [pod for pod in world.list(Pod) if pod.metadata.deletion_timestamp is None]


async def scale_down(world: World[None]) -> None:
    await world.create(MANAGER)
    await world.wait(MANAGER, condition("Ready"))
    await world.change(MANAGER, lambda manager: setattr(manager.spec, "replicas", 1))


def test_a_pod_manager_is_scaled_whatever_fails() -> None:
    explore(
        podmanager.setup,
        kinds=[podmanager.PodManager],
        when=scale_down,
        until=lambda world: world.wait(MANAGER, condition("Ready") & Field("status.currentReplicas").equals(1)),
        always=lambda world: len(pods(world)) <= 2,
        seeds=5,
    ).same_end()


async def delete(world: World[None]) -> None:
    await world.create(MANAGER)
    await world.wait(MANAGER, condition("Ready"))
    await world.delete(MANAGER)


def test_a_pod_manager_is_deleted_whatever_fails() -> None:
    explore(
        podmanager.setup,
        kinds=[podmanager.PodManager],
        when=delete,
        until=lambda world: world.settled(),
        seeds=5,
    ).same_end()


async def create_pod_set(world: World[None]) -> None:
    await world.create(POD_SET)


def test_a_pod_set_has_its_pods_whatever_fails() -> None:
    explore(
        builtins.setup,
        kinds=[builtins.PodSet],
        when=create_pod_set,
        until=lambda world: world.wait(POD_SET, Field("status.replicas").equals(2)),
        always=lambda world: len(pods(world)) <= 2,
        seeds=5,
    ).same_end()


def set_up_chaos(manager: Manager) -> None:
    """With a pod that is not stopped while the world lasts, so that it comes to an end."""
    reconciler = ChaosPodReconciler(manager.client, manager.recorder("chaospod"), lambda: timedelta(days=1))
    controller_for(manager, ChaosPod).owns(Pod).complete(reconciler)


async def create_chaos(world: World[None]) -> None:
    await world.create(CHAOS)


def test_a_chaos_pod_runs_whatever_fails() -> None:
    explore(
        set_up_chaos,
        kinds=[ChaosPod],
        when=create_chaos,
        until=lambda world: world.wait(
            CHAOS, Field("spec.nextStop").satisfies(lambda value: value is not None, "is set")
        ),
        always=lambda world: len(pods(world)) <= 1,
        seeds=5,
    ).same_end()


USER = User(metadata=ObjectMeta(name="it"))


def set_up_users(manager: Manager) -> None:
    """Without requests, which are explored beside their tests."""
    add_users(manager, Options(), None)


# What depends on a token, which is another one in each world.
TOKENS: dict[type[Object], list[str]] = {
    Secret: ["data", "metadata.annotations"],
    User: ["status.kubeConfigSecret.hash"],
}


async def rotate(world: World[None]) -> None:
    await world.create(USER)
    await world.wait(USER, condition("Ready"))
    await world.change(USER, lambda user: setattr(user.spec, "kube_config_rotate_at", now()))


def test_a_user_has_everything_and_its_kubeconfig_is_rotated_whatever_fails() -> None:
    explore(
        set_up_users,
        kinds=[User],
        given=required_objects(),
        when=rotate,
        until=lambda world: world.wait(
            USER,
            condition("Ready") & Field("status.observedKubeConfigRotateAt").satisfies(bool, "is set"),
        ),
        ignore=TOKENS,
        seeds=5,
    ).same_end()


async def delete_user(world: World[None]) -> None:
    await world.create(USER)
    await world.wait(USER, condition("Ready"))
    await world.delete(USER)


async def delete_and_keep(world: World[None]) -> None:
    kept = User(metadata=ObjectMeta(name="it", annotations={KEEP_WORKSPACE: "true"}))
    await world.create(kept)
    await world.wait(kept, condition("Ready"))
    await world.delete(kept)


def outlives_its_workspace(world: World[None]) -> bool:
    """What was made for a User is never left behind by it."""
    names = [namespace.metadata.name for namespace in world.list(Namespace)]
    return "ns-it" not in names or bool(world.list(User))


def test_a_user_is_deleted_whatever_fails() -> None:
    explore(
        set_up_users,
        kinds=[User],
        given=required_objects(),
        when=delete_user,
        until=lambda world: world.settled(),
        always=outlives_its_workspace,
        ignore=TOKENS,
        faults=["crash-after", "lost-answer", "errors"],  # its creation is explored above
    ).same_end()


def test_a_deleted_user_leaves_its_workspace_whole_wherever_that_is_interrupted() -> None:
    explore(
        set_up_users,
        kinds=[User],
        given=required_objects(),
        when=delete_and_keep,
        until=lambda world: world.settled(),
        ignore=TOKENS,
        faults=["crash-after"],
    ).same_end()


async def stop_devbox(world: World[None]) -> None:
    await world.create(DEVBOX)
    await world.wait(DEVBOX, Field("status.phase").equals("Running"))
    await world.change(DEVBOX, lambda made: setattr(made.spec, "state", "Stopped"))


def test_a_devbox_is_stopped_and_its_content_committed_whatever_fails() -> None:
    """With the faults that leave most half done: all of them take as long as all other tests here."""
    explore(
        devbox.setup,
        kinds=[devbox.Devbox, devbox.DevBoxRelease],
        when=stop_devbox,
        until=lambda world: world.wait(DEVBOX, Field("status.phase").equals("Stopped")),
        ignore={Secret: ["data"], devbox.Devbox: ["status.network.nodePort", "status.lastContainerStatus"]},
        faults=["crash-after", "stale"],
        seeds=2,
        manager=devbox.devbox_manager,
    ).same_end()


# Addresses are made from the uid.
ADDRESSES: dict[type[Object], list[str]] = {
    wukong.Wukong: ["status.networks.*.macAddress"],
    VirtualMachine: ["spec.template.spec.domain.devices.interfaces.*.macAddress", "spec.template.metadata.annotations"],
    VirtualMachineInstance: [
        "spec.domain.devices.interfaces.*.macAddress",
        "status.interfaces.*.mac",
        "metadata.annotations",
    ],
}


def has_what_it_needs(world: World[None]) -> bool:
    """A machine is never made without its volumes and networks."""
    machines = [machine for machine in world.list(VirtualMachine) if machine.metadata.deletion_timestamp is None]
    return not machines or len(world.list(NetworkAttachmentDefinition)) == len(world.list(DataVolume)) == 1


async def delete_wukong(world: World[None]) -> None:
    await world.create(WUKONG)
    await world.wait(WUKONG, Field("status.phase").equals("Running"))
    await world.delete(WUKONG)


def test_a_wukong_runs_whatever_fails() -> None:
    explore(
        wukong.setup,
        kinds=[wukong.Wukong, wukong.WukongSnapshot, simulators.DEFINITIONS],
        others=simulators.setup,
        when=lambda world: world.create(WUKONG),
        until=lambda world: world.wait(WUKONG, Field("status.phase").equals("Running")),
        always=has_what_it_needs,
        ignore=ADDRESSES,
        faults=["crash-after", "lost-answer", "stale"],
        seeds=2,
    ).same_end()


def test_a_wukong_is_deleted_whatever_fails() -> None:
    explore(
        wukong.setup,
        kinds=[wukong.Wukong, wukong.WukongSnapshot, simulators.DEFINITIONS],
        others=simulators.setup,
        when=delete_wukong,
        until=lambda world: world.settled(),
        always=has_what_it_needs,
        ignore=ADDRESSES,
        faults=["crash-after"],
        seeds=2,
    ).same_end()


SNAPSHOT = wukong.WukongSnapshot(metadata=METADATA, spec=wukong.WukongSnapshotSpec(wukong_name="it"))
HALTED = StartStrategy(auto_start=False)
EMPTY_DISK = wukong.Disk(name="root", size="1Gi", storage_class_name="standard")
ANOTHER = wukong.Wukong(metadata=METADATA, spec=wukong.WukongSpec(cpu=1, disks=[EMPTY_DISK]))


async def restore_and_replace(world: World[None]) -> None:
    """The restored Wukong is deleted at once, before its status may know of its new claim."""
    spec = wukong.WukongSpec(cpu=1, disks=[EMPTY_DISK], volume_retention="Retain", start_strategy=HALTED)
    restored = wukong.Wukong(metadata=METADATA, spec=spec)
    await world.create(restored)
    await world.wait(restored, Field("status.phase").equals("Stopped"))
    await world.create(SNAPSHOT)
    await world.wait(SNAPSHOT, Field("status.phase").equals("Succeeded"))
    await world.change(restored, lambda found: setattr(found.spec, "restore_from_snapshot", "it"))
    complete = Field("status.complete").equals(True)
    await world.client.wait_for(VirtualMachineRestore, "it-it", complete, namespace="default")
    await world.delete(restored)
    await world.client.wait_for(wukong.Wukong, "it", deleted, namespace="default")
    await world.create(ANOTHER)


def test_the_next_wukong_of_the_name_has_the_restored_content_whatever_fails() -> None:
    explore(
        wukong.setup,
        kinds=[wukong.Wukong, wukong.WukongSnapshot, simulators.DEFINITIONS],
        others=simulators.setup,
        when=restore_and_replace,
        until=lambda world: world.wait(ANOTHER, Field("status.phase").equals("Running")),
        always=lambda world: all(is_restored(machine) for machine in world.list(VirtualMachine) if is_another(machine)),
        ignore=ADDRESSES,
        faults=["crash-after"],
    ).same_end()


def is_another(machine: VirtualMachine) -> bool:
    return machine.spec.run_strategy == "Always"


def is_restored(machine: VirtualMachine) -> bool:
    return [claim_of(volume) for volume in machine.spec.template.spec.volumes] == ["restore-it-it-root"]
