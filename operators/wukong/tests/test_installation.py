"""KubeVirt, CDI and Multus get installed while the operator runs."""

from __future__ import annotations

from collections.abc import Callable

from operators.conftest import AsOperator
from operators.wukong import Disk, Network, Wukong, WukongSnapshot, WukongSpec, setup
from operators.wukong.cdi import DataVolume
from operators.wukong.kubevirt import VirtualMachine
from operators.wukong.multus import NetworkAttachmentDefinition
from operators.wukong.tests.conftest import release
from operators.wukong.tests.worlds import definition, verdict

from kubewright import Client, Manager, ObjectMeta
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.storage.v1 import StorageClass
from kubewright.client import MergePatch
from kubewright.client.wait import deleted, exists
from kubewright.controlplane.definitions import load_definitions
from kubewright.testing import Install, Running

DEFINITIONS = [definition("kubevirt"), definition("cdi"), definition("multus")]


async def uninstall(admin: Client) -> None:
    names = [loaded.value.metadata.name for loaded in load_definitions(DEFINITIONS)]
    for name in names:
        await admin.delete(CustomResourceDefinition, name, missing_ok=True)
    for name in names:
        await admin.wait_for(CustomResourceDefinition, name, deleted)


def reports(type_: str, reason: str) -> Callable[[Wukong], bool]:
    return lambda wukong: (verdict(wukong, type_) or ("", ""))[1] == reason


async def test_kinds_that_get_installed_are_used_at_once(
    admin: Client, namespace: str, install: Install, as_operator: AsOperator, running: Running
) -> None:
    """Without simulators: their storage class binds volumes that are first used, which is all that a machine needs."""
    await install(Wukong, WukongSnapshot)
    await uninstall(admin)
    manager = Manager(await as_operator(setup), namespaces=[namespace], webhook_address="0")
    setup(manager)
    client = admin.in_namespace(namespace)
    late = StorageClass(
        metadata=ObjectMeta(name=namespace), provisioner="test.example.com", volume_binding_mode="WaitForFirstConsumer"
    )
    await admin.create(late)
    plain, root = (Disk(name="root", size="1Gi", storage_class_name=namespace, image=image) for image in (None, "a:1"))
    async with running(manager):
        await client.create(Wukong(metadata=ObjectMeta(name="plain"), spec=WukongSpec(cpu=1, disks=[plain])))
        lan = Network(name="lan", type="bridge")
        spec = WukongSpec(cpu=1, disks=[root], networks=[lan])
        await client.create(Wukong(metadata=ObjectMeta(name="web"), spec=spec))
        for name, type_, reason in (
            ("plain", "Ready", "KubeVirtMissing"),
            ("web", "NetworksConfigured", "MultusMissing"),
            ("web", "VolumesBound", "CDIMissing"),
        ):
            await client.wait_for(Wukong, name, reports(type_, reason))
        await install(*DEFINITIONS)
        # Much earlier than by the requeue, which for a Wukong that waits for KubeVirt is after 60 s.
        await client.wait_for(VirtualMachine, "plain-vm", exists, timeout=30)
        await client.wait_for(NetworkAttachmentDefinition, "web-lan-nad", exists, timeout=30)
        await client.wait_for(DataVolume, "web-root", exists, timeout=30)
        await client.status.patch(DataVolume, "web-root", MergePatch({"status": {"phase": "WaitForFirstConsumer"}}))
        await client.wait_for(VirtualMachine, "web-vm", exists, timeout=30)
    await release(client)
    await admin.delete(late)
