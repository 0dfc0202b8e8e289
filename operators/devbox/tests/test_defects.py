"""Each known defect of operators like this one, by its name. In virtual time."""

from __future__ import annotations

import asyncio
import subprocess
from base64 import b64decode

from operators.devbox import Devbox
from operators.devbox.names import ENV_PROFILE, labels_of
from operators.devbox.tests.world import COMMITS, LONG, devbox, running_world

from kubewright import ObjectMeta
from kubewright.api.core.v1 import (
    ConfigMap,
    Container,
    ContainerPort,
    EnvVar,
    Event,
    Pod,
    PodSpec,
    Secret,
    Service,
)
from kubewright.api.meta import OwnerReference
from kubewright.client import MergePatch
from kubewright.client.wait import Field, deleted, exists
from kubewright.patterns import get_condition
from kubewright.testing import count_requests, virtual

STATUS = "PATCH /apis/devbox.sealos.io/v1alpha2/namespaces/{namespace}/devboxes/{name}/status"


@virtual
async def test_the_first_secret_lacks_the_env_profile_that_the_pod_mounts() -> None:
    async with running_world() as world:
        await world.create()
        first = await world.admin.wait_for(Secret, "it", exists, timeout=LONG)
        assert first is not None
        pod = await world.admin.wait_for(Pod, "it", exists, timeout=LONG)
        assert pod is not None
        mounted = [item.key for each in pod.spec.volumes if each.secret is not None for item in each.secret.items]
        referenced = [
            each.value_from.secret_key_ref.key
            for each in pod.spec.containers[0].env
            if each.value_from is not None and each.value_from.secret_key_ref is not None
        ]
        assert ENV_PROFILE in mounted
        assert set(mounted + referenced) <= first.data.keys()


@virtual
async def test_env_values_are_unescaped_in_the_shell_profile() -> None:
    value = 'it\'s $(touch /tmp/devbox-owned) `id` "$HOME" \\ ; \n two'
    wanted = devbox()
    wanted.spec.config.env = [EnvVar(name="NASTY", value=value), EnvVar(name="OTHER", value="x")]
    async with running_world() as world:
        await world.create(wanted)
        await world.reaches("Running")
        profile = b64decode((await world.admin.get(Secret, "it")).data[ENV_PROFILE]).decode()
    done = subprocess.run(["sh", "-c", f'{profile}\nprintf "%s" "$NASTY"'], check=True, capture_output=True, text=True)
    assert done.stdout == value


@virtual
async def test_the_update_of_a_secret_without_data_panics() -> None:
    async with running_world() as world:
        await world.run()
        full = await world.admin.get(Secret, "it")
        await world.admin.patch(Secret, "it", MergePatch({"data": None}))
        again = await world.admin.wait_for(
            Secret, "it", Field("data").satisfies(lambda data: bool(data), "is there"), timeout=LONG
        )
        assert again is not None
        assert again.data.keys() == full.data.keys()


@virtual
async def test_only_the_first_port_of_the_service_is_kept_in_sync() -> None:
    async with running_world() as world:
        await world.run()
        first = await world.admin.get(Service, "it-svc")
        ports = [
            ContainerPort(name="devbox-ssh-port", container_port=22, protocol="TCP"),
            ContainerPort(name="web", container_port=8080),
            ContainerPort(container_port=53, protocol="UDP"),
        ]
        await world.change(lambda found: setattr(found.spec.config, "ports", ports))
        await world.at_rest()
        service = await world.admin.get(Service, "it-svc")
        assert [(each.name, each.port, each.protocol) for each in service.spec.ports] == [
            ("devbox-ssh-port", 22, "TCP"),
            ("web", 8080, "TCP"),
            ("udp-53", 53, "UDP"),
        ]
        assert service.spec.ports[0].node_port == first.spec.ports[0].node_port
        assert len({each.node_port for each in service.spec.ports}) == 3

        # By another client, and by the user.
        service.spec.ports[1].target_port = 1
        await world.admin.update(service)
        await world.change(lambda found: setattr(found.spec.config, "ports", ports[1:2]))
        devbox = await world.at_rest()
        (left,) = (await world.admin.get(Service, "it-svc")).spec.ports
        assert (left.port, left.target_port) == (8080, 8080)
        assert devbox.status.network.node_port == left.node_port


@virtual
async def test_events_are_used_as_a_work_queue_and_a_transition_is_lost_with_them() -> None:
    async with running_world() as world:
        await world.run()
        world.plane.pods.where(labels=COMMITS).behave(run=100)
        await world.set_state("Stopped")
        committing = Field("status.commitRecords").satisfies(
            lambda records: "Committing" in str(records), "has one that is committed"
        )
        await world.admin.wait_for(Devbox, "it", committing, timeout=LONG)
        await world.kill()
        await asyncio.sleep(300)  # the commit ends meanwhile
        for event in await world.admin.list(Event):
            await world.admin.delete(event, missing_ok=True)
        await world.start()
        stopped = await world.reaches("Stopped")
        assert stopped.status.state == "Stopped"
        commits = [reason for _, reason, _ in await world.events()]
        assert commits.count("CommitSucceeded") == 1


