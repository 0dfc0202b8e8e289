"""KubeVirt, CDI and Multus get installed while the operator runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from operators.conftest import AsOperator
from operators.wukong import Disk, Network, Wukong, WukongSnapshot, WukongSpec, setup
from operators.wukong.cdi import DataVolume
from operators.wukong.kubevirt import VirtualMachine
from operators.wukong.multus import NetworkAttachmentDefinition
from operators.wukong.tests.worlds import definition, verdict

from kubewright import Client, ControlPlane, Manager, ObjectMeta
from kubewright.api.storage.v1 import StorageClass
from kubewright.client import MergePatch
from kubewright.client.wait import exists
from kubewright.testing import Install, Running
from kubewright.testing.genuine import genuine_control_plane

DEFINITIONS = [definition("kubevirt"), definition("cdi"), definition("multus")]


@pytest.fixture
def real_control_plane() -> Iterator[ControlPlane]:
    """One that never had these kinds. On the one that tests share they may be there, and a busy server takes minutes
    to remove a definition: it cannot list the objects of one that nobody has read lately, and waits twice as long after
    each attempt.
    """
    with genuine_control_plane() as plane:
        yield plane


def reports(type_: str, reason: str) -> Callable[[Wukong], bool]:
    return lambda wukong: (verdict(wukong, type_) or ("", ""))[1] == reason


async def test_kinds_that_get_installed_are_used_at_once(
    admin: Client, namespace: str, install: Install, as_operator: AsOperator, running: Running
) -> None:
    """Without simulators: their storage class binds volumes that are first used, which is all that a machine needs."""
    await install(Wukong, WukongSnapshot)
    manager = Manager(await as_operator(setup), namespaces=[namespace], webhook_address="0")
    setup(manager)
    client = admin.in_namespace(namespace)
    late = StorageClass(
        metadata=ObjectMeta(name=namespace), provisioner="test.example.com", volume_binding_mode="WaitForFirstConsumer"
    )
    await admin.create(late)
    plain, root = (Disk(name="root", size="1Gi", storage_class_name=namespace, image=image) for image in (None, "a:1"))
    async with running(manager, timeout=300):
        spec = WukongSpec(cpu=1, disks=[plain], networks=[Network(name="lan", type="bridge")])
        await client.create(Wukong(metadata=ObjectMeta(name="plain"), spec=spec))
        await client.create(Wukong(metadata=ObjectMeta(name="web"), spec=WukongSpec(cpu=1, disks=[root])))
        for name, type_, reason in (
            ("plain", "NetworksConfigured", "MultusMissing"),
            ("plain", "Ready", "KubeVirtMissing"),
            ("web", "VolumesBound", "CDIMissing"),
        ):
            await client.wait_for(Wukong, name, reports(type_, reason))
        await install(*DEFINITIONS)
        # Much earlier than by the requeue of Wukongs that wait for KubeVirt or CDI, which is after 60 s.
        await client.wait_for(VirtualMachine, "plain-vm", exists, timeout=30)
        await client.wait_for(NetworkAttachmentDefinition, "plain-lan-nad", exists, timeout=30)
        await client.wait_for(DataVolume, "web-root", exists, timeout=30)
        await client.status.patch(DataVolume, "web-root", MergePatch({"status": {"phase": "WaitForFirstConsumer"}}))
        await client.wait_for(VirtualMachine, "web-vm", exists, timeout=30)
