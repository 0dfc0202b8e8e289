"""Metrics over TLS, for those whom the API server permits to read them."""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.manager.scripted import running

from kubewright.api.authorization.v1 import NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from kubewright.api.core.v1 import ServiceAccount
from kubewright.api.meta import ObjectMeta
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from kubewright.client import Client
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.certificates import CertificateAuthority
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manager import Manager, PermissionsMissing
from kubewright.manager.delegated_access import ALLOWED_TTL, DENIED_TTL, DelegatedAccess
from kubewright.manager.serving import EndpointRequest, EndpointResponse
from kubewright.manager.serving_certificate import ServingCertificateError
from kubewright.testing.namespaces import unique_name
from kubewright.testing.virtual_time import run_virtual

HERE = "127.0.0.1:0"


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def get(port: int, token: str = "", tls: ssl.SSLContext | None = None) -> tuple[int, str]:
    """Status and body of /metrics over TLS."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=tls or unverified(), server_hostname="localhost"
    )
    try:
        authorization = f"Authorization: Bearer {token}\r\n" if token else ""
        writer.write(f"GET /metrics HTTP/1.1\r\nHost: localhost\r\n{authorization}Connection: close\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    return int(head.split()[1]), body.decode()


async def scraper(admin: Client, namespace: str, *, may_read: bool) -> str:
    """The token of a service account, with or without a role that permits to read metrics."""
    name = unique_name("scraper")
    account = await admin.create(ServiceAccount(metadata=ObjectMeta(name=name, namespace=namespace)))
    if may_read:
        rule = PolicyRule(non_resource_urls=["/metrics"], verbs=["get"])
        await admin.create(ClusterRole(metadata=ObjectMeta(name=name), rules=[rule]))
        await admin.create(
            ClusterRoleBinding(
                metadata=ObjectMeta(name=name),
                role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=name),
                subjects=[Subject(kind="ServiceAccount", name=name, namespace=namespace)],
            )
        )
        # A role takes effect a moment after it was made.
        path = NonResourceAttributes(path="/metrics", verb="get")
        spec = SubjectAccessReviewSpec(user=f"system:serviceaccount:{namespace}:{name}", non_resource_attributes=path)
        async with asyncio.timeout(60):
            while not (await admin.create(SubjectAccessReview(spec=spec))).status.allowed:
                await asyncio.sleep(0.05)
    return await token_of(admin, account)


async def token_of(admin: Client, account: ServiceAccount) -> str:
    token = (await admin.token(account)).status.token
    assert token is not None
    return token


async def test_only_a_token_whose_role_permits_it_reads_the_metrics(admin: Client, namespace: str) -> None:
    permitted = await scraper(admin, namespace, may_read=True)
    denied = await scraper(admin, namespace, may_read=False)
    manager = Manager(admin, metrics_address=HERE, metrics_secure=True)
    async with running(manager):
        await manager.elected.wait()
        port = manager.ports["metrics"]
        status, text = await get(port, permitted)
        assert status == 200, text
        assert "process_cpu_seconds_total" in text
        status, text = await get(port, denied)
        assert status == 403
        assert text.startswith(f"Authorization denied for user system:serviceaccount:{namespace}:scraper-")
        assert await get(port, "not.a.token") == (401, "Unauthorized\n")
        assert await get(port) == (401, "Unauthorized\n")


async def test_an_operator_that_may_not_review_tokens_fails_at_its_start(control_plane: ControlPlane) -> None:
    async with control_plane.client(control_plane.add_user(unique_name("operator"))) as client:
        manager = Manager(client, metrics_address=HERE, metrics_secure=True)
        with pytest.raises(PermissionsMissing) as raised:
            await manager.run()
    assert 'resources: ["tokenreviews"]' in str(raised.value)
    assert 'resources: ["subjectaccessreviews"]' in str(raised.value)


def test_decisions_are_reused_for_a_short_time() -> None:
    async def main() -> None:
        async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as admin:
            assert isinstance(plane, EmbeddedControlPlane)
            account = ServiceAccount(metadata=ObjectMeta(name="scraper", namespace="default"))
            token = await token_of(admin, await admin.create(account))
            handler = DelegatedAccess(admin).protect(_answer)
            query = EndpointRequest("/metrics", headers={"authorization": f"Bearer {token}"})

            def reviews() -> list[str]:
                return [event.resource for event in plane.audit.events if event.resource.endswith("reviews")]

            assert [(await handler(query)).status for _ in range(3)] == [403] * 3
            assert reviews() == ["tokenreviews", "subjectaccessreviews"]
            await _permit(admin)
            assert (await handler(query)).status == 403
            await asyncio.sleep(DENIED_TTL)
            assert (await handler(query)).status == 200
            assert reviews() == ["tokenreviews", "subjectaccessreviews", "subjectaccessreviews"]
            await admin.delete(ClusterRoleBinding, "scraper")
            await asyncio.sleep(ALLOWED_TTL - 1)
            assert (await handler(query)).status == 200
            await asyncio.sleep(1)
            assert (await handler(query)).status == 403

    run_virtual(main)


async def _answer(request: EndpointRequest) -> EndpointResponse:
    return EndpointResponse(body=b"the metrics")


async def _permit(admin: Client) -> None:
    rule = PolicyRule(non_resource_urls=["/metrics"], verbs=["get"])
    await admin.create(ClusterRole(metadata=ObjectMeta(name="scraper"), rules=[rule]))
    await admin.create(
        ClusterRoleBinding(
            metadata=ObjectMeta(name="scraper"),
            role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name="scraper"),
            subjects=[Subject(kind="ServiceAccount", name="scraper", namespace="default")],
        )
    )


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic YTpi", "token"])
async def test_without_a_bearer_token_nothing_is_reviewed(header: str) -> None:
    async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as admin:
        assert isinstance(plane, EmbeddedControlPlane)
        handler = DelegatedAccess(admin).protect(_answer)
        assert (await handler(EndpointRequest("/metrics", headers={"authorization": header}))).status == 401
        assert not [event for event in plane.audit.events if event.resource.endswith("reviews")]


async def test_a_server_that_does_not_answer_is_an_error_and_permits_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as admin:
        assert isinstance(plane, EmbeddedControlPlane)
        plane.faults.drop(lambda target: True, times=None)
        handler = DelegatedAccess(admin).protect(_answer)
        answer = await handler(EndpointRequest("/metrics", headers={"authorization": "Bearer secret"}))
    assert answer.status == 500
    assert "who may read /metrics could not be decided" in caplog.text
    assert "secret" not in caplog.text + answer.body.decode()


# The certificate


@pytest.fixture
async def admin_client() -> AsyncIterator[Client]:
    async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as client:
        yield client


def write(directory: Path, authority: CertificateAuthority) -> ssl.SSLContext:
    """A certificate for localhost into a directory; returns what trusts it."""
    pair = authority.server("metrics", hosts=["localhost"])
    (directory / "tls.crt").write_text(pair.certificate)
    (directory / "tls.key").write_text(pair.key)
    return ssl.create_default_context(cadata=authority.certificate)


async def test_new_connections_get_the_certificate_that_the_files_hold(
    admin_client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = CertificateAuthority("first"), CertificateAuthority("second")
    trusts_first = write(tmp_path, first)
    manager = Manager(admin_client, metrics_address=HERE, metrics_secure=True, metrics_cert_dir=tmp_path)
    async with running(manager):
        await manager.elected.wait()
        port = manager.ports["metrics"]
        assert (await get(port, tls=trusts_first))[0] == 401
        (tmp_path / "tls.key").write_text("damaged")
        with caplog.at_level(logging.WARNING):
            assert (await get(port, tls=trusts_first))[0] == 401
            assert (await get(port, tls=trusts_first))[0] == 401
        (warning,) = [line for line in caplog.messages if "certificate" in line]
        assert warning.startswith("the previous certificate stays in use: cannot serve with the certificate")
        trusts_second = write(tmp_path, second)
        assert (await get(port, tls=trusts_second))[0] == 401
        with pytest.raises(ssl.SSLCertVerificationError):
            await get(port, tls=trusts_first)


async def test_a_directory_without_a_certificate_is_named_at_the_start(admin_client: Client, tmp_path: Path) -> None:
    manager = Manager(admin_client, metrics_address=HERE, metrics_secure=True, metrics_cert_dir=tmp_path)
    with pytest.raises(ServingCertificateError) as raised:
        await manager.run()
    assert str(raised.value) == (
        f'cannot serve with the certificate "{tmp_path}/tls.crt" and the key "tls.key": No such file or directory'
    )


async def test_a_certificate_that_would_not_be_used_is_an_error(admin_client: Client, tmp_path: Path) -> None:
    with pytest.raises(ServingCertificateError, match="only with --metrics-secure, or metrics_secure=True"):
        Manager(admin_client, metrics_address=HERE, metrics_cert_dir=tmp_path)


async def test_without_the_package_that_makes_certificates_it_says_what_to_do(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.delitem(sys.modules, "kubewright.certificates.issuing", raising=False)
    monkeypatch.delattr("kubewright.certificates.issuing", raising=False)
    manager = Manager(admin_client, metrics_address=HERE, metrics_secure=True)
    with pytest.raises(ServingCertificateError, match=r"that has one \(--metrics-cert-dir\), or install"):
        await manager.run()
