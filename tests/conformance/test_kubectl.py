"""kubectl does the same on the embedded control plane as on the real one: same output, same exit code.

What is never the same twice is left out: ages, times, uids, revisions, tokens, addresses, node ports and generated
suffixes, with them the widths of columns, and what the server was built with. The prose of `explain` about Kubernetes'
own kinds is not ours, so only its structure is compared; that of custom kinds is compared to the letter. What differs
on purpose is in `declared_differences`.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from tests.conformance.declared_differences import comparable_output

from kubewright.api.core.v1 import (
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    Pod,
    PodCondition,
    ServiceAccount,
)
from kubewright.api.time import now
from kubewright.client import Client
from kubewright.client.wait import exists
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.binaries import find_binaries
from kubewright.controlplane.certificates import CertificateAuthority


class Step(msgspec.Struct, forbid_unknown_fields=True):
    """See the head of the file."""

    run: str = ""
    input: str = ""
    change: dict[str, str] = {}
    editor: str = ""
    compare: Literal["all", "structure", "built-in", "sorted"] = "all"
    watch: str = ""
    says: str = ""
    ready: str = ""

    def __str__(self) -> str:
        return f"(pods {self.ready} become ready)" if self.ready else f"kubectl {self.watch or self.run}"


class Book(msgspec.Struct, forbid_unknown_fields=True):
    manifests: dict[str, str]
    scripts: dict[str, list[str | Step]]


BOOK = msgspec.yaml.decode(Path(__file__).with_name("kubectl_steps.yaml").read_bytes(), type=Book)

# Every server has these; other tests add kinds of their own to a server that they share with this one.
_GROUP = r"(apps|batch|autoscaling|policy|[a-z.]+\.k8s\.io)"
BUILT_IN = re.compile(rf"(^|\s)(v1|{_GROUP}/v\d\w*)(\s|$)|^[a-z]+(\.{_GROUP})?$")
READING = ("get", "describe", "events", "rollout history")


class Kubectl:
    """One kubectl, configured for one control plane."""

    def __init__(
        self, program: str | Path, plane: ControlPlane, client: Client, directory: Path, namespace: str
    ) -> None:
        self.client = client
        self._program = program
        self._namespace = namespace
        self._directory = directory
        config = plane.write_kubeconfig(directory / "kubeconfig")
        # Nothing of the person at the keyboard.
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "KUBECONFIG": str(config),
            "KUBERC": "off",
            "TMPDIR": str(directory),
        }

    async def run(self, step: Step) -> str:
        """Its output and exit code."""
        if step.ready:
            await self._make_ready(step.ready)
            return ""
        if step.watch:
            return await self._watch(step)
        text = self._manifest(step)
        async with self._started(step.run, editor=step.editor) as process:
            output, errors = await process.communicate(text.encode())
        return f"{process.returncode}\n{output.decode()}{errors.decode()}"

    async def _watch(self, step: Step) -> str:
        """What a command says that does not end by itself, before and after another one is run."""
        async with self._started(step.watch) as process:
            assert process.stdout is not None
            said = await process.stdout.read(65536)
            ran = await self.run(Step(run=step.run))
            while step.says.encode() not in said:
                piece = await process.stdout.read(65536)
                assert piece, f"{step.watch} ended by itself after: {said.decode()}"
                said += piece
        return f"{said.decode()}\n{ran}"

    @asynccontextmanager
    async def _started(self, words: str, *, editor: str = "") -> AsyncIterator[asyncio.subprocess.Process]:
        process = await asyncio.create_subprocess_exec(
            self._program,
            "-n",
            self._namespace,
            *shlex.split(
                words.replace("$NAMESPACE", self._namespace).replace("$DIRECTORY", str(self._directory.parent))
            ),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._environment | {"KUBE_EDITOR": editor},
        )
        try:
            async with asyncio.timeout(60):
                yield process
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGKILL)
                await process.communicate()

    def _manifest(self, step: Step) -> str:
        text = BOOK.manifests[step.input] if step.input else ""
        for old, new in step.change.items():
            assert old in text, f"{step.input} has no {old!r} to change"
            text = text.replace(old, new)
        return text

    async def _make_ready(self, labels: str) -> None:
        for pod in await self.client.list(Pod, labels=labels):
            running = ContainerState(running=ContainerStateRunning(started_at=now()))
            pod.status.phase = "Running"
            pod.status.conditions = [
                PodCondition(type=name, status="True", last_transition_time=now())
                for name in ("Initialized", "ContainersReady", "Ready")
            ]
            pod.status.container_statuses = [
                ContainerStatus(
                    name=one.name, image=one.image or "", image_id="", ready=True, restart_count=0, state=running
                )
                for one in pod.spec.containers
            ]
            await self.client.status.update(pod)


@asynccontextmanager
async def both(
    program: str | Path, planes: tuple[ControlPlane, ControlPlane], namespace: str, directory: Path
) -> AsyncIterator[tuple[Kubectl, Kubectl]]:
    """kubectl for each of the two, in a new namespace."""
    pair = CertificateAuthority().client("anybody", ())
    (directory / "tls.crt").write_text(pair.certificate)
    (directory / "tls.key").write_text(pair.key)
    async with AsyncExitStack() as stack:
        made = []
        for number, plane in enumerate(planes):
            folder = directory / str(number)
            folder.mkdir()
            client = (await stack.enter_async_context(plane.client())).in_namespace(namespace)
            kubectl = Kubectl(program, plane, client, folder, namespace)
            await kubectl.run(Step(run=f"create namespace {namespace}"))
            stack.push_async_callback(kubectl.run, Step(run=f"delete namespace {namespace} --wait=false"))
            await client.wait_for(ServiceAccount, "default", exists, timeout=60)
            made.append(kubectl)
        yield made[0], made[1]


async def differences(script: str, pair: tuple[Kubectl, Kubectl]) -> list[str]:
    found: list[str] = []
    for step in BOOK.scripts[script]:
        step = Step(run=step) if isinstance(step, str) else step
        ours, theirs = await _said_by(pair, step)
        assert step.compare == "all" or len(ours.splitlines()) > 2, f"nothing is left of {step} to compare"
        if ours != theirs:
            found.append(f"{step}\n--- embedded\n{ours}\n--- real\n{theirs}\n")
    return found


async def _said_by(pair: tuple[Kubectl, Kubectl], step: Step) -> tuple[str, str]:
    """What both say; for a while again and again when it only shows what controllers have not brought about yet."""
    deadline = asyncio.get_running_loop().time() + 10
    while True:
        ours, theirs = [
            _comparable(said, step) for said in await asyncio.gather(*(kubectl.run(step) for kubectl in pair))
        ]
        is_final = not step.run.startswith(READING) or step.watch
        if ours == theirs or is_final or asyncio.get_running_loop().time() > deadline:
            return ours, theirs


@pytest.mark.parametrize("script", BOOK.scripts)
async def test_kubectl_prints_the_same_on_both(
    embedded_control_plane: ControlPlane, real_control_plane: ControlPlane, script: str, tmp_path: Path
) -> None:
    planes = embedded_control_plane, real_control_plane
    program = find_binaries(controller_manager=False).kubectl
    async with both(program, planes, f"kubectl-{script}", tmp_path) as pair:
        found = await differences(script, pair)

    assert not found, f"{len(found)} of {len(BOOK.scripts[script])} differ:\n" + "\n".join(found)


@pytest.mark.parametrize("script", ["objects", "custom"])
async def test_another_kubectl_prints_the_same_on_both(
    embedded_control_plane: ControlPlane,
    real_control_plane: ControlPlane,
    script: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Older clients ask in other ways. Whichever kubectl is installed is taken."""
    program = shutil.which("kubectl")
    if program is None:
        reason = "there is no kubectl on the PATH: the embedded control plane was NOT compared with another kubectl"
        with capsys.disabled():
            print(f"\n{reason}")  # noqa: T201  # a skip alone is easily overlooked
        pytest.skip(reason)
    planes = embedded_control_plane, real_control_plane
    async with both(program, planes, f"other-kubectl-{script}", tmp_path) as pair:
        found = await differences(script, pair)

    assert not found, f"{len(found)} of {len(BOOK.scripts[script])} differ:\n" + "\n".join(found)


