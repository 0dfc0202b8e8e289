"""An operator as its users run it: a process, its output, its exit code."""

from __future__ import annotations

import asyncio
import functools
import json
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from operators.podmanager import PodManager, PodManagerSpec

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import Namespace
from kubewright.api.events.v1 import Event
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, Config, MergePatch
from kubewright.client.wait import Field, exists
from kubewright.controlplane import ControlPlane
from kubewright.manager import Manager
from kubewright.manager import run as kubewright_run
from kubewright.manifest.crd import crd_of
from kubewright.testing.namespaces import unique_name
from kubewright.version import __version__

ROOT = Path(__file__).parents[2]
QUIET = ("--health-address", "0", "--metrics-address", "0")
CONSOLE = ("--log-format", "console")
IS_CONVERGED = Field("status.readyReplicas").equals(2)


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """That of a control plane in a process of its own, which knows PodManagers."""
    path = tmp_path_factory.mktemp("plane") / "kubeconfig"
    command = [sys.executable, "-m", "kubewright", "controlplane", "--port", "0", "--kubeconfig", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("ready: ")
            asyncio.run(_install(path))
            yield path
        finally:
            process.terminate()
            process.communicate(timeout=30)


async def _install(kubeconfig: Path) -> None:
    async with Client(Config.from_kubeconfig(kubeconfig)) as client:
        await client.create(from_json(CustomResourceDefinition, crd_of(PodManager)))
        await client.wait_for(
            CustomResourceDefinition,
            "podmanagers.apps.mycompany.com",
            Field("status.conditions[1].status").equals("True"),
            timeout=30,
        )


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with Client(Config.from_kubeconfig(kubeconfig)) as client:
        yield client


@pytest.fixture
async def namespace(client: Client, request: pytest.FixtureRequest) -> str:
    created = await client.create(Namespace(metadata=ObjectMeta(name=unique_name(request.node.name))))
    return created.metadata.name


def command(program: Path | None, arguments: tuple[str | Path, ...]) -> list[str]:
    """How a program is run: by default an operator that is shipped."""
    which = ["-m", "operators.podmanager", "--webhook-address=0"] if program is None else [str(program)]
    return [sys.executable, *which, *map(str, arguments)]


def run(*arguments: str | Path, program: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(program, arguments), cwd=ROOT, capture_output=True, text=True, timeout=60)


@asynccontextmanager
async def started(*arguments: str | Path, program: Path | None = None) -> AsyncIterator[asyncio.subprocess.Process]:
    """The operator as a process that runs while the block does."""
    process = await asyncio.create_subprocess_exec(
        *command(program, arguments),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # Where tests run in the background, SIGINT is ignored, and children inherit that.
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, list[str]]:
    """Its exit code, and its lines on standard error."""
    _, errors = await asyncio.wait_for(process.communicate(), 30)
    return process.returncode, errors.decode().splitlines()


async def create(client: Client, name: str, namespace: str) -> PodManager:
    meta = ObjectMeta(name=name, namespace=namespace)
    return await client.create(PodManager(metadata=meta, spec=PodManagerSpec(image="busybox", replicas=2)))


# Its life


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
async def test_it_works_until_a_signal_and_then_ends_cleanly(
    client: Client, kubeconfig: Path, namespace: str, ending: signal.Signals
) -> None:
    mine = await create(client, "mine", namespace)
    arguments = ["--namespace", namespace, "--leader-elect", "--lease-namespace", namespace, "--log-format", "json"]
    async with started("--kubeconfig", kubeconfig, *QUIET, *arguments) as process:
        await client.wait_for(mine, IS_CONVERGED, timeout=50)
        held = await client.get(Lease, "podmanager", namespace=namespace)
        assert held.spec.holder_identity
        process.send_signal(ending)
        code, lines = await ended(process)
    assert code == 0
    # Every line is a record of the log: no traceback, no warning of Python's.
    levels = {json.loads(line)["level"] for line in lines}
    assert "info" in levels
    assert "error" not in levels
    given_back = await client.get(Lease, "podmanager", namespace=namespace)
    assert not given_back.spec.holder_identity
    reasons = {event.reason async for event in client.list(Event, namespace=namespace)}
    assert "Created" in reasons


OPTIONS = """
    from contextlib import asynccontextmanager
    from typing import Annotated
    from kubewright import Manager, Meta, Model, Permission, run
    from kubewright.api.core.v1 import ConfigMap, Secret
    from kubewright.controller import controller_for

    class Options(Model):
        zone: Annotated[str, Meta(description="where shops are")]
        limit: int = 3

    @asynccontextmanager
    async def session(name):
        print(name, "opened", flush=True)
        try:
            yield
        finally:
            print(name, "closed", flush=True)

    class Idle:
        async def reconcile(self, request): ...

    async def setup(manager: Manager, options: Options) -> None:
        print(options, flush=True)
        await manager.enter(session("first"))
        await manager.enter(session("second"))
        {then}
        controller_for(manager, ConfigMap).complete(Idle())

    run(setup, name="shops", options=Options, permissions=[Permission(Secret, "get", namespace="shop")])
"""


async def test_its_own_options_are_read_and_its_contexts_closed(kubeconfig: Path, tmp_path: Path) -> None:
    program = tmp_path / "shops.py"
    program.write_text(textwrap.dedent(OPTIONS).format(then="manager.stop()"))
    arguments = ["--zone", "eu", "--limit", "5", *QUIET]
    done = await asyncio.to_thread(run, "--kubeconfig", kubeconfig, *arguments, program=program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "Options(zone='eu', limit=5)",
        "first opened",
        "second opened",
        "second closed",
        "first closed",
    ]


MADE = """
    from functools import partial
    from kubewright import Manager, run
    from kubewright.api.core.v1 import ConfigMap
    from kubewright.controller import ControllerDefaults, controller_for

    class Idle:
        async def reconcile(self, request): ...

    def setup(manager: Manager) -> None:
        print(manager.controller_defaults.workers, manager.cache.is_strict, *manager.cache.namespaces)
        controller_for(manager, ConfigMap).complete(Idle())
        manager.stop()

    made = partial(Manager, controllers=ControllerDefaults(workers=3), strict_cache=True, namespaces=["shop"])
    run(setup, name="made", manager=made)
"""


@pytest.mark.parametrize(("flags", "namespace"), [([], "shop"), (["--namespace", "bank"], "bank")])
def test_its_manager_is_made_as_the_program_says_and_then_as_its_flags_do(
    kubeconfig: Path, tmp_path: Path, flags: list[str], namespace: str
) -> None:
    program = tmp_path / "made.py"
    program.write_text(textwrap.dedent(MADE))
    done = run("--kubeconfig", kubeconfig, *flags, *QUIET, program=program)
    assert (done.returncode, done.stdout) == (0, f"3 True {namespace}\n"), done.stderr


async def test_it_makes_its_manager_itself() -> None:
    async with Client(Config(server="http://unused.test")) as client:
        given: list[Any] = [Manager(client), {"workers": 4}]
    for made in given:
        with pytest.raises(TypeError, match=r"write manager=partial\(Manager, controllers=\.\.\.\)"):
            kubewright_run(lambda manager: None, name="made", manager=made)


async def test_a_setup_that_fails_closes_what_it_has_opened(kubeconfig: Path, tmp_path: Path) -> None:
    program = tmp_path / "shops.py"
    program.write_text(textwrap.dedent(OPTIONS).format(then="raise LookupError('no such database')"))
    done = await asyncio.to_thread(run, "--kubeconfig", kubeconfig, "--zone", "eu", *QUIET, *CONSOLE, program=program)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-2:] == ["second closed", "first closed"]
    assert done.stderr.startswith("shops: LookupError: no such database\n")