@virtual
async def test_the_status_is_written_for_each_condition_of_a_pass() -> None:
    async with running_world() as world:
        with count_requests(world.own) as requests:
            await world.run()
            await world.at_rest()
        reconciles = sum(sum(each.statistics.results.values()) for each in world.manager.controllers)
        conditions = len((await world.read()).status.conditions)
        assert requests.by_path[STATUS] <= reconciles
        # Initialised, created, scheduled, starting and running: not once for each of the conditions.
        assert requests.by_path[STATUS] <= 5 < conditions


@virtual
async def test_pods_are_found_by_labels_and_all_of_them_are_deleted_when_there_are_two() -> None:
    async with running_world() as world:
        await world.run()
        metadata = ObjectMeta(name="a-copy", namespace="default", labels=labels_of("it"))
        spec = PodSpec(containers=[Container(name="it", image="dev:1")])
        await world.admin.create(Pod(metadata=metadata, spec=spec))
        before = await world.running_pod()
        await asyncio.sleep(60)
        assert await world.names(Pod) == ["a-copy", "it"]
        assert (await world.running_pod()).metadata.uid == before.metadata.uid
        await world.set_state("Paused")
        await world.reaches("Paused")
        assert await world.names(Pod) == ["a-copy"]


@virtual
async def test_an_object_of_another_controller_is_taken_without_an_error() -> None:
    async with running_world() as world:
        other = await world.admin.create(ConfigMap(metadata=ObjectMeta(name="other", namespace="default")))
        owner = OwnerReference(
            api_version="v1", kind="ConfigMap", name="other", uid=other.metadata.uid, controller=True
        )
        metadata = ObjectMeta(name="it", namespace="default", labels=labels_of("it"), owner_references=[owner])
        await world.admin.create(Secret(metadata=metadata))
        await world.create()
        failing = await world.admin.wait_for(
            Devbox, "it", Field("status.conditions").satisfies(lambda found: "NameTaken" in str(found), "says so")
        )
        assert failing is not None
        condition = get_condition(failing, "SecretSynced")
        assert condition is not None
        assert condition.message.startswith("the Secret it exists and is not of this Devbox")
        assert (await world.admin.get(Secret, "it")).data == {}
        assert ("Warning", "NameTaken") in [(type_, reason) for type_, reason, _ in await world.events()]
        await world.admin.delete(Secret, "it")
        await world.reaches("Running")


@virtual
async def test_a_devbox_that_was_never_initialised_cannot_be_deleted() -> None:
    async with running_world() as world:
        await world.kill()
        wanted = devbox()
        wanted.metadata.finalizers = ["devbox.sealos.io/finalizer"]
        created = await world.create(wanted)
        await world.admin.delete(created)
        await world.start()
        assert await world.admin.wait_for(created, deleted, timeout=60) is None


@virtual
async def test_a_devbox_whose_commit_record_is_gone_cannot_be_deleted() -> None:
    async with running_world() as world:
        running = await world.run()
        await world.kill()
        await world.admin.status.patch(running, MergePatch({"status": {"commitRecords": None}}))
        await world.admin.delete(running)
        await world.start()
        assert await world.admin.wait_for(running, deleted, timeout=60) is None


@virtual
async def test_the_finalizer_is_dropped_while_something_still_uses_the_content() -> None:
    async with running_world(nodes=2) as world:
        node = (await world.run()).status.node
        world.plane.nodes.fail(node)
        await world.admin.delete(Devbox, "it")
        await asyncio.sleep(600)
        waiting = await world.read()
        assert waiting.metadata.finalizers == ["devbox.sealos.io/finalizer"]
        ready = get_condition(waiting, "Ready")
        assert ready is not None
        assert (waiting.status.phase, ready.status, ready.reason) == ("Pending", "False", "Terminating")
        assert ready.message == f"the pod on {node} is terminating"
        assert len(await world.claims()) == 1
        world.plane.nodes.recover(node)
        assert await world.admin.wait_for(Devbox, "it", deleted, timeout=LONG) is None
        await asyncio.sleep(60)
        assert (await world.names(Pod), await world.claims(), await world.names(Secret)) == ([], [], [])


@virtual
async def test_the_phase_is_that_of_the_pass_before() -> None:
    async with running_world() as world:
        await world.run()
        await world.at_rest()
        await world.kill()
        await world.set_state("Paused")
        await world.admin.delete(Pod, "it", grace_period=0)
        await world.start()
        await world.manager.synced()
        paused = await world.at_rest()
        assert (paused.status.phase, paused.status.state, paused.status.node) == ("Paused", "Paused", "")


@virtual
async def test_containers_that_fill_volumes_are_called_like_the_container_of_some_devboxes() -> None:
    async with running_world() as world:
        for name in ("seed", "unpack", "restore"):
            await world.create(devbox(name=name))
        for name in ("seed", "unpack", "restore"):
            await world.reaches("Running", name)
            await world.set_state("Stopped", name)
        for name in ("seed", "unpack", "restore"):
            await world.reaches("Stopped", name)
            await world.set_state("Running", name)
        for name in ("seed", "unpack", "restore"):
            await world.reaches("Running", name)
