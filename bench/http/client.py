"""kubewright's side of the HTTP benchmark, as a process of its own.

    python -m bench.http.client put|watch DIR ADDRESS N

Prints the microseconds of CPU that the work took, without the start of the process.
"""

from __future__ import annotations

import asyncio
import resource
import ssl
import sys
from pathlib import Path

import uvloop

from kubewright.api.dynamic import Dynamic
from kubewright.client.http.transport import HTTPTransport
from kubewright.client.watch import parse_event

IN_FLIGHT = 16
Widget = Dynamic.of("apps.example.com/v1", "Widget")
_HEADERS = [("Content-Type", "application/json"), ("Accept", "application/json")]


def _cpu() -> int:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return round((usage.ru_utime + usage.ru_stime) * 1e6)


async def _puts(transport: HTTPTransport, count: int, body: bytes) -> None:
    remaining = iter(range(count))

    async def work() -> None:
        for _ in remaining:
            response = await transport.request("PUT", "/object", _HEADERS, body, timeout=30)
            if response.status != 200 or len(response.body) != len(body):
                raise RuntimeError(f"status {response.status}, {len(response.body)} bytes")

    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(work())


async def _watch(transport: HTTPTransport, count: int) -> None:
    seen = 0
    async with await transport.stream("GET", f"/watch?lines={count}", timeout=30) as response:
        async for line in response.lines(idle_timeout=30):
            event = parse_event(Widget, line)
            if event.type != "MODIFIED" or not event.header.name:
                raise RuntimeError(f"unexpected event {event.type!r}")
            seen += 1
    if seen != count:
        raise RuntimeError(f"{seen} lines instead of {count}")


async def _run(command: str, directory: Path, address: str, count: int) -> int:
    context = ssl.create_default_context(cafile=directory / "ca.pem")
    context.load_cert_chain(directory / "client.pem", directory / "client-key.pem")
    transport = HTTPTransport(f"https://{address}", tls=context)
    try:
        if command == "put":
            body = (directory / "put.json").read_bytes()
            await _puts(transport, IN_FLIGHT * 4, body)
            before = _cpu()
            await _puts(transport, count, body)
        else:
            await _watch(transport, 1000)
            before = _cpu()
            await _watch(transport, count)
        return _cpu() - before
    finally:
        await transport.aclose()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(runner.run(_run(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))))