async def test_a_signal_ends_a_setup_that_waits(kubeconfig: Path, tmp_path: Path) -> None:
    program = tmp_path / "shops.py"
    program.write_text(textwrap.dedent(OPTIONS).format(then="import asyncio; await asyncio.Event().wait()"))
    async with started("--kubeconfig", kubeconfig, "--zone", "eu", *QUIET, program=program) as process:
        assert process.stdout is not None
        while b"second opened" not in await asyncio.wait_for(process.stdout.readline(), 50):
            pass
        process.terminate()
        output, errors = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, errors) == (0, b"")
    assert output.decode().splitlines() == ["second closed", "first closed"]


async def test_permissions_that_it_names_are_checked_at_the_start(
    embedded_control_plane: ControlPlane, tmp_path: Path
) -> None:
    config, program = tmp_path / "restricted", tmp_path / "shops.py"
    config.write_text(embedded_control_plane.add_user("intern").kubeconfig)
    program.write_text(textwrap.dedent(OPTIONS).format(then=""))
    done = await asyncio.to_thread(run, "--kubeconfig", config, "--zone", "eu", *QUIET, *CONSOLE, program=program)
    assert done.returncode == 1
    assert 'shops: reading secrets is not permitted: User "intern" cannot get resource "secrets"' in done.stderr


