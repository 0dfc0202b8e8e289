"""Go programs work on the embedded control plane unchanged: a client-go informer and a controller-runtime manager.

They are built once, from the sources in `go`, into the user's cache.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import ConfigMap, Namespace
from kubewright.api.dynamic import Dynamic
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.patch import MergePatch
from kubewright.client.wait import Field, deleted, established
from kubewright.controlplane.binaries import cached_directory
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.controlplane.embedded.server.faults import Chooser

_SOURCES = Path(__file__).parent / "go"
_NAMESPACE = "go-clients"
_PATIENCE = 30.0

Website = Dynamic.of("clients.example.com/v1", "Website")

_WEBSITES = from_json(
    CustomResourceDefinition,
    {
        "metadata": {"name": "websites.clients.example.com"},
        "spec": {
            "group": "clients.example.com",
            "scope": "Namespaced",
            "names": {"plural": "websites", "singular": "website", "kind": "Website", "listKind": "WebsiteList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {"type": "object", "properties": {"page": {"type": "string"}}},
                                "status": {
                                    "type": "object",
                                    "properties": {
                                        "configMap": {"type": "string"},
                                        "observedGeneration": {"type": "integer", "format": "int64"},
                                    },
                                },
                            },
                        }
                    },
                }
            ],
        },
    },
)


@pytest.fixture(scope="module")
def program() -> Path:
    """The built Go program. Without Go or its modules the tests are skipped, loudly; a failing build fails them."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("needs Go: the clients are built with it, and there is no go on the PATH")
    sources = sorted(path for path in _SOURCES.iterdir() if path.suffix in (".go", ".mod", ".sum"))
    content = hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in sources))
    # Beside the control plane's own programs.
    folder = cached_directory().parent.parent / "test-clients" / content.hexdigest()[:16]
    built = folder / "clients"
    if built.exists():
        return built
    modules = _run(go, "mod", "download")
    if modules.returncode:
        pytest.skip(f"needs Go: the modules of the clients are not there: {modules.stderr.strip()}")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as unfinished:
        # Renamed when complete, so that a build cut short is never taken for the program.
        result = _run(go, "build", "-o", str(Path(unfinished) / "clients"), ".")
        assert result.returncode == 0, result.stderr
        (Path(unfinished) / "clients").replace(built)
    return built


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=_SOURCES, capture_output=True, text=True, timeout=900, check=False)


@pytest.fixture
async def client(embedded_control_plane: EmbeddedControlPlane) -> AsyncIterator[Client]:
    """The admin, in a namespace for the Go program, with Websites defined."""
    async with embedded_control_plane.client() as admin:
        await admin.create(Namespace(metadata=ObjectMeta(name=_NAMESPACE)))
        await admin.wait_for(await admin.create(_WEBSITES), established, timeout=_PATIENCE)
        yield admin.in_namespace(_NAMESPACE)


@pytest.fixture
def kubeconfig(embedded_control_plane: EmbeddedControlPlane, tmp_path: Path) -> Path:
    return embedded_control_plane.write_kubeconfig(tmp_path / "kubeconfig")


