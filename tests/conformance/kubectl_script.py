"""Runs scripts of kubectl commands on two control planes, and compares what it prints: output and exit code.

What is never the same twice is left out: ages, times, uids, revisions, tokens, addresses, node ports and generated
suffixes, with them the widths of columns, and what the server was built with. What differs on purpose is in
`declared_differences`.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

import msgspec
from tests.conformance.declared_differences import comparable_output

from kubewright.api.core.v1 import (
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    Pod,
    PodCondition,
    PodIP,
    ServiceAccount,
)
from kubewright.api.time import now
from kubewright.client import Client
from kubewright.client.wait import exists
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.certificates import CertificateAuthority


class Step(msgspec.Struct, forbid_unknown_fields=True):
    """See the head of the file."""

    run: str = ""
    input: str = ""
    change: dict[str, str] = {}
    editor: str = ""
    compare: Literal["all", "built-in", "sorted"] = "all"
    watch: str = ""
    says: str = ""
    ready: str = ""

    def __str__(self) -> str:
        return f"(pods {self.ready} become ready)" if self.ready else f"kubectl {self.watch or self.run}"


class Book(msgspec.Struct, forbid_unknown_fields=True):
    manifests: dict[str, str]
    scripts: dict[str, list[str | Step]]
    long_scripts: dict[str, list[str | Step]]

    def manifest(self, step: Step) -> str:
        """The standard input of a step."""
        text = self.manifests[step.input] if step.input else ""
        for old, new in step.change.items():
            assert old in text, f"{step.input} has no {old!r} to change"
            text = text.replace(old, new)
        return text

    def script(self, name: str) -> list[Step]:
        """The steps of a script, of either kind."""
        steps = self.scripts.get(name) or self.long_scripts[name]
        return [Step(run=step) if isinstance(step, str) else step for step in steps]


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
        text = BOOK.manifest(step)
        async with self._started(step.run, editor=step.editor) as process:
            output, errors = await process.communicate(text.encode())
        return f"{process.returncode}\n{output.decode()}{errors.decode()}"

    async def _watch(self, step: Step) -> str:
        """What a command says that does not end by itself, before and after another one is run."""
        # Its log, which is not compared, shows when it has begun to watch.
        async with self._started(f"{step.watch} -v=6") as process:
            assert process.stdout is not None
            assert process.stderr is not None
            log = b""
            while b"watch=true" not in log:
                piece = await process.stderr.read(65536)
                assert piece, f"{step.watch} does not watch: {log.decode()}"
                log += piece
            said, ran = b"", await self.run(Step(run=step.run))
            # To the end of the line, which may come in pieces; jsonpath prints none.
            end = b"" if "jsonpath" in step.watch else b"\n"
            while step.says.encode() not in said or not said.endswith(end):
                piece = await process.stdout.read(65536)
                assert piece, f"{step.watch} ended by itself after: {said.decode()}"
                said += piece
        return f"{said.decode().rstrip()}\n{ran}"

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
        except TimeoutError:
            raise AssertionError(f"kubectl {words} did not end within 60 s") from None
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGKILL)
                await process.communicate()

    async def _make_ready(self, labels: str) -> None:
        pods = await self.client.list(Pod, labels=labels)
        for number, pod in enumerate(sorted(pods, key=lambda pod: pod.metadata.name), 1):
            running = ContainerState(running=ContainerStateRunning(started_at=now()))
            pod.status.phase = "Running"
            if pod.spec.node_name:
                pod.status.pod_ip = f"192.0.2.{number}"
                pod.status.pod_ips = [PodIP(ip=pod.status.pod_ip)]
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
    """What the two print differently, step by step."""
    found: list[str] = []
    for step in BOOK.script(script):
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
    (r"(ca\.crt: +)\d+ bytes", r"\1SIZE"),
    (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
    (r"\b(10\.0\.0|192\.0\.2)\.\d+\b", "ADDRESS"),
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
        case "built-in":
            lines = [line for line in lines if BUILT_IN.search(line) or line.isdigit()]
        case "sorted":
            lines.sort()
    return "\n".join(line.rstrip() for line in lines)
