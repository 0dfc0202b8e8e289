from __future__ import annotations

import asyncio

import msgspec
import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.endpoints.request import Target, parse_query
from kubewright.controlplane.embedded.http.exchange import HTTPRequest
from kubewright.controlplane.embedded.server.assembly import ServerOptions, assemble
from kubewright.controlplane.embedded.server.deadline import deadline, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("90s", 90.0), ("1h2m3.5s", 3723.5), ("-1.5m", -90.0), ("+.5s", 0.5), ("10ms", 0.01), ("1.h", 3600.0)],
)
def test_durations_are_read_as_go_reads_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(("timeout", "seconds"), [("", 60.0), ("5s", 5.0), ("2h", 60.0), ("0s", 60.0), ("-3s", 60.0)])
def test_a_request_takes_at_most_a_minute(timeout: str, seconds: float) -> None:
    assert deadline(Target("/x", "get"), parse_query(f"timeout={timeout}")) == seconds


def test_a_watch_has_its_own_timeout() -> None:
    assert deadline(Target("/x", "watch"), parse_query("timeout=nonsense")) == 60.0
    with pytest.raises(StatusError):
        deadline(Target("/x", "list"), parse_query("timeout=nonsense"))


async def test_a_request_does_not_wait_for_a_webhook_beyond_its_deadline() -> None:
    """The real server answers the same, or drops the connection when the webhook's time ends in the same moment."""
    server = assemble(options=ServerOptions(always_allow=True)).server
    connections: list[asyncio.StreamWriter] = []

    def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        webhook: JSONObject = {
            "name": "silent.example.com",
            "clientConfig": {"url": f"https://127.0.0.1:{port}/"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 30,
        }
        configuration: JSONObject = {"metadata": {"name": "silent"}, "webhooks": [webhook]}
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        made = await server.respond(HTTPRequest("POST", path, body=msgspec.json.encode(configuration)))
        body = msgspec.json.encode({"metadata": {"name": "a"}})
        path = "/api/v1/namespaces/default/configmaps"
        answer = await server.respond(HTTPRequest("POST", path, "timeout=50ms", body=body))
        for writer in connections:
            writer.transport.abort()

    assert (made.status, answer.status) == (201, 504)
    assert msgspec.json.decode(answer.body)["message"] == (
        "Timeout: request did not complete within the allotted timeout"
    )