FORGETFUL = """
    from kubewright import Manager, run
    from kubewright.api.core.v1 import ConfigMap
    from kubewright.controller import controller_for

    def setup(manager: Manager) -> None:
        {body}

    run(setup, name="forgetful")
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("pass", "there is nothing to run: setup has added no controller; add one with controller_for(manager, Kind)"),
        (
            "controller_for(manager, ConfigMap)",
            "no reconciler for configmap: end controller_for(manager",
        ),
    ],
)
def test_a_mistake_in_setup_is_one_line(kubeconfig: Path, tmp_path: Path, body: str, message: str) -> None:
    program = tmp_path / "forgetful.py"
    program.write_text(textwrap.dedent(FORGETFUL).format(body=body))
    done = run("--kubeconfig", kubeconfig, *QUIET, *CONSOLE, program=program)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"forgetful: {message}")


def test_a_wrong_call_in_setup_is_reported_with_the_fix(kubeconfig: Path, tmp_path: Path) -> None:
    program = tmp_path / "forgetful.py"
    program.write_text(textwrap.dedent(FORGETFUL).format(body="controller_for(manager, ConfigMap, retries=3)"))
    done = run("--kubeconfig", kubeconfig, *QUIET, *CONSOLE, program=program)
    assert done.returncode == 1
    assert "unexpected keyword argument 'retries': write max_attempts=" in done.stderr


@pytest.mark.parametrize("name", ["My Operator", "", "-a", "Shops"])
def test_a_name_that_no_lease_could_have_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r'expected lower-case letters, digits and "-", such as "podmanager"'):
        kubewright_run(lambda manager: None, name=name, argv=[])


def test_arguments_are_a_list() -> None:
    with pytest.raises(TypeError, match=r'^run\(argv="--help"\): expected a list of arguments'):
        kubewright_run(lambda manager: None, name="shops", argv="--help")


async def test_it_is_not_called_in_an_event_loop() -> None:
    with pytest.raises(RuntimeError, match=r"call it outside of async functions, or use Client, Manager and await"):
        kubewright_run(lambda manager: None, name="shops", argv=[])


def test_a_wrong_flag_is_reported_as_json_where_the_log_is_to_be_json() -> None:
    done = run("--log-format", "json", "--unknown")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = map(json.loads, done.stderr.splitlines())
    assert (line["level"], line["msg"]) == ("critical", "unrecognized arguments: --unknown")


async def test_it_logs_its_start_its_leading_and_its_end_and_nothing_when_it_is_settled(
    client: Client, kubeconfig: Path, namespace: str, tmp_path: Path
) -> None:
    program = tmp_path / "shops.py"
    program.write_text(textwrap.dedent(OPTIONS).format(then=""))
    arguments = ["--zone", "eu", "--namespace", namespace, "--leader-elect", "--lease-namespace", namespace, *QUIET]
    async with started("--kubeconfig", kubeconfig, *arguments, "--log-format", "json", program=program) as process:
        lease = await client.wait_for(Lease, "shops", exists, namespace=namespace, timeout=50)
        assert lease is not None
        renewed = lease.spec.renew_time
        while (await client.get(Lease, "shops", namespace=namespace)).spec.renew_time == renewed:
            await asyncio.sleep(0.1)
        process.terminate()
        code, lines = await ended(process)
    assert code == 0
    begin, leading, end = map(json.loads, lines)
    assert {begin["level"], leading["level"], end["level"]} == {"info"}
    assert begin["msg"] == "shops started"
    assert begin["server"] == Config.from_kubeconfig(kubeconfig).server
    assert (begin["namespaces"], begin["controllers"]) == ([namespace], ["configmap"])
    assert (begin["kubewright"], begin["leaderElection"]) == (__version__, f"{namespace}/shops")
    assert leading["msg"] == f"leading: holding the lease {namespace}/shops"
    assert end["msg"] == "shops stopped"


STRAY = """
    import logging, threading, warnings
    from kubewright import Manager, run

    class Finalized:
        def __del__(self):
            raise LookupError("of a finalizer")

    def fails():
        raise LookupError("of a thread")

    async def work():
        warnings.warn("mind the gap")
        thread = threading.Thread(target=fails, name="helper")
        thread.start()
        thread.join()
        Finalized()
        logging.getLogger("mine").info("%d things", "no number")
        managers[0].stop()

    managers = []

    def setup(manager: Manager) -> None:
        managers.append(manager)
        manager.add(work)

    run(setup, name="stray")
