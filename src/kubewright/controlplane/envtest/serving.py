"""Running the embedded server with kube-apiserver's flags: no controllers, as envtest has none, until it is ended."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence

from kubewright.controlplane.embedded.endpoints.nonresource import VERSION
from kubewright.controlplane.embedded.http.asgi import Application
from kubewright.controlplane.embedded.http.serving import Serving
from kubewright.controlplane.embedded.server.assembly import assemble
from kubewright.controlplane.embedded.storage.saved import SavedStore
from kubewright.controlplane.embedded.storage.store import MemoryStore
from kubewright.controlplane.envtest.flags import FlagError, known_flags, parse_flags
from kubewright.controlplane.envtest.kube_apiserver import FLAGS
from kubewright.controlplane.envtest.options import APIServerOptions, read_options
from kubewright.controlplane.envtest.state import load_state, save_state
from kubewright.controlplane.errors import ControlPlaneError


def run(arguments: Sequence[str]) -> None:
    """Serve until SIGTERM or SIGINT. Ends the process with 1, and one line on standard error, if that is impossible."""
    try:
        flags = parse_flags(arguments, known_flags(FLAGS.read_text().splitlines()))
        if "version" in flags:
            sys.stdout.write(f"Kubernetes {VERSION['gitVersion']}\n")
            return
        options = read_options(flags)
    except FlagError as error:
        sys.exit(f"Error: {error}")
    for warning in options.warnings:
        sys.stderr.write(f"kube-apiserver: {warning}\n")
    try:
        store = asyncio.run(_serve(options, load_state(options.etcd)))
        save_state(options.etcd, SavedStore.of(store))
    except (ControlPlaneError, OSError) as error:
        sys.exit(f"kube-apiserver: {error}")


async def _serve(options: APIServerOptions, saved: SavedStore | None) -> MemoryStore:
    stop = asyncio.Event()
    for ending in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(ending, stop.set)
    assembled = assemble(
        host=options.advertised,
        port=options.port,
        tokens=options.tokens,
        signer=options.signer,
        client_ca=options.client_ca,
        options=options.server,
        saved=saved,
    )
    try:
        serving = Serving(Application(assembled.server), options.tls, options.host, options.port)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while")[0]
        raise ControlPlaneError(f"cannot listen on {options.host}, port {options.port}: {reason}") from None
    assembled.server.endpoints.url = f"https://{options.advertised}:{serving.port}"
    async with asyncio.TaskGroup() as group:
        following = group.create_task(assembled.definitions.run())
        await serving.start()
        await stop.wait()
        await serving.stop()
        following.cancel()
    return assembled.store
