"""What watchers and history cost the embedded control plane, beside the real one: memory, and CPU of fanning out."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from bench.apiserver import cpu_of, embedded_process, memory_of
from bench.figures import Figure
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, Config
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.real import RealControlPlane

WATCHES = 500
UPDATES = 40
LARGE_UPDATES = 300

_PER_WATCH, _FAN_OUT, _HISTORY = "memory of a watch", "event to one of many watchers", "300 updates of 1 MB, memory"


def run() -> list[Figure]:
    """Measure; needs the binaries. The column of the peer is kube-apiserver with etcd."""
    ours, theirs = asyncio.run(_embedded()), asyncio.run(_real())
    units = {_PER_WATCH: "KiB", _FAN_OUT: "CPU us", _HISTORY: "KiB"}
    targets = {_PER_WATCH: "", _FAN_OUT: "", _HISTORY: "at most 262,144"}
    return [
        Figure(f"{name} / kube-apiserver + etcd", ours[name], theirs[name], targets[name], units[name])
        for name in units
    ]


async def _embedded() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder, embedded_process(Path(folder) / "kubeconfig") as (pid, kubeconfig):
        config = Config.from_kubeconfig(kubeconfig)
        return await _measured(config, lambda: memory_of([pid]), lambda: cpu_of([pid]))


async def _real() -> dict[str, float]:
    async with ControlPlane.real() as plane:
        if not isinstance(plane, RealControlPlane):
            raise TypeError("ControlPlane.real() is a RealControlPlane")
        pids = [program.pid for program in plane.programs]
        config = Config.from_kubeconfig_text(plane.admin.kubeconfig)
        return await _measured(config, lambda: memory_of(pids), lambda: cpu_of(pids))


async def _measured(config: Config, memory: Callable[[], float], cpu: Callable[[], float]) -> dict[str, float]:
    figures: dict[str, float] = {}
    async with Client(config) as admin:
        client = admin.in_namespace("default")
        small = await client.create(ConfigMap(metadata=ObjectMeta(name="small"), data={"x": "y" * 500}))
        before = memory()
        watchers = _Watchers(config, small.metadata.resource_version)
        await watchers.connect()
        figures[_PER_WATCH] = (memory() - before) / WATCHES
        began = cpu()
        for number in range(UPDATES):
            small.data["n"] = str(number)
            small = await client.update(small)
            await watchers.seen(WATCHES * (number + 1))
        figures[_FAN_OUT] = (cpu() - began) / (WATCHES * UPDATES)
        watchers.close()
        large = await client.create(ConfigMap(metadata=ObjectMeta(name="large"), data={"x": "y" * 1_000_000}))
        before = memory()
        for number in range(LARGE_UPDATES):
            large.data["n"] = str(number)
            large = await client.update(large)
        figures[_HISTORY] = memory() - before
    return figures


class _Watchers:
    """Connections that each watch the same ConfigMaps."""

    def __init__(self, config: Config, revision: str) -> None:
        self._address = urlsplit(config.server)
        self._config = config
        self._head = f"GET /api/v1/namespaces/default/configmaps?watch=1&resourceVersion={revision} HTTP/1.1\r\n"
        self._tasks: list[asyncio.Task[None]] = []
        self._count = 0
        self._more = asyncio.Event()

    async def connect(self) -> None:
        credentials = await self._config.credentials.current()
        tls = self._config.tls.context(credentials.certificate)
        for _ in range(0, WATCHES, 20):
            await asyncio.gather(*(self._watch(tls) for _ in range(20)))

    async def seen(self, count: int) -> None:
        """Wait until so many events have come in all."""
        while self._count < count:
            self._more.clear()
            await self._more.wait()

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _watch(self, tls: ssl.SSLContext) -> None:
        reader, writer = await asyncio.open_connection(self._address.hostname, self._address.port, ssl=tls)
        writer.write(f"{self._head}Host: x\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        self._tasks.append(asyncio.create_task(self._read(reader, writer)))

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                if b'"type":"MODIFIED"' in line:
                    self._count += 1
                    self._more.set()
        finally:
            writer.close()