"""


def test_a_log_of_json_is_json_whatever_python_has_to_report(kubeconfig: Path, tmp_path: Path) -> None:
    program = tmp_path / "stray.py"
    program.write_text(textwrap.dedent(STRAY))
    done = run("--kubeconfig", kubeconfig, *QUIET, "--log-format", "json", program=program)
    assert done.returncode == 0, done.stderr
    _, warning, thread, finalizer, unformatted, _ = map(json.loads, done.stderr.splitlines())
    assert "UserWarning: mind the gap" in warning["msg"]
    assert (thread["msg"], thread["error"]) == ("the thread helper failed", "LookupError: of a thread")
    assert finalizer["error"] == "LookupError: of a finalizer"
    assert unformatted["msg"] == "a log line could not be formatted: '%d things'"


HANGING = """
    import asyncio, time
    from kubewright import Manager, run

    async def hang():
        print("running", flush=True)
        try:
            await asyncio.Event().wait()
        finally:
            print("ending", flush=True)
            {hang}

    def setup(manager: Manager) -> None:
        manager.add(hang)

    run(setup, name="hanging")
"""


# In pieces: a signal that comes just before a single long sleep begins would not interrupt it.
BLOCK = "while True: time.sleep(0.05)"


@pytest.mark.parametrize("hang", ["await asyncio.sleep(600)", BLOCK], ids=["waits", "blocks the loop"])
async def test_a_second_signal_ends_a_program_that_does_not(kubeconfig: Path, tmp_path: Path, hang: str) -> None:
    program = tmp_path / "hanging.py"
    program.write_text(textwrap.dedent(HANGING).format(hang=hang))
    async with started("--kubeconfig", kubeconfig, *QUIET, program=program) as process:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 50) == b"running\n"
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.stdout.readline(), 30) == b"ending\n"
        assert process.returncode is None
        process.send_signal(signal.SIGTERM)
        code, lines = await ended(process)
    assert code == 1
    assert not any("Traceback" in line for line in lines)


TUNED = """
    import asyncio, gc, weakref
    from kubewright import Manager, run
    from kubewright.api.core.v1 import ConfigMap
    from kubewright.controller import controller_for

    class Cycle:
        def __init__(self):
            self.me = self

    class Passing:
        async def reconcile(self, request): ...

    gc.set_threshold({threshold})
    gc.disable()  # so that nothing is collected by accident
    cycle = weakref.ref(Cycle())
    frozen = gc.get_freeze_count()  # since Python 3.12 some are from the start

    class Looking:
        needs_leader = False

        def __init__(self, manager):
            self.manager = manager

        async def run(self):
            while gc.get_freeze_count() == frozen:
                await asyncio.sleep(0.01)
            print(gc.get_threshold()[0], cycle() is None, flush=True)
            self.manager.stop()

    def setup(manager: Manager) -> None:
        controller_for(manager, ConfigMap).complete(Passing())
        manager.add(Looking(manager))

    run(setup, name="tuned")
