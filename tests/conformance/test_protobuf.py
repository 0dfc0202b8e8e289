"""Protobuf bodies, as kubectl and all Go clients send them for Kubernetes' own kinds."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest

from kubewright.api.apps.v1 import Deployment
from kubewright.api.codec import decode_json, origin
from kubewright.api.core.v1 import ConfigMap, Secret
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.rbac.v1 import Role
from kubewright.api.resources import Object
from kubewright.client import Client, Config
from kubewright.client.errors import APIError
from kubewright.client.session import Session
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.apimachinery.document import at, text

_HEADERS = (("Content-Type", "application/vnd.kubernetes.protobuf"), ("Accept", "application/json"))


def sent(received: Object) -> JSONValue:
    """An answer as the server sent it."""
    return decode_json(origin(received) or b"{}")


@pytest.fixture
async def session(control_plane: ControlPlane) -> AsyncIterator[Session]:
    session = Session(Config.from_kubeconfig_text(control_plane.kubeconfig()))
    yield session
    await session.aclose()


def field(number: int, content: bytes) -> bytes:
    assert number < 16
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def body_of(api_version: bytes, kind: bytes, raw: bytes) -> bytes:
    return b"k8s\0" + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


NAMED = field(1, field(1, b"settings"))


async def test_kubectl_creates_what_it_sends_as_protobuf(
    control_plane: ControlPlane, client: Client, namespace: str
) -> None:
    for command in (
        "configmap settings --from-literal=colour=blue",
        "secret generic password --from-literal=value=geheim",
        "role reader --verb=get,list --resource=pods --resource-name=a",
        "deployment web --image=nginx --replicas=2 --port=80",
    ):
        await control_plane.kubectl("--namespace", namespace, "create", *command.split())

    deployment = sent(await client.get(Deployment, "web"))
    assert at(sent(await client.get(ConfigMap, "settings")), "data") == {"colour": "blue"}
    assert at(sent(await client.get(Secret, "password")), "data") == {"value": "Z2VoZWlt"}
    assert at(sent(await client.get(Role, "reader")), "rules") == [
        {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"], "verbs": ["get", "list"]}
    ]
    assert at(deployment, "spec", "replicas") == 2
    assert at(deployment, "spec", "selector") == {"matchLabels": {"app": "web"}}
    assert at(deployment, "spec", "template", "metadata") == {"labels": {"app": "web"}}


async def test_kubectl_requests_tokens_and_permissions_in_protobuf(control_plane: ControlPlane, namespace: str) -> None:
    await control_plane.kubectl("--namespace", namespace, "create", "serviceaccount", "robot")

    token = await control_plane.kubectl("--namespace", namespace, "create", "token", "robot", "--duration=1h")
    answer = await control_plane.kubectl("auth", "can-i", "create", "pods", "--as=nobody", check=False)

    assert token.stdout.count(".") == 2
    assert answer.stdout == "no\n"


@pytest.mark.parametrize(
    "type_", [b"", field(1, field(1, b"v1")), field(1, field(2, b"ConfigMap"))], ids=["nothing", "version", "kind"]
)
async def test_the_endpoint_stands_in_for_a_kind_that_was_not_sent(
    session: Session, namespace: str, type_: bytes
) -> None:
    response = await session.request(
        "POST",
        f"/api/v1/namespaces/{namespace}/configmaps",
        request="creating",
        headers=_HEADERS,
        body=b"k8s\0" + type_ + field(2, NAMED),
    )

    created: JSONValue = msgspec.json.decode(response.body)
    assert (response.status, text(created, "kind")) == (201, "ConfigMap")
    assert text(created, "metadata", "name") == "settings"


_SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'
_UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap)"
_HANDLED = "cannot be handled as a ConfigMap"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", f"{_UNRECOGNIZED}: empty data (<empty>)"),
        (
            b"garbage",
            f"{_UNRECOGNIZED}: provided data does not appear to be a protobuf message, "
            "expected prefix [107 56 115 0] (67617262616765)",
        ),
        (b"k8s\0\x12\x09abc", f"{_UNRECOGNIZED}: unexpected EOF (6b3873001209616263)"),
        (
            body_of(b"v1", b"Nope", NAMED),
            f'Nope in version "v1" {_HANDLED}: no kind "Nope" is registered for version "v1" {_SCHEME}',
        ),
        (
            body_of(b"example.com/v1", b"ConfigMap", NAMED),
            f'ConfigMap in version "v1" {_HANDLED}: no kind "ConfigMap" is registered for version '
            f'"example.com/v1" {_SCHEME}',
        ),
        (
            body_of(b"v1", b"ConfigMap", b"\x08\x03"),
            f'ConfigMap in version "v1" {_HANDLED}: proto: wrong wireType = 0 for field ObjectMeta',
        ),
        (
            body_of(b"v1", b"ConfigMap", b'{"metadata":{"name":"settings"}}') + field(4, b"application/json"),
            f'ConfigMap in version "v1" {_HANDLED}: unexpected EOF',
        ),
    ],
    ids=["empty", "garbage", "truncated", "unknown-kind", "unknown-group", "wrong-type", "json"],
)
async def test_a_body_that_cannot_be_read_is_a_bad_request(
    session: Session, namespace: str, body: bytes, message: str
) -> None:
    with pytest.raises(APIError) as raised:
        await session.request(
            "POST", f"/api/v1/namespaces/{namespace}/configmaps", request="creating", headers=_HEADERS, body=body
        )

    assert (raised.value.code, raised.value.status.message) == (400, message)


@pytest.mark.parametrize("api_version", [b"v1", b"apps/v1", b"example.com/v9"])
async def test_options_of_a_deletion_may_come_in_any_version(
    session: Session, client: Client, namespace: str, api_version: bytes
) -> None:
    await client.create(ConfigMap(metadata=ObjectMeta(name="settings")))

    response = await session.request(
        "DELETE",
        f"/api/v1/namespaces/{namespace}/configmaps/settings",
        request="deleting",
        headers=_HEADERS,
        body=body_of(api_version, b"DeleteOptions", field(4, b"Foreground")),
    )

    # From the answer: the garbage collector may have finished the deletion by now.
    assert at(msgspec.json.decode(response.body), "metadata", "finalizers") == ["foregroundDeletion"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"garbage", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (body_of(b"v1", b"Nope", b""), f'no kind "Nope" is registered for version "v1" {_SCHEME}'),
        (body_of(b"v1", b"ConfigMap", b""), f'no kind "ConfigMap" is registered for version "v1" {_SCHEME}'),
        (body_of(b"v1", b"DeleteOptions", b"\x0a\x00"), "proto: wrong wireType = 2 for field GracePeriodSeconds"),
    ],
    ids=["garbage", "unknown-kind", "other-kind", "wrong-type"],
)
async def test_options_that_cannot_be_read_are_a_bad_request(
    session: Session, namespace: str, body: bytes, message: str
) -> None:
    with pytest.raises(APIError) as raised:
        await session.request(
            "DELETE", f"/api/v1/namespaces/{namespace}/configmaps/a", request="deleting", headers=_HEADERS, body=body
        )

    assert (raised.value.code, raised.value.status.message) == (400, message)
