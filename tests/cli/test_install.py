"""`kubewright install` and `uninstall`: the definitions of an operator, without the operator."""

from __future__ import annotations

import asyncio
import base64

import pytest
from tests.cli.command import Done, command_beside
from tests.cli.ferryman import Ferryman

from kubewright import Client, Config, ControlPlane
from kubewright.api.apiextensions.v1 import CustomResourceConversion, CustomResourceDefinition
from kubewright.api.meta import ObjectMeta
from kubewright.cli.cluster.target import TargetCluster
from kubewright.client import MergePatch


async def install(project: Ferryman, kubeconfig: str, *arguments: str, verb: str = "install") -> Done:
    return await command_beside(verb, project.package, "--kubeconfig", kubeconfig, *arguments, cwd=project.directory)


async def test_definitions_are_installed_once_and_deleted_with_their_objects(
    control_plane: ControlPlane, admin: Client, kubeconfig: str, project: Ferryman
) -> None:
    where = f"{control_plane.url} (context {Config.from_kubeconfig(kubeconfig).context})"
    title = f"install the definitions of {project.name} in {where}"
    tried = await install(project, kubeconfig, "--dry-run")
    assert tried == (0, f"{title}\n  create     CustomResourceDefinition {project.definition}\n", "")
    assert await admin.find(CustomResourceDefinition, project.definition) is None

    first = await install(project, kubeconfig)
    assert (first.code, first.output) == (0, f"{tried.output}1 created\n")
    # It is served: the API server takes objects.
    await admin.create(project.ferry(ObjectMeta(name="big", namespace="default")))
    before = await admin.get(CustomResourceDefinition, project.definition)
    second = await install(project, kubeconfig)
    unchanged = f"{title}\n  unchanged  CustomResourceDefinition {project.definition}\n1 unchanged\n"
    assert second == (0, unchanged, "")
    assert (await admin.get(before)).metadata.resource_version == before.metadata.resource_version

    refused = await install(project, kubeconfig, verb="uninstall")
    assert refused.output.endswith(f"\n  delete     CustomResourceDefinition {project.definition}: with 1 Ferry\n")
    assert refused.errors == (
        "kubewright: 1 Ferry would be deleted: confirm with --delete-objects (there is no terminal to ask on)\n"
    )
    gone = await install(project, kubeconfig, "--delete-objects", verb="uninstall")
    assert (gone.code, gone.output.splitlines()[-1]) == (0, "2 deleted"), gone.errors
    assert await admin.find(CustomResourceDefinition, project.definition) is None
    assert (await install(project, kubeconfig, verb="uninstall")).output.endswith("\n  nothing of it is there\n")


async def test_a_definition_of_others_is_neither_changed_nor_deleted(
    admin: Client, kubeconfig: str, project: Ferryman
) -> None:
    await install(project, kubeconfig, "--no-wait")
    found = await admin.get(CustomResourceDefinition, project.definition)
    labels, found.metadata.labels = found.metadata.labels, {}
    found = await admin.patch(found)
    refused = await install(project, kubeconfig)
    assert (refused.code, refused.errors) == (
        1,
        f"kubewright: not made for {project.name}, by their labels: CustomResourceDefinition {project.definition}; "
        "if a definition belongs to another program, write @resource(..., external=True); rename what this operator "
        "has, or take them over with --force-conflicts, to be deleted with it\n",
    )
    done = await install(project, kubeconfig, verb="uninstall")
    reason = "it does not have the labels of this operator"
    assert (done.code, done.output.splitlines()[1:]) == (
        0,
        [f"  keep       CustomResourceDefinition {project.definition}: {reason}"],
    )
    found.metadata.labels = labels
    await admin.patch(found)


CONVERSION = """
from typing import Self

from kubewright import converts


@resource("{group}/v1beta1", kind="Ferry", storage=False)
class FerryV1Beta1(Resource[FerrySpec, None]):
    def to_hub(self) -> Ferry: ...

    @classmethod
    def from_hub(cls, hub: Ferry) -> Self: ...


def converting(manager: Manager) -> None:
    setup(manager)
    serve_webhooks(manager, converts(Ferry, FerryV1Beta1))
"""


async def test_a_version_and_its_conversion_go_after_the_operator_has_put_its_authorities_there(
    admin: Client, kubeconfig: str, project: Ferryman
) -> None:
    """What is left of the webhook would be the field of another manager, with which no server takes the definition."""
    project.program.write_text(project.program.read_text() + CONVERSION.format(group=project.group))
    before = project._replace(package=f"{project.package}.program:converting")
    assert (await install(before, kubeconfig, "--no-wait")).code == 0
    assert admin.config.tls.ca is not None
    authorities = {"caBundle": base64.b64encode(admin.config.tls.ca).decode()}
    put = MergePatch({"spec": {"conversion": {"webhook": {"clientConfig": authorities}}}})
    await admin.patch(CustomResourceDefinition, project.definition, put, field_manager="kubewright")

    done = await install(project, kubeconfig)

    assert done.code == 0, done.errors
    change = f"change     CustomResourceDefinition {project.definition}: spec.versions, spec.conversion"
    assert done.output.splitlines()[1:] == [f"  {change}", "1 changed"]
    found = await admin.get(CustomResourceDefinition, project.definition)
    assert [each.name for each in found.spec.versions] == ["v1"]
    assert found.spec.conversion == CustomResourceConversion(strategy="None")
    assert (await install(project, kubeconfig)).output.endswith("\n1 unchanged\n")
    # Nothing is left that would keep it from coming back.
    again = await install(before, kubeconfig, "--no-wait")
    assert again.code == 0, again.errors