@asynccontextmanager
async def _started(
    program: Path, command: str, kubeconfig: Path, output: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    """The program at work, with its output in a file; what it wrote is shown with any failure."""
    # Apart from the output, because client-go may log there what it thinks of a broken watch.
    log = output.with_suffix(".log")
    with output.open("wb") as printed, log.open("wb") as logged:
        process = await asyncio.create_subprocess_exec(
            program,
            command,
            _NAMESPACE,
            env=os.environ | {"KUBECONFIG": str(kubeconfig)},
            stdout=printed,
            stderr=logged,
        )
    try:
        yield process
    except BaseException as error:
        error.add_note(f"output of the Go {command}:\n{output.read_text()}{log.read_text()}")
        raise
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _website(name: str, page: str) -> Dynamic:
    return Website(metadata=ObjectMeta(name=name), content={"spec": {"page": page}})


def _requests(plane: EmbeddedControlPlane) -> list[tuple[str, str, int]]:
    """Verb, resource and status of the requests of the Go program, in order."""
    events = (event for event in plane.audit.events if event.user_agent.startswith("clients/"))
    return [(event.verb, event.resource, event.status) for event in events]


def _in_the_namespace(resource: str) -> Chooser:
    """Requests of this resource in the Go program's namespace, which spares the watches of the control plane's own."""
    return lambda target: (target.resource, target.namespace) == (resource, _NAMESPACE)


# What the informers emit, in this order, when nothing is lost and nothing comes twice.
_TOLD = [
    f"{what} {kind}{rest}"
    for kind in ("configmap", "website")
    for what, rest in [
        ("added", " before 0"),
        ("synced", ""),
        ("added", " made 1"),
        ("updated", " made 2"),
        ("deleted", " made 2"),
    ]
]


@pytest.fixture
async def present(client: Client) -> None:
    """What is there before the informers are."""
    await client.create(ConfigMap(metadata=ObjectMeta(name="before"), data={"value": "0"}))
    await client.create(_website("before", "0"))


@pytest.mark.usefixtures("present")
async def test_a_client_go_informer_syncs_by_watch_list_and_emits_every_event(
    program: Path, embedded_control_plane: EmbeddedControlPlane, kubeconfig: Path, tmp_path: Path
) -> None:
    """The typed clientset sends protobuf, the dynamic one JSON."""
    output = tmp_path / "output"
    async with _started(program, "informer", kubeconfig, output) as process:
        assert await asyncio.wait_for(process.wait(), _PATIENCE) == 0
        assert output.read_text().splitlines() == _TOLD

    assert _requests(embedded_control_plane) == [
        (verb, resource, status)
        for resource in ("configmaps", "websites")
        # No list: it is only requested when the server cannot stream it.
        for verb, status in [("watch", 200), ("create", 201), ("update", 200), ("delete", 200)]
    ]


@pytest.mark.parametrize("pieces", [1, 3], ids=["while it syncs", "after it has synced"])
@pytest.mark.usefixtures("present")
async def test_a_client_go_informer_whose_watch_breaks_emits_every_event_once(
    program: Path, embedded_control_plane: EmbeddedControlPlane, kubeconfig: Path, tmp_path: Path, pieces: int
) -> None:
    for resource in ("configmaps", "websites"):
        embedded_control_plane.faults.cut_watches(_in_the_namespace(resource), after_events=pieces)

    output = tmp_path / "output"
    async with _started(program, "informer", kubeconfig, output) as process:
        assert await asyncio.wait_for(process.wait(), 2 * _PATIENCE) == 0
        assert output.read_text().splitlines() == _TOLD

    watched = [resource for verb, resource, _ in _requests(embedded_control_plane) if verb == "watch"]
    assert watched == ["configmaps", "configmaps", "websites", "websites"]


async def test_a_controller_runtime_manager_leads_reconciles_and_owns(
    program: Path, client: Client, kubeconfig: Path, tmp_path: Path
) -> None:
    website = await client.create(_website("home", "hello"))

    async with _started(program, "manager", kubeconfig, tmp_path / "output") as process:
        await client.wait_for(website, Field("status.observedGeneration").equals(1), timeout=_PATIENCE)
        assert (await client.get(Website, "home"))["status"] == {"configMap": "home-page", "observedGeneration": 1}
        page = await client.get(ConfigMap, "home-page")
        assert page.data == {"page": "hello"}
        (owner,) = page.metadata.owner_references
        assert (owner.api_version, owner.kind, owner.name) == ("clients.example.com/v1", "Website", "home")
        assert (owner.uid, owner.controller) == (website.metadata.uid, True)
        assert (await client.get(Lease, "websites")).spec.holder_identity

        await client.patch(Website, "home", MergePatch({"spec": {"page": "bye"}}))
        await client.wait_for(website, Field("status.observedGeneration").equals(2), timeout=_PATIENCE)
        assert (await client.get(ConfigMap, "home-page")).data == {"page": "bye"}

        await client.delete(page)
        another = Field("metadata.uid").satisfies(lambda uid: uid not in (None, page.metadata.uid), "is another")
        again = await client.wait_for(ConfigMap, "home-page", another, timeout=_PATIENCE)
        assert again is not None
        assert again.data == {"page": "bye"}

        await client.delete(website)
        await client.wait_for(again, deleted, timeout=_PATIENCE)

        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), _PATIENCE) == 0
    assert not (await client.get(Lease, "websites")).spec.holder_identity
