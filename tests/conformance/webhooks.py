"""A webhook server in the test's process, and configurations that are for the namespace of one test and go with it."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from tests.conformance.asking import Ask
from tests.conformance.policies import CONFIG_MAPS, GROUP, WITHIN, config_map, rule

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.certificates import CertificateAuthority
from kubewright.controlplane.embedded.apimachinery.document import at, mapping, text
from kubewright.testing.namespaces import unique_name

Kind = Literal["mutating", "validating"]
Handler = Callable[[JSONObject], JSONValue | bytes]
"""From an AdmissionReview to its answer, or to the bytes of a response."""


def allowed(review: JSONObject, **response: JSONValue) -> JSONObject:
    answer: JSONObject = {"uid": text(review, "request", "uid"), "allowed": True, **response}
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": answer}


def patched(review: JSONObject, *steps: JSONValue) -> JSONObject:
    patch = b64encode(msgspec.json.encode(steps)).decode()
    return allowed(review, patchType="JSONPatch", patch=patch)


class Webhooks:
    """Serves handlers over TLS by their paths, and registers them."""

    def __init__(self, ask: Ask, prefix: str) -> None:
        self._ask = ask
        self._prefix = prefix
        self._handlers: dict[str, Handler] = {}
        self._made: list[str] = []
        self.reviews: list[JSONObject] = []
        """Those about anything but witnesses, in the order of their arrival."""
        self.port = 0
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self.authority = CertificateAuthority()

    def bundle(self, authority: CertificateAuthority | None = None) -> str:
        return b64encode((authority or self.authority).certificate.encode()).decode()

    def requests(self, path: str) -> list[JSONObject]:
        """The requests that arrived at a path."""
        return [mapping(review, "request") for review in self.reviews if text(review, "path") == path]

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections[asyncio.create_task(self._serve(reader, writer))] = writer

    async def close(self) -> None:
        """Cut the connections, of which a server keeps some."""
        for writer in self._connections.values():
            writer.transport.abort()
        await asyncio.gather(*self._connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(
                    int(line.partition(":")[2])
                    for line in head.splitlines()
                    if line.lower().startswith("content-length")
                )
                review: JSONObject = msgspec.json.decode(await reader.readexactly(length))
                path = head.split()[1].partition("?")[0]
                handler = self._handlers[path]
                if not at(review, "request", "object", "metadata", "labels", "witness"):
                    self.reviews.append({**review, "path": path})
                elif not path.startswith("/witness"):
                    handler = allowed
                answer = handler(review)
                if answer is None:
                    continue
                if not isinstance(answer, bytes):
                    body = msgspec.json.encode(answer)
                    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    answer += b"Content-Length: %d\r\n\r\n" % len(body) + body
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def serve(self, path: str, handler: Handler) -> JSONObject:
        """Serve a handler at a path. Returns the configuration of clients of it."""
        self._handlers[path] = handler
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.bundle()}

    def webhook(self, path: str, handler: Handler, **fields: JSONValue) -> JSONObject:
        """A webhook for configmaps of the namespace, unless the fields have other rules."""
        return {
            "name": f"{path.strip('/')}.{self._prefix}.example.com",
            # With two slashes before the path, as envtest of Go projects writes it: the server asks at one.
            "clientConfig": {**self.serve(path, handler), "url": f"https://127.0.0.1:{self.port}/{path}"},
            "rules": [rule()],
            "namespaceSelector": WITHIN,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **fields,
        }

    def name(self, path: str) -> str:
        return f"{path.strip('/')}.{self._prefix}.example.com"

    async def add(self, kind: Kind, short: str, *webhooks: JSONObject) -> None:
        """Register webhooks in one configuration, and wait until the server calls by it."""
        collection, name = f"{GROUP}/{kind}webhookconfigurations", f"{self._prefix}-{short}"
        probe = self.webhook(
            f"/witness-{kind}-{short}",
            lambda review: allowed(review, allowed=False),
            objectSelector={"matchLabels": {"witness": short}},
        )
        content: JSONObject = {"metadata": {"name": name}, "webhooks": [probe, *webhooks]}
        made = await self._ask("POST", collection, content)
        assert made.code == 201, made.body
        assert made.warnings == []
        self._made.append(f"{collection}/{name}")
        witness: JSONObject = {"metadata": {"name": f"witness-{short}", "labels": {"witness": short}}}
        async with asyncio.timeout(60):
            while (await self._ask("POST", f"{CONFIG_MAPS}?dryRun=All", witness)).code == 201:
                await asyncio.sleep(0.05)

    async def remove(self) -> None:
        for path in self._made:
            await self._ask("DELETE", path)


@asynccontextmanager
async def serving(made: Webhooks, directory: Path, *hosts: str) -> AsyncIterator[None]:
    """Serve webhooks on this machine, with a certificate for these names, too."""
    pair = made.authority.server("webhook", hosts=["127.0.0.1", *hosts])
    (directory / "pem").write_text(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "pem")
    server = await asyncio.start_server(made.connected, "127.0.0.1", 0, ssl=context)
    made.port = server.sockets[0].getsockname()[1]
    yield
    server.close()
    await made.close()


@pytest.fixture
async def webhooks(ask: Ask, namespace: str, tmp_path: Path) -> AsyncIterator[Webhooks]:
    made = Webhooks(ask, unique_name("hooks"))
    async with serving(made, tmp_path, f"hooks.{namespace}.svc"):
        yield made
        await made.remove()


__all__ = ["CONFIG_MAPS", "Webhooks", "allowed", "config_map", "patched", "rule", "serving", "webhooks"]