async def test_a_kind_whose_names_are_taken_is_not_waited_for(
    admin: Client, kubeconfig: str, project: Ferryman
) -> None:
    await install(project, kubeconfig)
    program = project.program.read_text()
    project.program.write_text(program.replace('/v1")', '/v1", plural="rafts")').replace("Ferry", "Raft"))
    project.program.write_text(project.program.read_text().replace('plural="rafts")', 'plural="rafts", kind="Ferry")'))
    done = await install(project, kubeconfig, "--timeout", "1h")
    assert done.code == 1
    assert done.errors.splitlines()[-1].startswith(
        f"kubewright: CustomResourceDefinition rafts.{project.group} is not served: "
    )
    assert "already in use" in done.errors


async def test_a_definition_that_the_server_does_not_accept_is_a_sentence(
    admin: Client, kubeconfig: str, project: Ferryman
) -> None:
    program = project.program.read_text().replace("FerrySpec(Model)", "FerrySpec(Model, rules=[Rule('self.nothing')])")
    project.program.write_text(f"from kubewright import Rule\n{program}")
    done = await install(project, kubeconfig)
    assert (done.code, "Traceback" in done.errors) == (1, False)
    assert done.errors.startswith(f"kubewright: apply CustomResourceDefinition {project.definition}: ")
    assert "undefined field 'nothing'" in done.errors


async def test_what_others_applied_is_taken_over_without_changing_it(
    control_plane: ControlPlane, admin: Client, kubeconfig: str, project: Ferryman
) -> None:
    await command_beside("generate", project.package, cwd=project.directory)
    await control_plane.kubectl("apply", "--server-side", "-k", str(project.directory / "config/crd"))
    done = await install(project, kubeconfig)
    assert done.output.splitlines()[1:] == [
        f"  change     CustomResourceDefinition {project.definition}: metadata.managedFields",
        "1 changed",
    ]
    assert (await install(project, kubeconfig)).output.endswith("\n1 unchanged\n")


async def test_a_definition_that_is_being_deleted_is_not_taken_for_one_that_is_there(
    admin: Client, kubeconfig: str, project: Ferryman
) -> None:
    await install(project, kubeconfig)
    metadata = ObjectMeta(name="big", namespace="default", finalizers=[f"{project.group}/cleanup"])
    ferry = await admin.create(project.ferry(metadata))
    definition = await admin.get(CustomResourceDefinition, project.definition)
    await admin.delete(definition)
    done = await install(project, kubeconfig)
    assert (done.code, done.errors) == (
        1,
        f"kubewright: CustomResourceDefinition {project.definition} is being deleted (finalizers: "
        "customresourcecleanup.apiextensions.k8s.io): run this again when it has gone\n",
    )
    await admin.patch(type(ferry), "big", MergePatch({"metadata": {"finalizers": []}}), namespace="default")


async def test_objects_that_were_created_after_the_question_are_not_deleted(
    admin: Client, kubeconfig: str, project: Ferryman, monkeypatch: pytest.MonkeyPatch
) -> None:
    await install(project, kubeconfig)
    metadata = ObjectMeta(name="late", namespace="default")

    async def created() -> None:
        async with Client(Config.from_kubeconfig(kubeconfig)) as client:
            await client.create(project.ferry(metadata))

    monkeypatch.setattr(TargetCluster, "consent", lambda cluster, yes: asyncio.run(created()))
    done = await install(project, kubeconfig, verb="uninstall")
    assert (done.code, done.errors) == (
        1,
        "kubewright: 1 Ferry created meanwhile would be deleted, such as default/late: see who does that and run this "
        "again, or confirm with --delete-objects\n",
    )
    assert await admin.find(project.ferry(metadata)) is not None


async def test_a_definition_whose_objects_cannot_be_counted_is_not_deleted(
    admin: Client, kubeconfig: str, project: Ferryman
) -> None:
    await install(project, kubeconfig)
    definition = await admin.get(CustomResourceDefinition, project.definition)
    definition.spec.versions[0].served = False
    await admin.update(definition)
    done = await install(project, kubeconfig, verb="uninstall")
    assert (done.code, done.errors) == (
        1,
        f"kubewright: CustomResourceDefinition {project.definition} serves no version, so that its objects cannot be "
        "counted: serve one, or delete it and all of its objects with kubectl\n",
    )
    assert await admin.find(definition) is not None
