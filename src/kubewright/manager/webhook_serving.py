"""The server of webhooks of a manager: where its certificate comes from, and what has the API server call it.

The certificate is either in files, which another program such as cert-manager renews, or, with a Service, kept by
kubewright itself (`kubewright.certificates`), or, with a URL, made at each start, for programs on the machine of a
developer.
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import ObjectKey
from kubewright.client import Client
from kubewright.client.backoff import Backoff
from kubewright.manager.group import cause
from kubewright.manager.leader_election import pod_namespace
from kubewright.manager.metrics import Metrics
from kubewright.manager.permissions import Permission
from kubewright.manager.serving import Server

if TYPE_CHECKING:
    from kubewright.api.resources import Object
    from kubewright.certificates.keeper import CertificateKeeper
    from kubewright.certificates.registrations import Registration

MAX_REVIEW_SIZE = 7 * 1024 * 1024
"""Bytes of a request of the API server: two objects of at most 3 MiB, as controller-runtime reckons."""

_NAME = r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
_RETRY = Backoff(0.5, 10.0, jitter=0.3)

_log = logging.getLogger(__name__)


class WebhookServiceError(KubernetesError):
    """The Service or the URL of webhooks is not named as one, or its certificates cannot be made here."""


class WebhookServing:
    """Serves webhooks over TLS while `serve` does, and keeps their certificate while `kept` does."""

    def __init__(
        self,
        client: Client,
        metrics: Metrics,
        *,
        address: str,
        cert_dir: Path | None,
        client_ca: Path | None,
        service: str | None,
        url: str | None,
    ) -> None:
        """`service` is "NAME", in the namespace of the pod, or "NAMESPACE/NAME"; `url` has no path."""
        self.service = _service(service, client) if service is not None else None
        self._url = _checked_url(url) if url is not None else None
        if url is not None and (service is not None or cert_dir is not None):
            other = "--webhook-service" if service is not None else "--webhook-cert-dir"
            raise WebhookServiceError(
                "--webhook-url is for a program on the machine of a developer, whose certificate is made at its start: "
                f"leave out {other}, or --webhook-url"
            )
        self.authority = ""
        """With a URL, the certificate (PEM) of the authority that has issued the serving one, while it serves."""
        self._client = client
        self._metrics = metrics
        self._cert_dir = cert_dir
        self._client_ca = client_ca
        self._registrations: dict[Registration, None] = {}
        self._keeper: CertificateKeeper | None = None
        self._tls: ssl.SSLContext | None = None
        self.server = Server(
            address,
            option="webhook_address",
            tls=self._context,
            max_body_size=MAX_REVIEW_SIZE,
            max_connections=1000,  # each replica of an API server has, by default, up to 200 writes under way
        )

    @property
    def url(self) -> str | None:
        """Where the API server reaches webhooks, without a path, if that was given; with the port it listens on."""
        if self._url is None or urlsplit(self._url).port is not None:
            return self._url
        return f"{self._url}:{self.server.port}"

    def add_registration(self, registration: Registration) -> None:
        """An object has the API server call webhooks by the Service."""
        self._registrations[registration] = None

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to serve."""
        return bool(self.server.routes) and self.server.is_enabled

    @property
    def _keeps_certificates(self) -> bool:
        return self.is_needed and self.service is not None and self._cert_dir is None

    @property
    def needs(self) -> list[Permission]:
        """The permissions that it needs."""
        if self.service is None or not self.is_needed:
            return []
        if not self._keeps_certificates:
            return [Permission(each.kind, "get", name=each.name) for each in self._registrations]
        namespace, verbs = self.service.namespace, ("get", "list", "watch", "patch")
        return [
            Permission("secrets", *verbs, namespace=namespace, name=f"{self.service.name}-cert"),
            Permission("secrets", "create", namespace=namespace),
            *[Permission(each.kind, *verbs, name=each.name) for each in self._registrations],
        ]

    def not_ready_reason(self) -> str | None:
        """Why webhooks are not served; None while they are."""
        if self.server.port:
            return None
        reason = self._keeper.not_ready_reason if self._keeper is not None else None
        return reason or "the webhook server is not serving"

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Keep the certificate while the block runs, if that is ours to do."""
        if not self._keeps_certificates or self.service is None:
            yield
            return
        from kubewright.manager.serving_certificate import HeldCertificate  # few programs need it

        try:
            from kubewright.certificates.issuing import KeyPair
            from kubewright.certificates.keeper import CertificateKeeper
            from kubewright.certificates.registrations import secret_of
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "cryptography":
                raise
            raise WebhookServiceError(
                f"making the certificates of webhooks of the Service {self.service} needs the package cryptography: "
                "pip install 'kubewright[webhooks]', or name the directory that has them (--webhook-cert-dir)"
            ) from None
        certificate, origin = HeldCertificate(), f"in the Secret {secret_of(self.service)}"

        def serve(pair: KeyPair) -> None:
            certificate.use(pair.certificate, pair.key, origin)
            if self._tls is None:
                self._tls = certificate.context(self._client_ca)

        self._keeper = CertificateKeeper(self._client, self.service, self._registrations, serve)
        try:
            async with asyncio.TaskGroup() as tasks:
                keeping = tasks.create_task(self._keeper.run(), name="certificates")
                try:
                    yield
                finally:
                    keeping.cancel()
        except BaseExceptionGroup as error:
            raise cause(error) from None

    async def prepare(self) -> None:
        """Return once there is a certificate, and nothing has the API server call what is not served."""
        if not self.is_needed:
            return
        if self.service is not None:
            await self._check_registrations(self.service)
        if self._keeper is not None:
            await self._keeper.serves.wait()

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Serve while the block runs."""
        if not self.is_needed:
            yield
            return
        async with self.server:
            yield

    def _context(self) -> ssl.SSLContext:
        from kubewright.manager.serving_certificate import CertificateReads, from_authority, from_directory

        if self._url is not None:
            host = urlsplit(self._url).hostname or ""
            self._tls, self.authority = from_authority(host, self._client_ca)
        elif self._tls is None:
            from tempfile import gettempdir

            # As in controller-runtime, whose manifests mount the Secret there.
            directory = self._cert_dir or Path(gettempdir(), "k8s-webhook-server", "serving-certs")
            self._tls = from_directory(directory, self._client_ca, CertificateReads.declared(self._metrics))
        return self._tls

    async def _check_registrations(self, service: ObjectKey) -> None:
        from kubewright.certificates.registrations import check_paths, unnamed_paths

        found: list[Object] = []
        for registration in self._registrations:
            obj = await self._found(registration)
            if obj is None:
                _log.info("there is no %s yet, which has the API server call webhooks", registration)
            else:
                check_paths(registration, obj, service, self.server.routes)
                found.append(obj)
        if found and (unnamed := unnamed_paths(found, service, self.server.routes)):
            _log.warning("the API server does not call %s: no webhook of a configuration names it", ", ".join(unnamed))

    async def _found(self, registration: Registration) -> Object | None:
        attempt = 0
        while True:
            try:
                return await self._client.find(registration.kind, registration.name)
            except KubernetesError as error:
                if not error.is_temporary:
                    raise
                attempt += 1
                _log.warning("cannot read the %s: %s", registration, error)
            await asyncio.sleep(_RETRY.delay(attempt))


def _service(given: str, client: Client) -> ObjectKey:
    namespace, slash, name = str(given).rpartition("/")
    if not re.fullmatch(_NAME, name) or (slash and not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", namespace)):
        raise WebhookServiceError(
            f'webhook_service (--webhook-service) is "{given}": expected the name of a Service, such as '
            '"podmanager-webhook", or its namespace and name, such as "ops/podmanager-webhook"'
        )
    return ObjectKey(namespace or pod_namespace() or client.namespace, name)


def _checked_url(given: str) -> str:
    try:
        parts = urlsplit(str(given))
        is_right = parts.scheme == "https" and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of the port
        is_right = False
    if not is_right or parts.path.rstrip("/") or parts.query or parts.fragment or parts.username is not None:
        raise WebhookServiceError(
            f'webhook_url (--webhook-url) is "{given}": expected where the API server reaches this program, such as '
            '"https://127.0.0.1:9443"'
        )
    return str(given).rstrip("/")
