"""Webhooks in tests and in development: a certificate, and configurations that name the URL of this process.

async def test_a_widget_gets_defaults(admin, namespace, running, local_webhooks):
    manager = Manager(admin, **local_webhooks.options)
    setup(manager)
    async with running(manager), local_webhooks.installed(manager, admin, namespace=namespace):
        ...
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TypedDict

from kubewright.api.admissionregistration.v1 import (
    MutatingWebhookConfiguration,
    RuleWithOperations,
    ValidatingWebhookConfiguration,
    WebhookClientConfig,
)
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.meta import LabelSelector, ObjectMeta
from kubewright.client import Client
from kubewright.client.errors import APIError
from kubewright.controlplane.certificates import CertificateAuthority
from kubewright.manager import Manager
from kubewright.testing.conversion import converting
from kubewright.testing.namespaces import unique_name
from kubewright.webhook import (
    AdmissionResponse,
    AdmissionWebhook,
    ReviewRequest,
    handles,
    mutating_configuration,
    serve_webhooks,
    validating_configuration,
    versions_of,
    webhooks_of,
)

_TIMEOUT = 60.0
_PROBE = "kubewright.dev/webhook-probe"
_ANSWER = "the webhooks are called"
_NAMESPACE = "kubernetes.io/metadata.name"


class WebhookOptions(TypedDict):
    """The options of a manager that serves webhooks here."""

    webhook_address: str
    webhook_cert_dir: Path


class LocalWebhooks:
    """An authority, and a serving certificate for 127.0.0.1 and localhost in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.authority = CertificateAuthority("kubewright webhooks")
        self._directory = directory
        self.renew()

    @property
    def options(self) -> WebhookOptions:
        """The options of a manager: `Manager(client, **local_webhooks.options)`."""
        return WebhookOptions(webhook_address="127.0.0.1:0", webhook_cert_dir=self._directory)

    def renew(self) -> None:
        """Replace the serving certificate by a new one of the same authority."""
        pair = self.authority.server("webhooks", hosts=["127.0.0.1", "localhost"])
        (self._directory / "tls.crt").write_text(pair.certificate)
        (self._directory / "tls.key").write_text(pair.key)

    @asynccontextmanager
    async def installed(
        self, manager: Manager, client: Client, *, namespace: str | None = None
    ) -> AsyncIterator[tuple[MutatingWebhookConfiguration, ValidatingWebhookConfiguration]]:
        """While the block runs, the API server calls all webhooks of a manager that runs here; it does so from the
        beginning of the block on. With a `namespace`, only for requests in it: other tests are not affected.

        Kinds that the manager converts are served in all of their versions then, in every namespace. Their definitions
        are installed where they are missing, and stay, without the webhook.

        The client is to be that of an administrator.
        """
        name = unique_name("webhooks")
        for is_mutating in (True, False):
            if _probe_path(is_mutating) not in manager.webhooks:
                serve_webhooks(manager, _probe(is_mutating))
        async with asyncio.timeout(_TIMEOUT):
            await manager.webhooks_served.wait()
        url, bundle = (
            f"https://127.0.0.1:{manager.ports['webhook']}",
            b64encode(self.authority.certificate.encode()).decode(),
        )

        def client_config(path: str) -> WebhookClientConfig:
            return WebhookClientConfig(url=f"{url}{path}", ca_bundle=bundle)

        only = LabelSelector(match_labels={_NAMESPACE: namespace}) if namespace is not None else None
        webhooks = webhooks_of(manager)
        mutating = mutating_configuration(name, webhooks, client_config, namespaces=only)
        validating = validating_configuration(name, webhooks, client_config, namespaces=only)
        probes = LabelSelector(match_labels={_PROBE: name})
        for changing in mutating.webhooks:
            if changing.client_config.url == f"{url}{_probe_path(True)}":
                changing.object_selector = probes
        for checking in validating.webhooks:
            if checking.client_config.url == f"{url}{_probe_path(False)}":
                checking.object_selector = probes
        async with AsyncExitStack() as created:
            mutating = await client.create(mutating)
            created.push_async_callback(client.delete, mutating, missing_ok=True)
            validating = await client.create(validating)
            created.push_async_callback(client.delete, validating, missing_ok=True)
            for is_mutating in (True, False):
                await _until_called(client, name, is_mutating, namespace or "default")
            for versions in versions_of(manager):
                await created.enter_async_context(converting(client, versions, client_config))
            yield mutating, validating


def _probe_path(is_mutating: bool) -> str:
    return f"/kubewright-probe-{'mutating' if is_mutating else 'validating'}"


def _probe(is_mutating: bool) -> AdmissionWebhook[object]:
    """Denies objects that are never stored. A server that does has read the whole configuration."""
    path = _probe_path(is_mutating)
    rule = RuleWithOperations(
        api_groups=[""], api_versions=["v1"], operations=["CREATE"], resources=["configmaps"], scope="Namespaced"
    )

    @handles(path, rules=[rule], mutating=is_mutating)
    def probe(request: ReviewRequest) -> AdmissionResponse:
        obj = request.object_as(ConfigMap)
        is_meant = obj is not None and obj.data.get("probe") == path
        return AdmissionResponse.denied(_ANSWER) if is_meant else AdmissionResponse()

    return probe


async def _until_called(client: Client, name: str, is_mutating: bool, namespace: str) -> None:
    """A configuration takes effect a moment after it was made, and nothing else shows when."""
    probe = ConfigMap(
        metadata=ObjectMeta(name=name, namespace=namespace, labels={_PROBE: name}),
        data={"probe": _probe_path(is_mutating)},
    )
    async with asyncio.timeout(_TIMEOUT):
        while True:
            try:
                await client.create(probe, dry_run=True)
            except APIError as error:
                if _ANSWER in error.status.message:
                    return
                raise
            await asyncio.sleep(0.02)
