"""A wrong address, or a server that is not well, is known at once, with what is probably wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.cli.command import command_beside
from tests.cli.ferryman import Ferryman

from kubewright import Config, ControlPlane
from kubewright.cli.cluster.reachability import Unreachable, check_reachable

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

VERSION = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """The host and port of a server that does with connections what the handler does."""
    writers: list[asyncio.StreamWriter] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await handler(reader, writer)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        for writer in writers:
            writer.close()
        server.close()


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Takes the connection, and never answers."""


async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.close()


async def of_another_protocol(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.0\r\n")


async def only_its_version(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers one request, and none after it."""
    if (await reader.readline()).startswith(b"GET /version "):
        writer.write(VERSION)


@pytest.mark.parametrize(
    ("scheme", "handler", "reason"),
    [
        ("http", silent, "it takes connections and does not answer: is it an API server, and is it well?"),
        ("https", silent, "no connection within 2 s; is the cluster running, and can this machine reach it?"),
        ("http", closing, "is it an API server, or does something on the way end connections?"),
        ("https", closing, "was closed during the TLS handshake; is the cluster running, and can this machine"),
        ("http", of_another_protocol, "; it is not an API server"),
        ("https", of_another_protocol, "does not speak TLS; if that is intended, its address starts with http://"),
    ],
)
async def test_what_is_probably_wrong_is_said_at_once(scheme: str, handler: Handler, reason: str) -> None:
    async with serving(handler) as address, asyncio.timeout(60):
        server = f"{scheme}://{address}"
        with pytest.raises(Unreachable) as found:
            await check_reachable(Config(server=server), timeout=2)
    assert str(found.value).startswith(f"cannot reach {server}: ")
    assert reason in str(found.value)


async def test_an_address_without_tls_is_answered_with_the_one_that_is_meant(control_plane: ControlPlane) -> None:
    """A kube-apiserver answers 400, and others close the connection, which a client would repeat for a minute."""
    meant = control_plane.url
    with pytest.raises(Unreachable, match=f"; it speaks TLS: its address is {meant}$"):
        await check_reachable(Config(server=meant.replace("https:", "http:")), timeout=10)


@pytest.mark.parametrize("verb", ["install", "uninstall"])
async def test_the_timeout_covers_planning(verb: str, tmp_path: Path) -> None:
    project = Ferryman.write(tmp_path)
    async with serving(only_its_version) as address, asyncio.timeout(60):
        config = Config(server=f"http://{address}")
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(config.to_kubeconfig())
        given = [verb, project.package, "--kubeconfig", str(kubeconfig), "--timeout", "3s"]
        done = await command_beside(*given, cwd=tmp_path)
    doing = {"install": f"try to apply CustomResourceDefinition {project.definition}"}
    expected = doing.get(verb, f"look for what there is of {project.name}")
    assert (done.code, done.errors) == (1, f"kubewright: {expected}: not over after 3 s (--timeout)\n")
