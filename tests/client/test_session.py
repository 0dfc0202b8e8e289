"""Who a request says we are, and when it is sent again."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from kubewright.client.config.config import Config
from kubewright.client.config.credentials import ANONYMOUS, Credential, Credentials, bearer
from kubewright.client.config.impersonation import Impersonation
from kubewright.client.config.tls import TLS, Certificate
from kubewright.client.errors import (
    ConnectionFailed,
    ConnectionLost,
    CredentialError,
    Forbidden,
    InternalError,
    KubernetesError,
    RequestTimeout,
    ServiceUnavailable,
    TLSError,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from kubewright.client.http.transport import Transport
from kubewright.client.session import Session, default_user_agent
from kubewright.client.token_bucket import TokenBucket

if TYPE_CHECKING:
    from pathlib import Path

    from tests.client.conftest import Certificates, Peer, ScriptedServer, Serve, VirtualTime

SERVER = "https://kubernetes.example.com"
REQUEST = "get Pod shop/web-1"
SECRETS = ("s3cret-0", "s3cret-1")


class Renewing:
    """Credentials that have a new token for each rejected one, `renewals` times."""

    def __init__(self, renewals: int) -> None:
        self._renewals = renewals
        self._number = 0
        self.rejections: list[Credential] = []

    async def current(self) -> Credential:
        return bearer(f"s3cret-{self._number}")

    async def rejected(self, credential: Credential) -> bool:
        self.rejections.append(credential)
        if self._number == self._renewals:
            return False
        self._number += 1
        return True


class Unrenewable:
    """Credentials whose plugin fails when a new one is wanted."""

    async def current(self) -> Credential:
        return bearer("s3cret-0")

    async def rejected(self, credential: Credential) -> bool:
        raise CredentialError("the plugin failed")


class Pauses(list[float]):
    """A sleep that takes no time and records its durations."""

    async def sleep(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


def session_of(
    server: Transport, pauses: Pauses, *, credentials: Credentials = ANONYMOUS, timeout: float | None = 30.0
) -> Session:
    return Session(
        Config(server=SERVER, credentials=credentials), transport=server, sleep=pauses.sleep, timeout=timeout
    )


async def test_a_request_names_its_user_and_its_program(server: ScriptedServer) -> None:
    impersonation = Impersonation(user="jane", groups=["dev", "ops"])
    config = Config(server=SERVER, credentials=Renewing(0), impersonate=impersonation)
    session = Session(config, transport=server, user_agent="shop-operator/1.2")
    server.answers()
    await session.request("GET", "/api", request=REQUEST, headers=[("Accept", "application/json")])

    (sent,) = server.sent
    assert sent.header("User-Agent") == ["shop-operator/1.2"]
    assert sent.header("Authorization") == ["Bearer s3cret-0"]
    assert sent.header("Impersonate-User") == ["jane"]
    assert sent.header("Impersonate-Group") == ["dev", "ops"]
    assert sent.header("Accept") == ["application/json"]
    assert sent.timeout == 30.0


async def test_the_user_agent_is_kubewright_unless_given(server: ScriptedServer, pauses: Pauses) -> None:
    server.streams()
    await session_of(server, pauses).stream("GET", "/api", request=REQUEST)

    assert server.sent[0].header("User-Agent") == [default_user_agent()]
    assert default_user_agent().startswith("kubewright/")


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("method", ["GET", "POST", "PATCH"])
async def test_an_answer_with_retry_after_is_tried_again_after_that_time(
    server: ScriptedServer, pauses: Pauses, method: str, status: int
) -> None:
    server.answers(status=status, headers={"Retry-After": "2"})
    server.answers(status=status, headers={"Retry-After": "7"})
    server.answers(b"done")
    response = await session_of(server, pauses).request(method, "/api", request=REQUEST, body=b"{}")

    assert response.body == b"done"
    assert pauses == [2.0, 7.0]
    assert [sent.body for sent in server.sent] == [b"{}"] * 3


@pytest.mark.parametrize(("status", "error"), [(429, TooManyRequests), (500, InternalError), (503, ServiceUnavailable)])
async def test_an_answer_without_retry_after_is_final(
    server: ScriptedServer, pauses: Pauses, status: int, error: type[KubernetesError]
) -> None:
    server.answers(status=status)
    with pytest.raises(error):
        await session_of(server, pauses).request("GET", "/api", request=REQUEST)

    assert pauses == []


async def test_only_overload_and_server_failures_are_tried_again(server: ScriptedServer, pauses: Pauses) -> None:
    server.answers(status=403, headers={"Retry-After": "1"})
    with pytest.raises(Forbidden):
        await session_of(server, pauses).request("GET", "/api", request=REQUEST)

    assert pauses == []


async def test_a_request_is_tried_again_ten_times_and_not_more(server: ScriptedServer, pauses: Pauses) -> None:
    for _ in range(11):
        server.answers(status=429, headers={"Retry-After": "1"})
    with pytest.raises(TooManyRequests) as caught:
        await session_of(server, pauses).request("GET", "/api", request=REQUEST)

    assert pauses == [1.0] * 10
    assert caught.value.retry_after == 1.0


async def test_a_long_retry_after_is_left_to_the_caller(server: ScriptedServer, pauses: Pauses) -> None:
    server.answers(status=503, headers={"Retry-After": "3600"})
    with pytest.raises(ServiceUnavailable) as caught:
        await session_of(server, pauses).request("GET", "/api", request=REQUEST)

    assert caught.value.retry_after == 3600.0
    assert pauses == []


async def test_a_read_whose_connection_broke_is_repeated_with_growing_pauses(
    server: ScriptedServer, pauses: Pauses
) -> None:
    for _ in range(11):
        server.fails(ConnectionLost("GET kubernetes: the server closed the connection"))
    with pytest.raises(ConnectionLost, match=r"^get Pod shop/web-1: GET kubernetes: the server closed the connection$"):
        await session_of(server, pauses).request("GET", "/api", request=REQUEST)

    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0])


async def test_a_watch_whose_connection_broke_before_the_answer_is_repeated(
    server: ScriptedServer, pauses: Pauses
) -> None:
    server.fails(ConnectionLost("gone"))
    server.streams(b"line")
    async with await session_of(server, pauses).stream("GET", "/api", request=REQUEST) as response:
        assert await response.read() == b"line"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_write_whose_connection_broke_is_never_repeated(
    server: ScriptedServer, pauses: Pauses, method: str
) -> None:
    """Whether it took effect is unknown."""
    server.fails(ConnectionLost("gone"))
    with pytest.raises(ConnectionLost, match=r"^update Pod shop/web-1: gone$"):
        await session_of(server, pauses).request(method, "/api", request="update Pod shop/web-1", body=b"{}")

    assert len(server.sent) == 1


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_write_on_a_reused_connection_that_broke_reaches_the_server_once(serve: Serve, method: str) -> None:
    read: list[str] = []

    async def handler(peer: Peer) -> None:
        while True:
            head, _ = await peer.request()
            read.append(head.split(" ")[0])
            if len(read) == 2:
                return
            await peer.answer()

    server = await serve(handler)
    session = Session(Config(server=f"http://{server.address}"))
    await session.request("GET", "/api", request=REQUEST)
    with pytest.raises(ConnectionLost, match=r"^update Pod shop/web-1: .* without a response"):
        await session.request(method, "/api", request="update Pod shop/web-1", body=b"{}")
    await session.aclose()

    assert read == ["GET", method]
    assert server.accepted == 1


@pytest.mark.parametrize("error", [ConnectionFailed("refused"), TLSError("expired"), RequestTimeout("too slow")])
async def test_a_server_that_cannot_be_reached_is_reported_at_once(
    server: ScriptedServer, pauses: Pauses, error: TransportError
) -> None:
    server.fails(error)
    with pytest.raises(type(error), match=f"^{REQUEST}: {error}$"):
        await session_of(server, pauses).request("GET", "/api", request=REQUEST)


async def test_a_read_that_ends_because_the_session_was_closed_is_not_repeated(
    server: ScriptedServer, pauses: Pauses
) -> None:
    class Closing:
        """Closes the session when a request is about to be sent."""

        async def current(self) -> Credential:
            await session.aclose()
            return Credential()

        async def rejected(self, credential: Credential) -> bool:
            return False

    session = session_of(server, pauses, credentials=Closing())
    server.fails(ConnectionLost("the client was closed"))
    with pytest.raises(ConnectionLost):
        await session.request("GET", "/api", request=REQUEST)

    assert server.is_closed


async def test_a_rejected_credential_is_renewed_and_the_request_sent_once_more(
    server: ScriptedServer, pauses: Pauses
) -> None:
    credentials = Renewing(1)
    server.answers(status=401)
    server.answers(b"welcome")
    response = await session_of(server, pauses, credentials=credentials).request("POST", "/api", request=REQUEST)

    assert response.body == b"welcome"
    assert [sent.header("Authorization") for sent in server.sent] == [["Bearer s3cret-0"], ["Bearer s3cret-1"]]
    assert credentials.rejections == [bearer("s3cret-0")]


async def test_a_renewed_credential_that_is_rejected_too_is_final(server: ScriptedServer, pauses: Pauses) -> None:
    credentials = Renewing(9)
    server.answers(status=401)
    server.refuses(401, "Unauthorized", "who are you?")
    with pytest.raises(Unauthorized, match=r"^get Pod shop/web-1: who are you\?"):
        await session_of(server, pauses, credentials=credentials).request("GET", "/api", request=REQUEST)

    assert len(credentials.rejections) == 1


async def test_a_rejected_credential_without_a_successor_is_not_sent_again(
    server: ScriptedServer, pauses: Pauses
) -> None:
    server.refuses(401, "Unauthorized", "who are you?")
    with pytest.raises(Unauthorized, match=r"who are you\?"):
        await session_of(server, pauses, credentials=Renewing(0)).request("GET", "/api", request=REQUEST)


async def test_a_rejection_at_the_last_attempt_is_reported(server: ScriptedServer, pauses: Pauses) -> None:
    for _ in range(10):
        server.answers(status=429, headers={"Retry-After": "1"})
    server.answers(status=401)
    with pytest.raises(Unauthorized):
        await session_of(server, pauses, credentials=Renewing(1)).request("GET", "/api", request=REQUEST)


@pytest.mark.parametrize(
    ("status", "credentials"), [(401, Renewing(1)), (429, ANONYMOUS), (503, ANONYMOUS)], ids=["401", "429", "503"]
)
async def test_a_streamed_answer_that_is_tried_again_is_closed_first(
    server: ScriptedServer, pauses: Pauses, status: int, credentials: Credentials
) -> None:
    refused = server.streams(b"...", status=status, headers={"Retry-After": "1"}, ends=False)
    accepted = server.streams(b"line")
    response = await session_of(server, pauses, credentials=credentials).stream("GET", "/api", request=REQUEST)

    assert response.status == 200
    assert refused.is_closed
    assert not accepted.is_closed


async def test_a_streamed_answer_is_closed_when_its_credential_cannot_be_renewed(
    server: ScriptedServer, pauses: Pauses
) -> None:
    refused = server.streams(b"...", status=401, ends=False)
    with pytest.raises(CredentialError, match="the plugin failed"):
        await session_of(server, pauses, credentials=Unrenewable()).stream("GET", "/api", request=REQUEST)

    assert refused.is_closed


async def test_a_refused_stream_is_the_error_it_carries_and_is_closed(server: ScriptedServer, pauses: Pauses) -> None:
    refused = server.streams(b'{"status":"Failure",', b'"message":"not yours","reason":"Forbidden"}', status=403)
    with pytest.raises(Forbidden, match=r"^watch Pod: not yours$"):
        await session_of(server, pauses).stream("GET", "/api", request="watch Pod")

    assert refused.is_closed


async def test_a_refused_stream_whose_body_breaks_off_names_the_request(server: ScriptedServer, pauses: Pauses) -> None:
    refused = server.streams(b'{"status"', ConnectionLost("ended within the body"), status=500)
    with pytest.raises(ConnectionLost, match=r"^watch Pod: ended within the body$"):
        await session_of(server, pauses).stream("GET", "/api", request="watch Pod")

    assert refused.is_closed


async def test_a_refused_stream_whose_body_never_comes_does_not_hang(server: ScriptedServer, pauses: Pauses) -> None:
    refused = server.streams(status=500, ends=False)
    with pytest.raises(RequestTimeout, match=r"^watch Pod: the server answered 500, and no complete body within 0.01"):
        await session_of(server, pauses, timeout=0.01).stream("GET", "/api", request="watch Pod")

    assert refused.is_closed


def test_every_attempt_waits_for_the_rate_limit(
    server: ScriptedServer, pauses: Pauses, virtual_time: VirtualTime
) -> None:
    session = Session(Config(server=SERVER), transport=server, rate_limit=TokenBucket(rate=0.25), sleep=pauses.sleep)
    server.answers(status=429, headers={"Retry-After": "9"})
    server.answers()
    server.answers()

    async def main() -> None:
        await session.request("GET", "/api", request=REQUEST)
        await session.request("GET", "/api", request=REQUEST)

    virtual_time.run(main())
    assert pauses == [9.0]
    assert virtual_time.elapsed == 8.0


async def test_a_warning_is_logged_once_however_it_comes(
    server: ScriptedServer, pauses: Pauses, caplog: pytest.LogCaptureFixture
) -> None:
    session = session_of(server, pauses)
    headers = {"Warning": '299 - "policy/v1beta1 is deprecated"'}
    server.answers(headers=headers)
    server.answers(headers=headers)
    server.streams(headers=headers)
    server.answers(status=403, headers={"Warning": '299 - "and \\"this\\" too", 299 - "twice in one"'})
    await session.request("GET", "/api", request=REQUEST)
    await session.request("GET", "/api", request=REQUEST)
    await session.stream("GET", "/api", request=REQUEST)
    with pytest.raises(Forbidden):
        await session.request("GET", "/api", request=REQUEST)

    warnings = ["policy/v1beta1 is deprecated", 'and "this" too', "twice in one"]
    assert caplog.messages == [f"{REQUEST}: {warning}" for warning in warnings]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


async def test_no_credential_is_in_a_message_or_a_log_record(
    server: ScriptedServer, pauses: Pauses, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    session = session_of(server, pauses, credentials=Renewing(1))
    server.answers(status=401)
    server.answers(b"<html>who are you?</html>", status=401, headers={"Content-Type": "text/html"})
    with pytest.raises(Unauthorized) as rejected:
        await session.request("GET", "/api", request=REQUEST)
    server.fails(ConnectionLost("gone"))
    with pytest.raises(ConnectionLost) as lost:
        await session.request("POST", "/api", request=REQUEST)

    shown = caplog.text + "".join(f"{error.value!s}{error.value!r}" for error in (rejected, lost))
    assert "who are you?" in shown
    assert not any(secret in shown for secret in SECRETS)


class Rotating:
    """Credentials by client certificate, which the test exchanges."""

    def __init__(self, certificate: Certificate) -> None:
        self.certificate = certificate

    async def current(self) -> Credential:
        return Credential(certificate=self.certificate)

    async def rejected(self, credential: Credential) -> bool:
        return False


def certificate_of(certificates: Certificates, name: str) -> Certificate:
    return Certificate(
        chain=(certificates.directory / f"{name}.pem").read_bytes(),
        key=(certificates.directory / f"{name}-key.pem").read_bytes(),
    )


async def test_a_new_client_certificate_is_presented_on_a_new_connection(
    serve: Serve, certificates: Certificates
) -> None:
    """A kept connection would go on as the old user."""
    shown: list[bytes] = []

    async def handler(peer: Peer) -> None:
        while True:
            await peer.request()
            shown.append(peer.writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
            await peer.answer()

    server = await serve(handler, certificates.server(client_certificate=True))
    credentials = Rotating(certificate_of(certificates, "client"))
    authority = (certificates.directory / "ca.pem").read_bytes()
    config = Config(server=f"https://{server.address}", tls=TLS(ca=authority), credentials=credentials)
    session = Session(config)
    try:
        await session.request("GET", "/", request=REQUEST)
        await session.request("GET", "/", request=REQUEST)
        credentials.certificate = certificate_of(certificates, "server")
        await session.request("GET", "/", request=REQUEST)
    finally:
        await session.aclose()

    assert server.accepted == 2
    assert shown[0] == shown[1] != shown[2]


async def _answering(peer: Peer) -> None:
    while True:
        await peer.request()
        await peer.answer()


async def test_an_intermediate_authority_is_trusted_by_itself(serve: Serve, certificates: Certificates) -> None:
    """Go does so, and kubeconfigs are written for Go."""
    server = await serve(_answering, certificates.server("below"))
    authority = (certificates.directory / "intermediate.pem").read_bytes()
    session = Session(Config(server=f"https://{server.address}", tls=TLS(ca=authority)))
    try:
        assert (await session.request("GET", "/", request=REQUEST)).status == 200
    finally:
        await session.aclose()


async def test_authorities_are_read_again_for_each_new_connection(
    serve: Serve, certificates: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "ca.crt"

    def publish(name: str) -> bytes:
        content = (certificates.directory / f"{name}.pem").read_bytes()
        file.write_bytes(content)
        return content

    async def closing(peer: Peer) -> None:
        await peer.request()
        await peer.answer(fields="Connection: close\r\n")

    server = await serve(closing, certificates.server())
    tls = TLS(ca=publish("unknown"), ca_file=file)
    session = Session(Config(server=f"https://{server.address}", tls=tls))
    try:
        with pytest.raises(TLSError, match="certificate authority data"):
            await session.request("GET", "/", request=REQUEST)
        publish("ca")
        assert (await session.request("GET", "/", request=REQUEST)).status == 200
        # A file in the middle of being written, and one that is gone, change nothing.
        file.write_bytes(b"-----BEGIN CERT")
        for _ in range(3):
            assert (await session.request("GET", "/", request=REQUEST)).status == 200
        file.unlink()
        assert (await session.request("GET", "/", request=REQUEST)).status == 200
        publish("unknown")
        with pytest.raises(TLSError, match="certificate authority data"):
            await session.request("GET", "/", request=REQUEST)
    finally:
        await session.aclose()

    assert [record.getMessage() for record in caplog.records if record.name == "kubewright.client.session"] == [
        "the previous certificate authorities stay in use: the certificate authority cannot be used: "
        "no PEM certificate was found in it",
        "the previous certificate authorities stay in use: the certificate authority cannot be used: "
        f'cannot read "{file}": No such file or directory',
    ]


async def test_a_session_speaks_plain_http_where_the_server_does(serve: Serve) -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.answer(b"plain")

    server = await serve(handler)
    session = Session(Config(server=f"http://{server.address}"))
    try:
        assert (await session.request("GET", "/", request=REQUEST)).body == b"plain"
    finally:
        await session.aclose()


async def test_cancelling_between_attempts_ends_the_request(server: ScriptedServer) -> None:
    waiting = asyncio.Event()

    async def forever(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    server.answers(status=429, headers={"Retry-After": "1"})
    session = Session(Config(server=SERVER), transport=server, sleep=forever)
    task = asyncio.create_task(session.request("GET", "/api", request=REQUEST))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert len(server.sent) == 1
