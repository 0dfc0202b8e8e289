"""The scripted server of bench/peers: it makes up its Widgets, so that any number of them costs the machine little."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.http import fixtures


class ScriptedServer:
    """A server that runs, and the kubeconfig that leads to it."""

    def __init__(self, process: asyncio.subprocess.Process, kubeconfig: Path) -> None:
        self._process = process
        self.kubeconfig = kubeconfig

    async def emit(self, rate: int, total: int) -> float:
        """Change `total` Widgets in turn, `rate` per second, and return the rate that was kept."""
        if self._process.stdin is None:
            raise TypeError("the server has an input")
        began = time.monotonic()
        self._process.stdin.write(f"emit {rate} {total}\n".encode())
        if await _line(self._process) != "emitted":
            raise RuntimeError("the scripted server ended")
        return total / (time.monotonic() - began)


@asynccontextmanager
async def scripted_server(binary: Path, directory: Path, count: int) -> AsyncIterator[ScriptedServer]:
    """A server that has `count` Widgets of 3 KB, for as long as the block lasts."""
    fixtures.write(directory)
    process = await asyncio.create_subprocess_exec(
        binary, directory, str(count), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        kubeconfig = directory / "scripted.yaml"
        kubeconfig.write_text(await _line(process))
        yield ScriptedServer(process, kubeconfig)
    finally:
        # An empty input closes its standard input, with which it ends.
        await process.communicate(b"")


async def _line(process: asyncio.subprocess.Process) -> str:
    if process.stdout is None:
        raise TypeError("the server has an output")
    return (await process.stdout.readline()).decode().strip()
