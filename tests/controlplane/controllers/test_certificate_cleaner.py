"""When certificate signing requests go by themselves, and what a certificate is worth when it has expired."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubewright.api.authentication.v1 import SelfSubjectReview
from kubewright.api.certificates.v1 import CertificateSigningRequest, CertificateSigningRequestCondition
from kubewright.api.codec import from_json
from kubewright.client import Client
from kubewright.client.errors import Unauthorized
from kubewright.client.wait import Field, deleted
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.controlplane.user import User
from kubewright.testing.virtual_time import virtual

KEY = ec.generate_private_key(ec.SECP256R1())
CLIENT, OTHER = "kubernetes.io/kube-apiserver-client", "example.com/none"
MINUTE, HOUR = 60.0, 3600.0


@asynccontextmanager
async def cluster() -> AsyncIterator[tuple[EmbeddedControlPlane, Client]]:
    async with ControlPlane.embedded(nodes=0) as plane, plane.client() as client:
        yield plane, client


async def request(client: Client, condition: str = "", signer: str = OTHER, seconds: int | None = None) -> None:
    """Create a request with the name `it`, and decide about it."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    signed = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(KEY, hashes.SHA256())
    pem = base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()
    spec = {"request": pem, "signerName": signer, "usages": ["client auth"], "expirationSeconds": seconds}
    made = await client.create(from_json(CertificateSigningRequest, {"metadata": {"name": "it"}, "spec": spec}))
    if condition:
        made.status.conditions = [CertificateSigningRequestCondition(type=condition, status="True")]
        endpoint = client.status if condition == "Failed" else client.subresource("approval")
        await endpoint.update(made)


async def certificate(client: Client) -> str:
    is_there = Field("status.certificate").satisfies(bool, "is there")
    found = await client.wait_for(CertificateSigningRequest, "it", is_there, timeout=MINUTE)
    assert found is not None
    return base64.b64decode(found.status.certificate or "").decode()


async def lifetime(client: Client) -> timedelta:
    """How long the request is there, to the minute."""
    loop = asyncio.get_running_loop()
    begin = loop.time()
    await client.wait_for(CertificateSigningRequest, "it", deleted, timeout=100 * HOUR)
    return timedelta(minutes=round((loop.time() - begin) / MINUTE))


@pytest.mark.parametrize(
    ("condition", "signer", "hours"),
    [("", OTHER, 24), ("Approved", OTHER, 24), ("Approved", CLIENT, 1), ("Denied", OTHER, 1), ("Failed", OTHER, 1)],
    ids=["pending", "approved but not signed", "signed", "denied", "failed"],
)
def test_what_is_decided_goes_after_an_hour_and_what_waits_after_a_day(condition: str, signer: str, hours: int) -> None:
    @virtual
    async def run() -> None:
        async with cluster() as (_, client):
            await request(client, condition, signer)
            assert await lifetime(client) == timedelta(hours=hours)

    run()


@virtual
async def test_a_request_goes_when_its_certificate_expires() -> None:
    async with cluster() as (_, client):
        await request(client, "Approved", CLIENT, seconds=600)
        await certificate(client)
        assert await lifetime(client) == timedelta(minutes=10)


@virtual
async def test_a_certificate_that_was_issued_is_refused_once_it_has_expired() -> None:
    async with cluster() as (plane, client):
        await request(client, "Approved", CLIENT, seconds=600)
        pem = await certificate(client)
        key = KEY.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
        async with plane.client(User("jane", (), plane.url, plane.ca_certificate, pem, key)) as jane:
            await asyncio.sleep(9 * MINUTE)
            assert (await jane.create(SelfSubjectReview())).status.user_info is not None
            await asyncio.sleep(2 * MINUTE)
            with pytest.raises(Unauthorized):
                await jane.create(SelfSubjectReview())
