"""`kubewright deploy` and `undeploy`: what they show, what they change, what they wait for, and what they keep."""

from __future__ import annotations

import asyncio
import copy
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.cli.command import Done, command_beside
from tests.cli.ferryman import Ferryman

from kubewright import Client, Config, ControlPlane, Manager, Permission
from kubewright.api.admissionregistration.v1 import ValidatingWebhookConfiguration
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.apps.v1 import Deployment
from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import ConfigMap, Event, Namespace, ResourceQuota, Secret, ServiceAccount
from kubewright.api.dynamic import Dynamic
from kubewright.api.meta import ObjectMeta
from kubewright.api.owners import set_owner_reference
from kubewright.api.rbac.v1 import ClusterRole, RoleBinding
from kubewright.api.resources import Object
from kubewright.api.scheduling.v1 import PriorityClass
from kubewright.cli.cluster.labelled import kinds_of
from kubewright.cli.cluster.target import TargetCluster
from kubewright.cli.cluster.waiting import Deadline
from kubewright.client import MergePatch
from kubewright.client.wait import Field, condition, deleted, exists
from kubewright.deployment import Operator
from kubewright.testing import restricted_client

pytestmark = pytest.mark.usefixtures("nodes")


@pytest.fixture
def time_is_over(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set, it is the end of the time that every command has."""
    over, remaining = threading.Event(), vars(Deadline)["remaining"]
    monkeypatch.setattr(Deadline, "remaining", property(lambda self: 0.0 if over.is_set() else remaining.fget(self)))
    return over


@asynccontextmanager
async def running_in_the_cluster(plane: ControlPlane, admin: Client, project: Ferryman) -> AsyncIterator[None]:
    """The operator as its pods would run: as its ServiceAccount, for the Service of its webhooks."""
    await admin.wait_for(RoleBinding, project.name, exists, namespace=project.namespace, timeout=60)
    token = (await admin.token(project.name, namespace=project.namespace)).status.token
    text = admin.config.to_kubeconfig(namespace=project.namespace, token=token)
    async with Client(Config.from_kubeconfig_text(text)) as own:
        service = f"{project.namespace}/{project.name}-webhook"
        manager = Manager(own, name=project.name, webhook_address="127.0.0.1:0", webhook_service=service)
        project.imported().with_webhooks(manager)
        async with manager.running():
            yield


async def resource_versions(admin: Client, project: Ferryman) -> dict[str, str | None]:
    labels = Operator(name=project.name, image="x").labels
    found = [each for kind in kinds_of([]) for each in await admin.list(kind, labels=labels)]
    assert len(found) > 10
    # What others write: the status, and the condition of a Deployment.
    return {f"{each.kind} {each.key}": each.metadata.resource_version for each in found if each.kind != "Deployment"}


async def test_an_operator_is_deployed_does_its_work_and_goes_without_a_trace(
    control_plane: ControlPlane, admin: Client, kubeconfig: str, project: Ferryman
) -> None:
    async def run(verb: str, *arguments: str) -> Done:
        named = f"{project.package}.program:with_webhooks"
        given = [verb, named, "--kubeconfig", kubeconfig, *arguments]
        return await command_beside(*given, cwd=project.directory)

    deploying = asyncio.create_task(run("deploy", "--image", "ferry:1", "--timeout", "2m"))
    async with running_in_the_cluster(control_plane, admin, project):
        first = await deploying
        assert first.code == 0, first.errors
        context = Config.from_kubeconfig(kubeconfig).context
        assert first.output.splitlines()[0] == f"deploy {project.name} to {control_plane.url} (context {context})"
        assert f"  create     Deployment {project.namespace}/{project.name}\n" in first.output
        assert first.output.endswith("\n17 created\n")
        await control_plane.kubectl("rollout", "status", f"deployment/{project.name}", "-n", project.namespace)

        before = await resource_versions(admin, project)
        again = await run("deploy", "--image", "ferry:1")
        assert (again.code, again.output.splitlines()[-1], again.errors) == (0, "17 unchanged", "")
        assert await resource_versions(admin, project) == before

        newer = await run("deploy", "--image", "ferry:2")
        image = f"  change     Deployment {project.namespace}/{project.name}: spec.template.spec.containers[0].image\n"
        assert image in newer.output
        assert newer.output.endswith("\n1 changed, 16 unchanged\n")

        created = await admin.create(project.ferry(ObjectMeta(name="big", namespace="default")))
        await admin.wait_for(created, Field("metadata.finalizers[0]").equals(f"{project.group}/cleanup"), timeout=30)
        refused = await run("undeploy")
        assert f"  delete     CustomResourceDefinition {project.definition}: with 1 Ferry\n" in refused.output
        assert (refused.code, refused.errors) == (
            1,
            "kubewright: 1 Ferry would be deleted: confirm with --delete-objects (there is no terminal to ask on)\n",
        )
        assert await admin.find(created) is not None

        undeploying = asyncio.create_task(run("undeploy", "--delete-objects"))
        await admin.wait_for(Deployment, project.name, deleted, namespace=project.namespace, timeout=120)
    gone = await undeploying
    assert gone.code == 0, gone.errors
    # With the Ferry, and the Secret of the operator's certificates.
    assert gone.output.endswith("\n19 deleted\n")
    left = await control_plane.kubectl(
        "get", f"namespace/{project.namespace}", f"clusterrole/{project.name}", f"crd/{project.definition}", check=False
    )
    assert left.stdout == ""
    assert left.stderr.count("NotFound") == 3
    again = await run("undeploy")
    assert (again.code, again.output.splitlines()[1:]) == (0, ["  nothing of it is there"])


async def test_what_an_operator_no_longer_has_goes_and_what_others_have_is_kept(
    control_plane: ControlPlane, admin: Client, kubeconfig: str, project: Ferryman, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(verb: str, *arguments: str) -> Done:
        given = [verb, project.package, "--kubeconfig", kubeconfig, *arguments]
        return await command_beside(*given, cwd=project.directory)

    assert (await run("deploy", "--image", "ferry:1")).code == 0
    program = project.program.read_text()
    project.program.write_text(program.replace("Ferry", "Raft"))
    raft = await run("deploy", "--image", "ferry:1", "--no-wait")
    assert raft.code == 0, raft.errors
    for role in ("admin", "editor", "viewer"):
        assert f"  delete     ClusterRole {project.name}-ferry-{role}: this operator no longer has it\n" in raft.output
        assert await admin.find(ClusterRole, f"{project.name}-ferry-{role}") is None
    kept = "this operator no longer has it; delete it when its objects are not needed"
    assert f"  keep       CustomResourceDefinition {project.definition}: {kept}\n" in raft.output
    webhook = {"clientConfig": {"url": "https://127.0.0.1:1"}, "conversionReviewVersions": ["v1"]}
    converted = MergePatch({"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}})
    await admin.patch(CustomResourceDefinition, project.definition, converted)
    again = await run("deploy", "--image", "ferry:1", "--dry-run")
    fails = "and no longer converts it: requests that need another version than v1 fail"
    kept = f"this operator no longer has it, {fails}; delete it when its objects are not needed"
    assert f"  keep       CustomResourceDefinition {project.definition}: {kept}\n" in again.output

    # A kind whose names are refused has no objects, and is no reason to keep anything.
    late = await admin.get(CustomResourceDefinition, f"rafts.{project.group}")
    late.metadata, late.spec.names.plural = ObjectMeta(name=f"latecomers.{project.group}"), "latecomers"
    late = await admin.create(late)
    await admin.wait_for(late, condition("NamesAccepted", "False"))
    tried = await run("undeploy", "--keep-definitions", "--dry-run")
    assert f"  delete     Namespace {project.namespace}\n" in tried.output
    await admin.delete(late)

    # Neither what others have goes with the namespace, whatever kind it is, nor objects whose definition is kept.
    metadata = ObjectMeta(name=project.name, namespace=project.namespace)
    own = Dynamic.of(f"{project.group}/v1", "Raft")(metadata=metadata, content={"spec": {}})
    for mine in (own, ResourceQuota(metadata=metadata)):
        await admin.create(mine)
        tried = await run("undeploy", "--keep-definitions", "--dry-run")
        reason = f"it has the {mine.kind} {project.name}, which is not of this operator"
        assert f"  keep       Namespace {project.namespace}: {reason}\n" in tried.output
        await admin.delete(mine)
    # Nor what goes with an owner that is in no namespace: it would be lost, and its owner stays.
    tenant = await admin.create(PriorityClass(metadata=ObjectMeta(name=project.name), value=1))
    secret = Secret(metadata=copy.deepcopy(metadata))
    set_owner_reference(tenant, secret)
    await admin.create(secret)
    tried = await run("undeploy", "--dry-run")
    reason = f"it has the Secret {project.name}, which is of the PriorityClass {project.name}"
    assert f"  keep       Namespace {project.namespace}: {reason}\n" in tried.output
    await admin.delete(secret)
    await admin.delete(tenant)

    # Nor what they have put there since the question.
    async def created() -> None:
        async with Client(Config.from_kubeconfig(kubeconfig)) as client:
            await client.create(ConfigMap(metadata=ObjectMeta(name="mine", namespace=project.namespace)))

    with monkeypatch.context() as patch:
        patch.setattr(TargetCluster, "consent", lambda cluster, yes: asyncio.run(created()))
        undeployed = await run("undeploy", "--keep-definitions")
    assert undeployed.code == 0, undeployed.errors
    *planned, kept, count = undeployed.output.splitlines()
    assert f"  delete     Namespace {project.namespace}" in planned
    reason = "it has the ConfigMap mine, which is not of this operator"
    assert kept == f"  keep       Namespace {project.namespace}: {reason}"
    assert count == f"{len(planned) - 2} deleted"
    assert await admin.find(ConfigMap, "mine", namespace=project.namespace) is not None
    assert "CustomResourceDefinition" not in undeployed.output
    assert await admin.find(ServiceAccount, project.name, namespace=project.namespace) is None
    names = (await control_plane.kubectl("get", "crd", "-o", "name")).stdout
    assert f"crd.apiextensions.k8s.io/rafts.{project.group}".replace("crd.", "customresourcedefinition.") in names

    uninstalled = await run("uninstall")
    assert uninstalled.code == 0, uninstalled.errors
    assert uninstalled.output.endswith("\n2 deleted\n")


async def test_fields_of_others_are_a_conflict_that_names_them(
    control_plane: ControlPlane, admin: Client, kubeconfig: str, project: Ferryman
) -> None:
    async def deploy(*arguments: str) -> Done:
        given = ["deploy", project.package, "--image", "ferry:1", "--kubeconfig", kubeconfig, *arguments]
        return await command_beside(*given, cwd=project.directory)

    assert (await deploy("--no-wait")).code == 0
    name, namespace = project.name, project.namespace
    await control_plane.kubectl("scale", f"deployment/{name}", "--replicas=5", "-n", namespace)

    refused = await deploy("--no-wait")

    assert (refused.code, refused.errors) == (
        1,
        "kubewright: other managers own fields that would be changed:\n"
        f'  Deployment {namespace}/{name}: .spec.replicas: conflict with "kubectl" with subresource "scale" using '
        "apps/v1\n"
        "take them over with --force-conflicts, or let the others give them up\n",
    )
    role = await admin.get(ClusterRole, f"{name}-metrics-reader")
    role.metadata.labels = {}
    await admin.patch(role)
    refused = await deploy("--no-wait")
    assert (refused.code, refused.errors) == (
        1,
        f"kubewright: not made for {name}, by their labels: ClusterRole {name}-metrics-reader; rename what this "
        "operator has, or take them over with --force-conflicts, to be deleted with it\n",
    )
    forced = await deploy("--no-wait", "--force-conflicts")
    assert f"  change     Deployment {namespace}/{name}: spec.replicas\n" in forced.output
    assert (await admin.get(Deployment, name, namespace=namespace)).spec.replicas == 2


async def test_a_user_who_may_not_deploy_learns_all_rules(control_plane: ControlPlane, project: Ferryman) -> None:
    user = control_plane.add_user("deployer")
    file = project.directory / "user"
    file.write_text(user.kubeconfig)
    given = ["deploy", project.package, "--image", "ferry:1", "--kubeconfig", str(file)]
    done = await command_beside(*given, cwd=project.directory)
    assert done.code == 1
    for resource in ("namespaces", "customresourcedefinitions", "deployments", "clusterroles"):
        assert f'resources: ["{resource}"]\n  verbs: ["get", "list", "create", "patch", "delete"]' in done.errors
    assert f'add to its Role in the namespace "{project.namespace}":' in done.errors


async def test_what_is_not_ready_in_time_is_named_with_the_reasons_of_pods(
    control_plane: ControlPlane,
    admin: Client,
    kubeconfig: str,
    project: Ferryman,
    time_is_over: threading.Event,
) -> None:
    await admin.create(Namespace(metadata=ObjectMeta(name=project.namespace)))
    quota = f'{{"apiVersion":"v1","kind":"ResourceQuota","metadata":{{"name":"few","namespace":"{project.namespace}"}},'
    await control_plane.kubectl("create", "-f", "-", input=quota + '"spec":{"hard":{"pods":"0"}}}')
    quota_status = ("get", "resourcequota/few", "-n", project.namespace, "-o", "jsonpath={.status.hard.pods}")
    async with asyncio.timeout(60):
        while (await control_plane.kubectl(*quota_status)).stdout != "0":
            await asyncio.sleep(0.1)
    named = f"{project.package}.program:with_webhooks"
    given = ["deploy", named, "--image", "ferry:1", "--kubeconfig", kubeconfig]
    deploying = asyncio.create_task(command_beside(*given, cwd=project.directory))
    labels = Operator(name=project.name, image="x").labels
    async with asyncio.timeout(60):
        while not (  # which is applied last, and then it waits
            await admin.list(ValidatingWebhookConfiguration, labels=labels)
            and any(
                "exceeded quota" in str(each.message) for each in await admin.list(Event, namespace=project.namespace)
            )
        ):
            await asyncio.sleep(0.1)
    time_is_over.set()
    done = await deploying
    lines = done.errors.splitlines()
    assert done.code == 1
    deployment = f"Deployment {project.namespace}/{project.name}: 0 of 2 replicas are of the present version"
    assert f"waiting: {deployment}" in done.errors
    assert "kubewright: not ready after 300 s" in lines
    assert f"  {deployment}" in lines
    assert any(line.startswith("    event: ReplicaSet ") and "exceeded quota: few" in line for line in lines)
    certificate = "the operator has not put its certificate there yet"
    assert any(line.startswith("  ValidatingWebhookConfiguration ") and certificate in line for line in lines)


async def test_objects_that_are_held_by_a_finalizer_are_named_and_nothing_else_goes(
    admin: Client, kubeconfig: str, project: Ferryman, time_is_over: threading.Event
) -> None:
    """With kubebuilder's `make undeploy` the operator would be gone, and the object held for ever."""

    async def run(verb: str, *arguments: str) -> Done:
        given = [verb, project.package, "--kubeconfig", kubeconfig, *arguments]
        return await command_beside(*given, cwd=project.directory)

    assert (await run("deploy", "--image", "ferry:1")).code == 0
    metadata = ObjectMeta(name="big", namespace="default", finalizers=[f"{project.group}/cleanup"])
    ferry = await admin.create(project.ferry(metadata))
    undeploying = asyncio.create_task(run("undeploy", "--delete-objects"))
    await admin.wait_for(ferry, Field("metadata.deletionTimestamp").satisfies(bool, "is set"), timeout=60)
    time_is_over.set()
    held = await undeploying
    assert held.code == 1
    lines = held.errors.splitlines()
    assert lines[lines.index("kubewright: not gone after 300 s, and nothing else was deleted:") + 1 :][:4] == [
        f"  Ferry default/big: finalizers {project.group}/cleanup",
        "an operator removes its finalizers when it has cleaned up: let it run, see what it logs, and run this again",
        "0 of 16 changes were made; the same command goes on:",
        f"  going      delete 1 Ferry of {project.group}",
    ]
    assert await admin.find(Deployment, project.name, namespace=project.namespace) is not None
    await admin.patch(type(ferry), "big", MergePatch({"metadata": {"finalizers": []}}), namespace="default")


async def test_objects_that_no_replica_will_clean_up_after_are_a_warning(
    control_plane: ControlPlane, admin: Client, kubeconfig: str, project: Ferryman, tmp_path: Path
) -> None:
    async def run(verb: str, *arguments: str, kubeconfig: str = kubeconfig) -> Done:
        given = [verb, f"{project.package}.program:with_webhooks", "--kubeconfig", kubeconfig, *arguments]
        return await command_beside(*given, cwd=project.directory)

    of_others, of_its_own = '(ConfigMap, namespace_selector="river=styx")', '(Ferry, on=["DELETE"])'
    program = project.program.read_text().replace("Review[ConfigMap]", "Review[Ferry]")
    project.program.write_text(program.replace(of_others, of_its_own))
    assert (await run("deploy", "--image", "ferry:1", "--no-wait")).code == 0
    await admin.delete(Deployment, project.name, namespace=project.namespace)
    metadata = ObjectMeta(name="big", namespace="default", finalizers=[f"{project.group}/cleanup"])
    ferry = await admin.create(project.ferry(metadata))
    nobody = f"warning: no replica of {project.name} is ready in this cluster, and there are objects with finalizers"
    configuration = f"ValidatingWebhookConfiguration {project.name}-webhook.{project.namespace}"
    for verb in ("uninstall", "undeploy"):
        assert (await run(verb, "--dry-run")).errors == (
            f"{nobody} and the {configuration} has it asked before they are deleted: let it run, or delete the "
            "ValidatingWebhookConfiguration first\n"
        )
    # It is no reason to read more than one may.
    needed = [Permission(CustomResourceDefinition, "list"), Permission(f"{project.group}/ferries", "list")]
    async with restricted_client(control_plane, needed) as restricted:
        file = tmp_path / "restricted"
        file.write_text(restricted.config.to_kubeconfig())
        tried = await run("uninstall", "--dry-run", kubeconfig=str(file))
    assert (tried.code, tried.errors) == (0, "")
    await admin.delete(ValidatingWebhookConfiguration, f"{project.name}-webhook.{project.namespace}")
    assert (await run("uninstall", "--dry-run")).errors == (
        f"{nobody}: they go when the operator has cleaned up after them\n"
    )
    await admin.patch(type(ferry), "big", MergePatch({"metadata": {"finalizers": []}}), namespace="default")
    assert (await run("uninstall", "--dry-run")).errors == ""


async def test_objects_that_are_required_are_deployed_and_kept_with_the_definitions(
    admin: Client, kubeconfig: str, project: Ferryman
) -> None:
    """Neither a dry run nor a read of one of its own kind is possible before the definition is there, or after it."""
    first = 'Ferry(metadata=ObjectMeta(name="first", namespace="default"), spec=FerrySpec())'
    tides = 'ConfigMap(metadata=ObjectMeta(name="tides"))'
    program = project.program.read_text().replace(
        'manager.require(Permission(ConfigMap, "create"))', f"manager.require_objects({first}, {tides})"
    )
    project.program.write_text(f"from kubewright import ObjectMeta\n{program}")

    async def run(verb: str, *arguments: str) -> Done:
        given = [verb, project.package, "--kubeconfig", kubeconfig, *arguments]
        return await command_beside(*given, cwd=project.directory)

    deployed = await run("deploy", "--image", "ferry:1", "--no-wait")
    assert deployed.code == 0, deployed.errors
    assert "  create     Ferry default/first\n" in deployed.output
    assert (await run("deploy", "--image", "ferry:1", "--no-wait")).output.endswith(" unchanged\n")
    reason = "it has the ConfigMap tides, which is kept"
    kept = await run("undeploy", "--keep-definitions")
    assert f"  keep       Namespace {project.namespace}: {reason}\n" in kept.output
    assert await admin.find(ConfigMap, "tides", namespace=project.namespace) is not None
    assert await admin.find(project.ferry(ObjectMeta(name="first", namespace="default"))) is not None
    gone = await run("undeploy", "--delete-objects")
    assert gone.output.splitlines()[1:] == [
        f"  delete     CustomResourceDefinition {project.definition}: with 1 Ferry",
        f"  delete     ConfigMap {project.namespace}/tides",
        f"  delete     Namespace {project.namespace}",
        "4 deleted",
    ]
    assert (await run("undeploy")).output.endswith("\n  nothing of it is there\n")


async def test_an_operator_moves_to_another_namespace_only_when_that_is_confirmed(
    admin: Client, kubeconfig: str, project: Ferryman, namespace: str
) -> None:
    """Nobody who names another namespace expects to lose what works in the first one."""

    async def run(verb: str, *arguments: str) -> Done:
        given = [verb, project.package, "--kubeconfig", kubeconfig, *arguments]
        return await command_beside(*given, cwd=project.directory)

    assert (await run("deploy", "--image", "ferry:1")).code == 0
    here, there = project.namespace, namespace
    elsewhere = ("--image", "ferry:1", "--namespace", there)
    for further in ([], ["--dry-run"], ["--yes", "--force-conflicts"]):
        refused = await run("deploy", *elsewhere, *further)
        assert f"  delete     Deployment {here}/{project.name}: this operator no longer has it\n" in refused.output
        assert (refused.code, refused.errors) == (
            1,
            f"kubewright: {project.name} is deployed to the namespace {here}, and would be deleted there: confirm with "
            f"--move that it moves to {there}, deploy it to {here}, or give a second one another name\n",
        )
    refused = await run("undeploy", "--namespace", there)
    assert (refused.code, refused.errors) == (
        1,
        f"kubewright: {project.name} is deployed to the namespace {here}, and not to {there}: undeploy it with "
        f"--namespace {here}\n",
    )
    assert await admin.find(Deployment, project.name, namespace=here) is not None
    assert await admin.find(Deployment, project.name, namespace=there) is None

    moved = await run("deploy", *elsewhere, "--move")
    assert moved.code == 0, moved.errors
    # There are never two leaders: the pods there have ended before those here are created.
    first, *others = moved.output.splitlines()[1:]
    assert first.startswith(f"  delete     Deployment {here}/{project.name}")
    assert f"  create     Deployment {there}/{project.name}" in others
    kept = "this operator no longer has it; delete it when nothing in it is needed"
    assert f"  keep       Namespace {here}: {kept}" in others
    assert await admin.list(Deployment, labels=Operator(name=project.name, image="x").labels, namespace=here) == []
    assert (await run("undeploy")).code == 0


async def test_a_namespace_that_was_there_is_used_as_it_is_and_kept(
    admin: Client, kubeconfig: str, project: Ferryman, namespace: str
) -> None:
    """Its other pods may be beyond "restricted", as those of kube-system are."""

    async def run(verb: str, *arguments: str) -> Done:
        given = [verb, project.package, "--kubeconfig", kubeconfig, "--namespace", namespace, *arguments]
        return await command_beside(*given, cwd=project.directory)

    before = await admin.get(Namespace, namespace)
    deployed = await run("deploy", "--image", "ferry:1", "--no-wait", "--force-conflicts")
    assert deployed.code == 0, deployed.errors
    assert f"  keep       Namespace {namespace}: it was there before, and is used as it is\n" in deployed.output
    assert (await admin.get(before)).metadata.resource_version == before.metadata.resource_version
    undeployed = await run("undeploy")
    assert undeployed.code == 0, undeployed.errors
    assert f"  keep       Namespace {namespace}: it does not have the labels of this operator\n" in undeployed.output
    assert (await admin.get(before)).metadata.deletion_timestamp is None


async def test_what_the_operator_has_made_goes_from_wherever_it_is_deployed(
    admin: Client, kubeconfig: str, project: Ferryman, namespace: str
) -> None:
    async def run(verb: str, *arguments: str) -> Done:
        given = [verb, project.package, "--kubeconfig", kubeconfig, *arguments]
        return await command_beside(*given, cwd=project.directory)

    deployed = await run("deploy", "--image", "ferry:1", "--namespace", namespace)
    assert deployed.code == 0, deployed.errors
    made: list[Object] = []
    for where in (namespace, "default"):
        made.append(await admin.create(Lease(metadata=ObjectMeta(name=project.name, namespace=where))))
        metadata = ObjectMeta(name=f"{project.name}-webhook-cert", namespace=where)
        made.append(await admin.create(Secret(metadata=metadata)))
    metadata = ObjectMeta(name="big", namespace="default", finalizers=[f"{project.group}/cleanup"])
    ferry = await admin.create(project.ferry(metadata))
    # It runs there, so that there is nothing to warn of.
    assert (await run("undeploy", "--dry-run")).errors == ""
    await admin.patch(type(ferry), "big", MergePatch({"metadata": {"finalizers": []}}), namespace="default")
    undeployed = await run("undeploy", "--delete-objects")
    assert undeployed.code == 0, undeployed.errors
    lease, secret, *of_others = made
    assert [await admin.find(each) for each in (lease, secret)] == [None, None]
    # Where it is not deployed, what has these names is of others.
    again = await run("undeploy", "--namespace", "default")
    assert (again.code, again.output.splitlines()[1:]) == (
        0,
        ["  keep       Namespace default: it does not have the labels of this operator"],
    )
    for each in of_others:
        await admin.delete(each)


async def test_an_interrupt_ends_the_command_without_a_traceback(kubeconfig: str, project: Ferryman) -> None:
    named = f"{project.package}.program:with_webhooks"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kubewright", "deploy", named, "--image", "ferry:1", "--kubeconfig", kubeconfig),
        cwd=project.directory,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        # Where tests run in the background, SIGINT is ignored, and children inherit that.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    assert (await asyncio.wait_for(process.stderr.readline(), 60)).startswith(b"waiting: ")
    process.send_signal(signal.SIGINT)
    _, errors = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 130
    interrupted, report = [line for line in errors.decode().splitlines() if not line.startswith("waiting: ")]
    assert interrupted.startswith("kubewright: interrupted while waiting: ")
    assert report == "all changes were made; the same command goes on waiting"


async def test_a_definition_that_is_to_be_kept_stays_when_its_kind_is_no_longer_the_operators(
    admin: Client, kubeconfig: str, project: Ferryman
) -> None:
    async def run(*arguments: str) -> Done:
        return await command_beside(*arguments, "--kubeconfig", kubeconfig, cwd=project.directory)

    assert (await run("deploy", project.package, "--image", "ferry:1", "--no-wait")).code == 0
    own = f'@resource("{project.group}/v1")'
    external = f'@resource("{project.group}/v1", external=True)'
    project.program.write_text(project.program.read_text().replace(own, external))
    undeployed = await run("undeploy", project.package, "--keep-definitions")
    assert undeployed.code == 0, undeployed.errors
    assert project.definition not in undeployed.output
    await admin.delete(CustomResourceDefinition, project.definition)
