"""A command that ends in the middle says what it has done and what is left, and goes on when it is run again."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.cli.command import command_beside
from tests.cli.ferryman import Ferryman

from kubewright import Client, ControlPlane
from kubewright.api.admissionregistration.v1 import (
    RuleWithOperations,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
    WebhookClientConfig,
)
from kubewright.api.core.v1 import ServiceAccount
from kubewright.api.meta import LabelSelector, ObjectMeta
from kubewright.cli.cluster.progress import ChangeProgress
from kubewright.client import MergePatch
from kubewright.client.wait import Field
from kubewright.deployment.operator import NAME_LABEL


@asynccontextmanager
async def held_at_the_service_account(admin: Client, project: Ferryman) -> AsyncIterator[asyncio.Event]:
    """The server does not answer to the creation of the ServiceAccount, because of a webhook that never does. The event
    is set when it waits for that.
    """
    waiting, writers = asyncio.Event(), []

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        waiting.set()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    rule = RuleWithOperations(
        api_groups=[""], api_versions=["v1"], operations=["CREATE"], resources=["serviceaccounts"]
    )
    webhook = ValidatingWebhook(
        name=f"{project.name}.cli.test",
        client_config=WebhookClientConfig(url=url),
        rules=[rule],
        object_selector=LabelSelector(match_labels={NAME_LABEL: project.name}),
        side_effects="None",
        admission_review_versions=["v1"],
        timeout_seconds=30,
    )
    made = await admin.create(
        ValidatingWebhookConfiguration(metadata=ObjectMeta(name=project.name), webhooks=[webhook])
    )
    try:
        await wait_until_called(admin, project, waiting)
        yield waiting
    finally:
        await admin.delete(made)
        for writer in writers:
            writer.close()
        server.close()


async def wait_until_called(admin: Client, project: Ferryman, waiting: asyncio.Event) -> None:
    """Return when the server calls the webhook: it may take a moment until it knows of it."""
    metadata = ObjectMeta(name="probe", namespace="default", labels={NAME_LABEL: project.name})
    called = asyncio.create_task(waiting.wait())
    async with asyncio.timeout(60):
        while not called.done():
            attempt = asyncio.create_task(admin.create(ServiceAccount(metadata=metadata), dry_run=True))
            await asyncio.wait([attempt, called], return_when=asyncio.FIRST_COMPLETED)
            attempt.cancel()
    waiting.clear()


async def started(project: Ferryman, verb: str, kubeconfig: str, *arguments: str) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kubewright", verb, project.package, "--kubeconfig", kubeconfig, *arguments),
        cwd=project.directory,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # Where tests run in the background, SIGINT is ignored, and children inherit that.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


async def ended(process: Process) -> tuple[list[str], list[str]]:
    """The lines of its output and of its errors."""
    output, errors = await asyncio.wait_for(process.communicate(), 60)
    return output.decode().splitlines(), errors.decode().splitlines()


def planned(output: list[str]) -> list[str]:
    """What a command said that it would do."""
    return [" ".join(line.split()) for line in output if line.startswith("  ")]


async def test_a_deployment_that_is_interrupted_says_how_far_it_came_and_goes_on_later(
    admin: Client, kubeconfig: str, project: Ferryman
) -> None:
    async with held_at_the_service_account(admin, project) as waiting, asyncio.timeout(120):
        process = await started(project, "deploy", kubeconfig, "--image", "ferry:1", "--no-wait")
        await waiting.wait()
        process.send_signal(signal.SIGINT)
        output, errors = await ended(process)
    first, second, third, *others = planned(output)
    assert process.returncode == 130
    assert errors == [
        "kubewright: interrupted",
        f"2 of {len(others) + 3} changes were made; the same command goes on:",
        f"  done       {first}",
        f"  done       {second}",
        f"  unknown    {third}",
        *(f"  left       {each}" for each in others),
    ]
    assert third == f"create ServiceAccount {project.namespace}/{project.name}"

    given = ["deploy", project.package, "--image", "ferry:1", "--kubeconfig", kubeconfig, "--no-wait"]
    again = await command_beside(*given, cwd=project.directory)
    assert again.code == 0, again.errors
    unchanged = again.output.count("  unchanged")
    assert unchanged >= 2
    assert again.output.endswith(f"\n{len(others) + 3 - unchanged} created, {unchanged} unchanged\n")


async def test_a_server_that_is_lost_in_the_middle_is_an_error_that_says_how_far_it_came(
    control_plane: ControlPlane, admin: Client, kubeconfig: str, project: Ferryman
) -> None:
    host, port = control_plane.url.removeprefix("https://").split(":")
    async with held_at_the_service_account(admin, project) as waiting, asyncio.timeout(120):
        async with forwarding(host, int(port)) as forwarded:
            text = Path(kubeconfig).read_text().replace(f"{host}:{port}", f"{host}:{forwarded}")
            Path(kubeconfig).write_text(text)
            process = await started(project, "deploy", kubeconfig, "--image", "ferry:1", "--no-wait")
            await waiting.wait()
        output, errors = await ended(process)
    assert process.returncode == 1
    account = f"ServiceAccount {project.namespace}/{project.name}"
    assert errors[0].startswith(f"kubewright: apply {account}: ")
    assert errors[1] == f"2 of {len(planned(output))} changes were made; the same command goes on:"
    assert f"  unknown    create {account}" in errors
    assert f"  left       create Deployment {project.namespace}/{project.name}" in errors


@asynccontextmanager
async def forwarding(host: str, port: int) -> AsyncIterator[int]:
    """A port that leads to another one, until the block ends: then its connections are cut, and it takes no more."""
    writers: list[asyncio.StreamWriter] = []

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # it was cut

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(host, port)
        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))

    server = await asyncio.start_server(forward, host, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()


async def test_a_removal_that_is_terminated_says_how_far_it_came_and_goes_on_later(
    admin: Client, kubeconfig: str, project: Ferryman
) -> None:
    async def run(verb: str, *arguments: str) -> None:
        done = await command_beside(
            verb, project.package, "--kubeconfig", kubeconfig, *arguments, cwd=project.directory
        )
        assert done.code == 0, done.errors

    await run("install")
    metadata = ObjectMeta(name="big", namespace="default", finalizers=[f"{project.group}/cleanup"])
    ferry = await admin.create(project.ferry(metadata))
    process = await started(project, "uninstall", kubeconfig, "--delete-objects")
    await admin.wait_for(ferry, Field("metadata.deletionTimestamp").satisfies(bool, "is set"), timeout=60)
    process.send_signal(signal.SIGTERM)
    _, errors = await ended(process)
    assert process.returncode == 143
    interrupted = next(index for index, line in enumerate(errors) if line.startswith("kubewright: interrupted"))
    report = errors[interrupted + 1 :]
    assert report in (
        [
            "0 of 2 changes were made; the same command goes on:",
            f"  {state}  delete 1 Ferry of {project.group}",
            f"  left       delete CustomResourceDefinition {project.definition}",
        ]
        for state in ("unknown  ", "going    ")
    )
    await admin.patch(type(ferry), "big", MergePatch({"metadata": {"finalizers": []}}), namespace="default")
    await run("uninstall", "--delete-objects")


def test_before_anything_is_changed_an_interrupt_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    progress = ChangeProgress(["create Namespace here"], 10)
    with pytest.raises(KeyboardInterrupt), progress.reported():
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "kubewright: interrupted\nnothing was changed\n"
