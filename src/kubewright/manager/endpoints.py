"""The HTTP servers of a manager: probes, metrics, debugging and webhooks, each on an address of its own or off."""

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

MAX_REVIEW_SIZE = 7 * 1024 * 1024
"""Bytes of a request of the API server: two objects of at most 3 MiB, as controller-runtime reckons."""


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
        self._metrics_server = _metrics_server(metrics_address, metrics_secure, metrics_cert_dir)
        self.webhook_server = _webhook_server(webhook_address, webhook_cert_dir, webhook_client_ca)
        self.health.serve(self._health_server)
        self.ready.serve(self._health_server)
        self.needs: list[Permission] = []
        """The permissions that serving them needs."""
        handler: Handler = self.metrics.answer
        if metrics_secure and self.serves_metrics:
            from kubewright.manager import delegated_access  # few programs need it

            handler = delegated_access.DelegatedAccess(client).protect(handler)
            self.needs += delegated_access.NEEDS
        self._metrics_server.route("/metrics", handler)

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
            "webhook": self.webhook_server.port,
        }

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Serve while the block runs."""
        async with AsyncExitStack() as servers:
            for server in (self._health_server, self._metrics_server, self.debug_server):
                await servers.enter_async_context(server)
            # The last to start and the first to end: probes report what it does.
            if self.webhook_server.routes:
                await servers.enter_async_context(self.webhook_server)
            yield


def _metrics_server(address: str, is_secure: bool, directory: Path | None) -> Server:
    def context() -> ssl.SSLContext:
        from kubewright.manager.serving_certificate import from_directory, self_signed  # few programs need it

        return from_directory(directory) if directory is not None else self_signed()

    return Server(address, option="metrics_address", tls=context if is_secure else None)


def _webhook_server(address: str, directory: Path | None, client_ca: Path | None) -> Server:
    def context() -> ssl.SSLContext:
        from tempfile import gettempdir  # few programs need it

        from kubewright.manager.serving_certificate import from_directory

        # As in controller-runtime, whose manifests mount the Secret there.
        return from_directory(directory or Path(gettempdir(), "k8s-webhook-server", "serving-certs"), client_ca)

    return Server(
        address,
        option="webhook_address",
        tls=context,
        max_body_size=MAX_REVIEW_SIZE,
        max_connections=1000,  # each replica of an API server has, by default, up to 200 writes under way
    )
