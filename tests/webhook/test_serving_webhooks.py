"""The server of webhooks: TLS, certificates, limits, readiness and its end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.webhook.boats import Boat, BoatV1Beta1
from tests.webhook.connections import post, trusting
from tests.webhook.reviews import Kettle, kettle, review

from kubewright.client import Client
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.certificates import CertificateAuthority
from kubewright.manager import Manager
from kubewright.manager.webhook_serving import MAX_REVIEW_SIZE
from kubewright.testing import LocalWebhooks
from kubewright.webhook import Review, converts, defaults, serve_webhooks, validates
from kubewright.webhook.conversion_endpoint import MAX_CONVERSION_SIZE


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as client:
        yield client


@defaults(Kettle)
def steel(review: Review[Kettle]) -> None:
    review.object.spec.colour = "steel"


@validates(Kettle)
def admit(review: Review[Kettle]) -> None: ...


async def test_many_webhooks_are_served_on_one_port_and_the_manager_is_ready_only_then(
    client: Client, local_webhooks: LocalWebhooks
) -> None:
    manager = Manager(client, **local_webhooks.options)
    serve_webhooks(manager, steel, admit, converts(Boat, BoatV1Beta1))
    assert (await manager.ready.failing())["webhooks"] == "the webhook server is not serving"
    tls = trusting(local_webhooks.authority)
    # Larger than what is read at once.
    body = json.dumps(review(new=kettle(note="x" * 200_000))).encode()
    async with asyncio.timeout(60), manager.running():
        await manager.webhooks_served.wait()
        assert "webhooks" not in await manager.ready.failing()
        port = manager.ports["webhook"]
        for webhook in (steel, admit):
            status, content = await post(port, tls, webhook.path, body)
            assert status == 200
            assert json.loads(content)["response"]["allowed"] is True
            assert ("patch" in json.loads(content)["response"]) == webhook.is_mutating
        assert (await post(port, tls, "/elsewhere", body))[0] == 404
        assert (await post(port, tls, admit.path, b"not a review"))[0] == 400
        status, content = await post(port, tls, admit.path, b"", length=MAX_REVIEW_SIZE + 1)
        assert (status, content) == (413, f"a body of more than {MAX_REVIEW_SIZE} bytes is not taken here\n".encode())
        assert (await post(port, tls, "/convert", b" " * (MAX_REVIEW_SIZE + 1)))[0] == 400, "it was taken, and read"
        status, content = await post(port, tls, "/convert", b"", length=MAX_CONVERSION_SIZE + 1)
        assert (status, content) == (413, b"a body of more than 134217728 bytes is not taken here\n")
    assert (await manager.ready.failing())["webhooks"] == "the webhook server is not serving"


async def test_a_renewed_certificate_is_used_without_a_restart(client: Client, local_webhooks: LocalWebhooks) -> None:
    def serial(writer: asyncio.StreamWriter) -> object:
        certificate = writer.get_extra_info("peercert")
        writer.close()
        return certificate["serialNumber"]

    manager = Manager(client, **local_webhooks.options)
    serve_webhooks(manager, admit)
    tls = trusting(local_webhooks.authority)
    async with asyncio.timeout(60), manager.running():
        await manager.webhooks_served.wait()
        port = manager.ports["webhook"]
        before = serial((await asyncio.open_connection("127.0.0.1", port, ssl=tls))[1])
        assert serial((await asyncio.open_connection("127.0.0.1", port, ssl=tls))[1]) == before
        local_webhooks.renew()
        assert serial((await asyncio.open_connection("127.0.0.1", port, ssl=tls))[1]) != before


async def test_only_clients_with_a_certificate_of_the_client_authority_are_served_if_there_is_one(
    client: Client, local_webhooks: LocalWebhooks, tmp_path: Path
) -> None:
    authority, other = CertificateAuthority("clients"), CertificateAuthority("others")
    (tmp_path / "ca.crt").write_text(authority.certificate)
    manager = Manager(client, **local_webhooks.options, webhook_client_ca=tmp_path / "ca.crt")
    serve_webhooks(manager, admit)
    body = json.dumps(review(new=kettle())).encode()
    async with asyncio.timeout(60), manager.running():
        await manager.webhooks_served.wait()
        port = manager.ports["webhook"]
        ours = trusting(local_webhooks.authority, authority.client("api-server"), tmp_path / "ours.pem")
        assert (await post(port, ours, admit.path, body))[0] == 200
        theirs = trusting(local_webhooks.authority, other.client("api-server"), tmp_path / "theirs.pem")
        for refused in (theirs, trusting(local_webhooks.authority)):
            status = 0
            with suppress(OSError):  # an alert of TLS, unless the connection is closed before it is read
                status, _ = await post(port, refused, admit.path, body)
            assert status == 0


async def test_a_review_under_way_is_answered_before_the_manager_ends(
    client: Client, local_webhooks: LocalWebhooks
) -> None:
    asked, may_answer = asyncio.Event(), asyncio.Event()

    @validates(Kettle)
    async def slow(review: Review[Kettle]) -> None:
        asked.set()
        await may_answer.wait()

    manager = Manager(client, **local_webhooks.options)
    serve_webhooks(manager, slow)
    body = json.dumps(review(new=kettle())).encode()
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(manager.run())
        await manager.webhooks_served.wait()
        tls = trusting(local_webhooks.authority)
        answered = tasks.create_task(post(manager.ports["webhook"], tls, slow.path, body))
        await asked.wait()
        manager.stop()
        while manager.webhooks_served.is_set():
            await asyncio.sleep(0)
        may_answer.set()
        await running
    assert answered.result()[0] == 200