"""


@pytest.mark.parametrize(("threshold", "then"), [(700, 10_000), (50_000, 50_000), (0, 0)])
def test_its_garbage_collector_collects_before_it_is_frozen_and_runs_less_often_unless_the_program_chose(
    kubeconfig: Path, tmp_path: Path, threshold: int, then: int
) -> None:
    program = tmp_path / "tuned.py"
    program.write_text(textwrap.dedent(TUNED).format(threshold=threshold))
    done = run("--kubeconfig", kubeconfig, *QUIET, program=program)
    assert (done.returncode, done.stdout) == (0, f"{then} True\n")


async def test_it_exits_with_one_line_when_another_takes_its_lease(
    client: Client, kubeconfig: Path, namespace: str
) -> None:
    arguments = ["--leader-elect", "--lease-name", "mine", "--lease-namespace", namespace, "--log-format", "console"]
    async with started("--kubeconfig", kubeconfig, *QUIET, *arguments) as process:
        await client.wait_for(Lease, "mine", exists, namespace=namespace, timeout=50)
        theft = MergePatch({"spec": {"holderIdentity": "thief"}})
        await client.patch(Lease, "mine", theft, namespace=namespace)
        code, lines = await ended(process)
    assert code == 1
    assert lines[-1] == f'podmanager: the lease {namespace}/mine was taken over by "thief"'
    assert not any("Traceback" in line for line in lines)


STUBBORN = """
    import asyncio
    from kubewright import Manager, run
    from kubewright.manager.leader_election import LeaderElection

    async def stubborn():
        print("leading", flush=True)
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass

    def setup(manager: Manager) -> None:
        manager.election = LeaderElection(
            manager.live, "stubborn", namespace="{namespace}", lease_duration=4, renew_deadline=3, retry_period=1
        )
        manager.add(stubborn)

    run(setup, name="stubborn")
