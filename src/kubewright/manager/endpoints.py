"""The HTTP servers of a manager: probes, metrics, debugging and webhooks, each on an address of its own or off.

Webhooks start later than the others and end before them: probes report what they do.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from kubewright.client import Client
from kubewright.manager.health import Checks
from kubewright.manager.metrics import Metrics
from kubewright.manager.permissions import Permission
from kubewright.manager.serving import Handler, Server
from kubewright.manager.webhook_serving import WebhookServing


class ManagerEndpoints:
    """The servers of one manager."""

    def __init__(
        self,
        client: Client,
        *,
        health_address: str,
        metrics_address: str,
        debug_address: str,
        metrics_secure: bool,
        metrics_cert_dir: Path | None,
        webhook_address: str,
        webhook_cert_dir: Path | None,
        webhook_client_ca: Path | None,
        webhook_service: str | None,
        webhook_url: str | None,
    ) -> None:
        if metrics_cert_dir is not None and not metrics_secure:
            from kubewright.manager.serving_certificate import ServingCertificateError

            raise ServingCertificateError(
                f'the certificate in "{metrics_cert_dir}" would not be used: metrics are served with TLS only with '
                "--metrics-secure, or metrics_secure=True"
            )
        self.health = Checks("healthz")
        self.ready = Checks("readyz")
        self.metrics = Metrics()
        self.debug_server = Server(debug_address, option="debug_address")
        self._health_server = Server(health_address, option="health_address")
        self._metrics_server = _metrics_server(metrics_address, metrics_secure, metrics_cert_dir, self.metrics)
        self.webhooks = WebhookServing(
            client,
            self.metrics,
            address=webhook_address,
            cert_dir=webhook_cert_dir,
            client_ca=webhook_client_ca,
            service=webhook_service,
            url=webhook_url,
        )
        self.health.serve(self._health_server)
        self.ready.serve(self._health_server)
        self._metrics_needs: list[Permission] = []
        handler: Handler = self.metrics.answer
        if metrics_secure and self.serves_metrics:
            from kubewright.manager import delegated_access  # few programs need it

            handler = delegated_access.DelegatedAccess(client).protect(handler)
            self._metrics_needs += delegated_access.NEEDS
        self._metrics_server.route("/metrics", handler)

    @property
    def needs(self) -> list[Permission]:
        """The permissions that serving them needs."""
        return [*self._metrics_needs, *self.webhooks.needs]

    @property
    def serves_metrics(self) -> bool:
        """Whether metrics are served."""
        return self._metrics_server.is_enabled

    @property
    def ports(self) -> dict[str, int]:
        """The ports of the servers, by name; 0 for those that are off."""
        return {
            "health": self._health_server.port,
            "metrics": self._metrics_server.port,
            "debug": self.debug_server.port,
            "webhook": self.webhooks.server.port,
        }

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Serve all but webhooks while the block runs."""
        async with AsyncExitStack() as servers:
            for server in (self._health_server, self._metrics_server, self.debug_server):
                await servers.enter_async_context(server)
            yield


def _metrics_server(address: str, is_secure: bool, directory: Path | None, metrics: Metrics) -> Server:
    def context() -> ssl.SSLContext:
        # Few programs need it.
        from kubewright.manager.serving_certificate import CertificateReads, from_directory, self_signed

        if directory is None:
            return self_signed()
        return from_directory(directory, reads=CertificateReads.declared(metrics))

    return Server(address, option="metrics_address", tls=context if is_secure else None)
