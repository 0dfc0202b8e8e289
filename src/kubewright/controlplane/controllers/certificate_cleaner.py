"""Certificate signing requests that are done with go by themselves."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import datetime, timedelta

from cryptography import x509

from kubewright.api.certificates.v1 import CertificateSigningRequest
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.controller import Request, Watched, for_object
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.runtime import Alarms, Runtime

_DECIDED = timedelta(hours=1)
_WAITING = timedelta(hours=24)


class CertificateCleaner:
    """Deletes what was signed, denied or has failed after an hour, and what waits for that after a day.

    A request also goes when the certificate that it was for has expired.
    """

    name = "csrcleaner"

    def __init__(self, client: Client, *, clock: Clock | None = None, cache: Cache | None = None) -> None:
        self._runtime = Runtime(client, cache)
        self._client = self._runtime.client
        self._clock = clock or SystemClock()
        self._alarms = Alarms[Request](self._clock)

    async def run(self) -> None:
        """Watch and delete until cancelled."""
        requests = Watched(self._runtime.cache, CertificateSigningRequest, for_object)
        await self._runtime.run(self.name, self.reconcile, requests, self._alarms)

    async def reconcile(self, key: Request) -> None:
        """Delete one request when it is time."""
        request = await self._client.find(CertificateSigningRequest, key)
        if request is None:
            return
        due = min(_ends(request), default=None)
        if due is None:
            return
        left = (due - self._clock.now()).total_seconds()
        if left > 0:
            self._alarms.set(key, left)
        else:
            await self._client.delete(request, uid=request.metadata.uid, missing_ok=True)


def _ends(request: CertificateSigningRequest) -> Iterator[datetime]:
    """When it is to be deleted for each of the reasons there are."""
    certificate, created = request.status.certificate, request.metadata.creation_timestamp
    if not request.status.conditions and created is not None:
        yield created + _WAITING
    for condition in request.status.conditions:
        if condition.type not in ("Approved", "Denied", "Failed"):
            continue
        is_waiting = condition.type == "Approved" and not certificate
        if condition.last_update_time is not None:
            yield condition.last_update_time + (_WAITING if is_waiting else _DECIDED)
        if condition.type == "Approved" and certificate:
            yield from _expiry(certificate)


def _expiry(certificate: str) -> Iterator[datetime]:
    try:
        yield x509.load_pem_x509_certificate(base64.b64decode(certificate)).not_valid_after_utc
    except ValueError:
        return  # what another signer has put there may be a certificate to the server, but not to us