"""


async def test_it_exits_when_its_lease_is_over_also_when_its_work_does_not_end(
    client: Client, kubeconfig: Path, tmp_path: Path, namespace: str
) -> None:
    program = tmp_path / "stubborn.py"
    program.write_text(textwrap.dedent(STUBBORN).format(namespace=namespace))
    async with started("--kubeconfig", kubeconfig, *QUIET, "--log-format", "json", program=program) as process:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 50) == b"leading\n"
        theft = MergePatch({"spec": {"holderIdentity": "thief"}})
        await client.patch(Lease, "stubborn", theft, namespace=namespace)
        code, lines = await ended(process)
    assert code == 1
    last = json.loads(lines[-1])
    assert last["level"] == "critical"
    # The thread that watches over the loop may be the first to notice.
    assert "has to exit now" in last["msg"] or "another may lead now" in last["msg"]


async def test_only_the_namespaces_given_are_watched(client: Client, kubeconfig: Path, namespace: str) -> None:
    outside = await create(client, "outside", "default")
    inside = await create(client, "inside", namespace)
    async with started("--kubeconfig", kubeconfig, *QUIET, "--namespace", namespace) as process:
        await client.wait_for(inside, IS_CONVERGED, timeout=50)
        assert (await client.get(PodManager, "outside", namespace="default")).metadata.finalizers == []
        process.terminate()
        assert (await ended(process))[0] == 0
    await client.delete(outside)


async def test_it_serves_at_the_addresses_given(client: Client, kubeconfig: Path, namespace: str) -> None:
    ports = {kind: _free_port() for kind in ("health", "metrics", "debug")}
    flags = [part for kind, port in ports.items() for part in (f"--{kind}-address", f"127.0.0.1:{port}")]
    mine = await create(client, "mine", namespace)
    async with started("--kubeconfig", kubeconfig, *flags, "--namespace", namespace) as process:
        await client.wait_for(mine, IS_CONVERGED, timeout=50)
        assert await _get(ports["health"], "/healthz") == "ok"
        assert await _get(ports["health"], "/readyz") == "ok"
        assert 'controller_runtime_reconcile_total{controller="podmanager"' in await _get(ports["metrics"], "/metrics")
        assert list(json.loads(await _get(ports["debug"], "/debug/queues"))) == ["podmanager"]
        process.terminate()
        assert (await ended(process))[0] == 0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


async def _get(port: int, path: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    assert head.startswith(b"HTTP/1.1 200"), body
    return body.decode()


# What people do wrong


def test_a_kubeconfig_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    done = run("--kubeconfig", tmp_path / "absent.yaml", *QUIET, *CONSOLE)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("podmanager: ")
    assert str(tmp_path / "absent.yaml") in line


def test_the_last_line_of_a_log_of_json_is_json(tmp_path: Path) -> None:
    done = run("--kubeconfig", tmp_path / "absent.yaml", *QUIET, "--log-format", "json")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = map(json.loads, done.stderr.splitlines())
    assert (line["level"], line["logger"]) == ("critical", "podmanager")
    assert str(tmp_path / "absent.yaml") in line["msg"]
    assert "stacktrace" not in line


@pytest.mark.parametrize("text", ["{", "- a list", "kind: Config\ncurrent-context: nowhere\n"])
def test_a_kubeconfig_that_cannot_be_used_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "broken.yaml").write_text(text)
    done = run("--kubeconfig", tmp_path / "broken.yaml", *QUIET, *CONSOLE)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("podmanager: ")
    assert "broken.yaml" in line


def test_a_context_that_is_not_in_the_kubeconfig_is_one_line(kubeconfig: Path) -> None:
    done = run("--kubeconfig", kubeconfig, "--context", "staging", *QUIET, *CONSOLE)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("podmanager: ")
    assert '"staging"' in line


def test_a_port_that_is_taken_is_one_line(kubeconfig: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        addresses = ("--health-address", "0", "--metrics-address", f"127.0.0.1:{port}")
        done = run("--kubeconfig", kubeconfig, *addresses, *CONSOLE)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f'podmanager: cannot listen on "127.0.0.1:{port}" (')
    assert 'choose another address, or "0" to do without' in line


def test_an_invalid_address_is_one_line(kubeconfig: Path) -> None:
    done = run("--kubeconfig", kubeconfig, "--health-address", "here", *CONSOLE)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith('podmanager: "here" (')


async def test_a_server_that_cannot_be_reached_is_waited_for(
    client: Client, kubeconfig: Path, namespace: str, tmp_path: Path
) -> None:
    mine = await create(client, "mine", namespace)
    url = Config.from_kubeconfig(kubeconfig).server
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port: int = reserved.getsockname()[1]
    moved = tmp_path / "moved"
    moved.write_text(kubeconfig.read_text().replace(url, f"https://127.0.0.1:{port}"))
    async with started("--kubeconfig", moved, "--namespace", namespace, *QUIET, *CONSOLE) as process:
        assert process.stderr is not None
        line = (await asyncio.wait_for(process.stderr.readline(), 50)).decode()
        assert "WARN" in line
        assert "waiting for the API server: " in line
        assert f"127.0.0.1:{port}" in line
        async with forwarded(port, int(url.rpartition(":")[2])):
            await client.wait_for(mine, IS_CONVERGED, timeout=50)
            process.send_signal(signal.SIGTERM)
            assert (await ended(process))[0] == 0


@asynccontextmanager
async def forwarded(port: int, to: int) -> AsyncIterator[None]:
    """What connects to `port` while the block runs is connected with another one."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
        except ConnectionError:
            pass
        finally:
            writer.close()

    pumps: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", to)
        for source, target in (reader, there_writer), (there_reader, writer):
            pumps.add(asyncio.create_task(pump(source, target)))

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    try:
        yield
    finally:
        server.close()
        for task in pumps:
            task.cancel()
        if pumps:
            await asyncio.wait(pumps)


