"""`kubewright controlplane`: an API server in the foreground, until it is interrupted."""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kubewright.cli.arguments import command_parser, directory
from kubewright.cli.kubeconfig_file import kubeconfig_file, must_be_ours
from kubewright.client import Client
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.controllers import CONTROLLERS
from kubewright.controlplane.controllers.nodes import SimulatedNodes
from kubewright.controlplane.controllers.pod_simulator import PodSimulator
from kubewright.controlplane.controllers.runtime import BuiltInController
from kubewright.controlplane.controllers.scheduler import Scheduler
from kubewright.controlplane.envtest.programs import lay_down

if TYPE_CHECKING:
    from kubewright.cli.arguments import Commands

_HOST = "127.0.0.1"
_PORT = 6443


def add_command(commands: Commands) -> None:
    """Add this command to the parser."""
    parser = command_parser(
        commands,
        "controlplane",
        summary="run a Kubernetes API server here",
        description="Run a Kubernetes API server in the foreground. Ctrl-C ends it; nothing is kept.",
        examples=[
            "kubewright controlplane --kubeconfig ./kubeconfig --nodes 3",
            'eval "$(kubewright controlplane --envtest-dir bin/envtest)" && go test ./...',
        ],
    )
    parser.add_argument("--real", action="store_true", help="the genuine kube-apiserver, etcd and controller manager")
    parser.add_argument("--host", type=_host, help=f"the address to listen on (default {_HOST})")
    parser.add_argument("--port", type=_port, help=f"the port to listen on, 0 for any free one (default {_PORT})")
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        default=Path("kubeconfig"),
        metavar="FILE",
        help="where to write the admin's kubeconfig, readable only by you, until the end (default ./%(default)s)",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="overwrite FILE, or programs in DIR, although this command has not written them",
    )
    parser.add_argument(
        "--controllers",
        type=_names,
        metavar="NAME,…",
        help=f"which controllers run, separated by commas (default all: {', '.join(sorted(CONTROLLERS))})",
    )
    parser.add_argument(
        "--nodes", type=_count, default=1, help="how many simulated nodes run pods; 0 for none (default %(default)s)"
    )
    parser.add_argument(
        "--definitions",
        action="append",
        default=[],
        metavar="PATH",
        help="a file or folder of CustomResourceDefinitions to serve from the start; may be given several times",
    )
    parser.add_argument(
        "--envtest-dir",
        type=directory,
        metavar="DIR",
        help="run nothing, but lay down kube-apiserver, etcd and kubectl in DIR for envtest of Go projects, "
        "and print the KUBEBUILDER_ASSETS for them",
    )
    parser.set_defaults(run=_run)


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: expected a number from 0 to 65535")
    return int(text)


def _names(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    unknown = sorted(set(names) - CONTROLLERS.keys())
    if unknown:
        raise argparse.ArgumentTypeError(
            f"there is no controller {', '.join(unknown)} (there are: {', '.join(sorted(CONTROLLERS))})"
        )
    return names


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of nodes: expected 0, 1, 2 …")
    return int(text)


def _host(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("no address to listen on: expected one such as 127.0.0.1 or 0.0.0.0")
    return text


def _run(options: argparse.Namespace) -> None:
    if options.envtest_dir is not None:
        _lay_down(options)
        return
    if options.real and (options.host, options.port, options.controllers) != (None, None, None):
        raise SystemExit("kubewright: --real chooses host, port and controllers itself: leave those options out")
    if not options.kubeconfig.parent.is_dir():
        raise SystemExit(
            f"kubewright: there is no folder {str(options.kubeconfig.parent)!r} to write the kubeconfig to"
        )
    if not options.force:
        must_be_ours(options.kubeconfig)
    if options.real:
        real = ControlPlane.real(controller_manager=True, definitions=options.definitions)
        asyncio.run(_serve(real, options.kubeconfig, simulated=options.nodes))
        return
    host = options.host or _HOST
    plane = ControlPlane.embedded(
        host=host,
        port=_PORT if options.port is None else options.port,
        controllers=options.controllers,
        nodes=options.nodes,
        definitions=options.definitions,
    )
    asyncio.run(_serve(plane, options.kubeconfig, host=host))


def _lay_down(options: argparse.Namespace) -> None:
    given = options.host, options.port, options.controllers
    if options.real or options.definitions or given != (None, None, None):
        raise SystemExit(
            "kubewright: --envtest-dir runs no control plane: envtest chooses host, port and definitions itself, and "
            "runs no controllers: leave those options out"
        )
    directory = options.envtest_dir.absolute()
    lay_down(directory, force=options.force)
    print(f"export KUBEBUILDER_ASSETS={shlex.quote(str(directory))}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _serve(plane: ControlPlane, kubeconfig: Path, *, host: str = _HOST, simulated: int = 0) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for ending in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(ending, stop.set)
    async with plane, plane.client() as client:
        with kubeconfig_file(plane, kubeconfig):
            async with _simulation(client, simulated):
                await _announced(plane, kubeconfig, host, stop)


async def _announced(plane: ControlPlane, kubeconfig: Path, host: str, stop: asyncio.Event) -> None:
    """Print how to reach the server, and wait for the end."""
    if not _is_loopback(host):
        print(f"kubewright: listening on {host}: reachable from other machines", file=sys.stderr, flush=True)
    print(f"ready: {plane.url}", flush=True)
    print(f"try:   KUBECONFIG={kubeconfig} kubectl get namespaces", file=sys.stderr, flush=True)
    await stop.wait()


@asynccontextmanager
async def _simulation(client: Client, nodes: int) -> AsyncIterator[None]:
    """Simulated nodes and pods, for a server that has none of its own."""
    controllers: list[BuiltInController] = []
    if nodes:
        controllers = [SimulatedNodes(client, count=nodes), Scheduler(client), PodSimulator(client)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(controller.run()) for controller in controllers]
        yield
        for task in tasks:
            task.cancel()
