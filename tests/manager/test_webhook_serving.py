"""Webhooks by a Service: how it is named, what is missing, and what starts when."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.manager.scripted import running

from kubewright import Manager, Model, Request, Resource, Result, controller_for, resource
from kubewright.api.admissionregistration.v1 import MutatingWebhookConfiguration
from kubewright.api.core.v1 import Secret
from kubewright.api.kinds import ObjectKey
from kubewright.certificates.registrations import Registration
from kubewright.client import Client
from kubewright.controlplane import ControlPlane
from kubewright.manager.metrics import Metrics
from kubewright.manager.permissions import Permission
from kubewright.manager.serving import EndpointRequest, EndpointResponse
from kubewright.manager.webhook_serving import WebhookServiceError, WebhookServing

HERE = "127.0.0.1:0"


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as client:
        yield client


async def answer(request: EndpointRequest) -> EndpointResponse:
    return EndpointResponse()


def served(client: Client, service: str = "lamps") -> Manager:
    manager = Manager(client, webhook_address=HERE, webhook_service=service)
    manager.add_webhook("/admit", answer)
    return manager


async def test_a_service_is_named_with_or_without_its_namespace(client: Client) -> None:
    assert served(client).webhook_service == ObjectKey(client.namespace, "lamps")
    assert served(client, "ops/lamps").webhook_service == ObjectKey("ops", "lamps")
    assert Manager(client).webhook_service is None


@pytest.mark.parametrize("wrong", ["", "/lamps", "ops/", "a/b/c", "Lamps", "lamps.ops", "9lamps"])
async def test_what_names_no_service_is_refused(client: Client, wrong: str) -> None:
    with pytest.raises(WebhookServiceError, match=r"--webhook-service.*expected the name of a Service"):
        served(client, wrong)


@pytest.mark.parametrize(
    "wrong",
    ["", "127.0.0.1:9443", "http://a:1", "https://", "https://a:0", "https://a:x", "https://a/b", "https://a?b"],
)
async def test_what_is_no_url_of_a_server_is_refused(client: Client, wrong: str) -> None:
    with pytest.raises(WebhookServiceError, match=r"--webhook-url.*expected where the API server reaches this program"):
        Manager(client, webhook_url=wrong)


async def test_a_url_is_not_given_with_other_certificates(client: Client, tmp_path: Path) -> None:
    with pytest.raises(WebhookServiceError, match="leave out --webhook-service"):
        Manager(client, webhook_url="https://127.0.0.1", webhook_service="lamps")
    with pytest.raises(WebhookServiceError, match="leave out --webhook-cert-dir"):
        Manager(client, webhook_url="https://127.0.0.1", webhook_cert_dir=tmp_path)


async def test_without_the_package_that_makes_certificates_the_start_says_what_to_install(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for name in ("issuing", "rotation", "keeper"):
        monkeypatch.delitem(sys.modules, f"kubewright.certificates.{name}", raising=False)
        monkeypatch.delattr(f"kubewright.certificates.{name}", raising=False)
    with pytest.raises(WebhookServiceError, match=r"pip install 'kubewright\[webhooks\]', or name the directory"):
        await served(client).run()


async def test_readiness_has_the_reason_why_there_is_no_certificate_yet(client: Client) -> None:
    manager = served(client, "nowhere/lamps")
    async with asyncio.timeout(60), running(manager):
        reason = ""
        while "not found" not in reason:
            await asyncio.sleep(0.01)
            reason = (await manager.ready.failing()).get("webhooks", "")
        assert reason.startswith("waiting for the certificate in the Secret nowhere/lamps-cert: ")
        assert not manager.webhooks_served.is_set()


class CupSpec(Model):
    litres: int = 1


@resource("cups.webhook-serving.test/v1")
class Cup(Resource[CupSpec, None]):
    """Is not installed."""


class Nothing:
    """Is never called."""

    async def reconcile(self, request: Request) -> Result:
        return Result()


async def test_webhooks_are_served_before_the_cache_is_complete(client: Client) -> None:
    """The server may need the conversion webhook to list what the cache watches."""
    manager = served(client)
    controller_for(manager, Cup).complete(Nothing())
    async with asyncio.timeout(60), running(manager):
        await manager.webhooks_served.wait()
        failing = await manager.ready.failing()
        assert "webhooks" not in failing
        assert "controllers" in failing


async def test_with_a_directory_of_certificates_a_service_needs_no_secret(client: Client) -> None:
    registration = Registration(MutatingWebhookConfiguration, "lamps.ops")

    def needs(*, cert_dir: bool) -> list[Permission]:
        serving = WebhookServing(
            client,
            Metrics(),
            address=HERE,
            cert_dir=Path("certs") if cert_dir else None,
            client_ca=None,
            service="ops/lamps",
            url=None,
        )
        serving.add_registration(registration)
        assert serving.needs == [], "nothing is served"
        serving.server.route("/admit", answer)
        return serving.needs

    assert needs(cert_dir=True) == [Permission(MutatingWebhookConfiguration, "get", name="lamps.ops")]
    verbs = ("get", "list", "watch", "patch")
    assert needs(cert_dir=False) == [
        Permission("secrets", *verbs, namespace="ops", name="lamps-cert"),
        Permission("secrets", "create", namespace="ops"),
        Permission(MutatingWebhookConfiguration, *verbs, name="lamps.ops"),
    ]


async def test_a_manager_that_ends_while_it_waits_for_a_certificate_ends_at_once(client: Client) -> None:
    manager = served(client, "nowhere/lamps")
    async with asyncio.timeout(60):
        task = asyncio.create_task(manager.run())
        while "Secret" not in (await manager.ready.failing()).get("webhooks", ""):
            await asyncio.sleep(0.01)
        manager.stop()
        await task
    assert await client.find(Secret, ObjectKey("default", "lamps-cert")) is None