# What is never the same twice

_LETTERS = "[bcdfghjklmnpqrstvwxz2456789]"
_PATTERNS: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000", "TIME"),
    (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000", "TIME"),
    (r"[EW]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ", "LOG "),
    (r'(resourceVersion\\?"?: ?)\\?"\d+\\?"', r"\1REVISION"),
    (r"(Resource Version: +)\d+", r"\1REVISION"),
    (r"\b(\d+[dhms]){1,2}\b|<invalid>", "AGE"),
    (r"/\S+/(kubectl|LIVE|MERGED)[-\w./]*", "FILE"),
    (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
    (r"\b10\.0\.0\.\d+\b", "ADDRESS"),
    (r"127\.0\.0\.1:\d+", "SERVER"),
    (r"([: ])3\d{4}/(TCP|UDP)", r"\1NODEPORT/\2"),
    # What the server was built from, with and for.
    (r'("(gitCommit|goVersion|compiler|platform)": )"[^"]*"', r"\1BUILD"),
    (rf"-{_LETTERS}{{6,10}}\b", "-HASH"),
    (rf"(pod-template-hash\W+){_LETTERS}{{6,10}}\b", r"\1HASH"),
    (rf"-{_LETTERS}{{5}}\b", "-SUFFIX"),
    (r"\.[0-9a-f]{16}\b", ".MOMENT"),
    (r" +", " "),
]


def _comparable(said: str, step: Step) -> str:
    said = comparable_output(said)
    for pattern, replacement in _PATTERNS:
        said = re.sub(pattern, replacement, said)
    lines = said.splitlines()
    match step.compare:
        case "structure":
            # Names and types of fields, and what kind they are of.
            lines = [
                line
                for line in lines
                if re.match(r"[A-Z]+:\s*\S|\d+$|\s+enum:|.*\t<", line) and "DESCRIPTION" not in line
            ]
        case "built-in":
            lines = [line for line in lines if BUILT_IN.search(line) or line.isdigit()]
        case "sorted":
            lines.sort()
    return "\n".join(line.rstrip() for line in lines)