async def test_a_user_without_permissions_gets_the_whole_list(
    embedded_control_plane: ControlPlane, tmp_path: Path
) -> None:
    config = tmp_path / "restricted"
    config.write_text(embedded_control_plane.add_user("intern").kubeconfig)
    done = await asyncio.to_thread(run, "--kubeconfig", config, *QUIET, *CONSOLE)
    assert (done.returncode, done.stdout) == (1, "")
    missing, rules = done.stderr.split("add to its ClusterRole:\n")
    assert [line.partition(" is not permitted")[0] for line in missing.splitlines()] == [
        "podmanager: creating and deleting pods",
        "listing and watching podmanagers.apps.mycompany.com",
        "listing and watching pods",
        "patching podmanagers.apps.mycompany.com",
        "patching podmanagers/status.apps.mycompany.com",
    ]
    assert rules.splitlines()[3:6] == [
        '- apiGroups: ["apps.mycompany.com"]',
        '  resources: ["podmanagers"]',
        '  verbs: ["list", "watch"]',
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--unknown"], "unrecognized arguments: --unknown"),
        (["-v", "loud"], 'argument -v/--verbosity: expected a number from 0 on, found "loud"'),
        (["-v", "-3"], 'argument -v/--verbosity: expected a number from 0 on, found "-3"'),
        (["--namespace", ""], "argument --namespace: expected a name, found an empty one"),
        (["--lease-name", ""], "argument --lease-name: expected a name, found an empty one"),
    ],
)
def test_a_wrong_flag_is_answered_with_the_usage(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: podmanager ")
    assert done.stderr.splitlines()[-1] == f"podmanager: error: {message}"


def test_help_names_every_flag_and_has_an_example() -> None:
    done = run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "example: podmanager --kubeconfig ~/.kube/config --leader-elect -v 1" in done.stdout
    flags = "--kubeconfig --context --namespace --leader-elect --lease-name --lease-namespace --health-address"
    flags += " --metrics-address --metrics-secure --metrics-cert-dir --debug-address --log-format --verbosity"
    for flag in flags.split():
        assert flag in done.stdout


BROKEN = """
    import asyncio
    from kubewright import run

    async def broken():
        raise LookupError("no such thing")

    async def several():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(broken())

    run(lambda manager: manager.add(several), name="wrong")
"""


def test_an_error_of_the_program_itself_is_shown_with_its_traceback(kubeconfig: Path, tmp_path: Path) -> None:
    """One line is for those who use a program. The author of this one needs the line, not that of the task group."""
    program = tmp_path / "wrong.py"
    program.write_text(textwrap.dedent(BROKEN))
    done = run("--kubeconfig", kubeconfig, *QUIET, *CONSOLE, program=program)
    assert done.returncode == 1
    assert "\nwrong: LookupError: no such thing\n" in done.stderr
    assert 'wrong.py", line 6, in broken' in done.stderr
    assert "TaskGroup" not in done.stderr
    done = run("--kubeconfig", kubeconfig, *QUIET, "--log-format", "json", program=program)
    assert done.returncode == 1
    last = [json.loads(line) for line in done.stderr.splitlines()][-1]
    assert (last["level"], last["msg"]) == ("critical", "LookupError: no such thing")
    assert 'wrong.py", line 6, in broken' in last["stacktrace"]
