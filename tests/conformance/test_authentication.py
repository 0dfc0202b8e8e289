"""Authentication: certificates, tokens of service accounts, and anonymous."""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from kubewright.api.authentication.v1 import SelfSubjectReview, TokenReview
from kubewright.api.codec import decode_json, from_json, origin
from kubewright.api.core.v1 import Node, Pod, Secret, ServiceAccount
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object
from kubewright.client import Client, Config
from kubewright.client.config.credentials import ANONYMOUS, StaticCredentials, bearer
from kubewright.client.errors import APIError, Forbidden, Unauthorized
from kubewright.controlplane import ControlPlane, certificates
from kubewright.controlplane.embedded.apimachinery.document import at, mapping, text


def sent(received: Object) -> JSONValue:
    """An answer as the server sent it."""
    return decode_json(origin(received) or b"{}")


def config_with_token(control_plane: ControlPlane, token: str) -> Config:
    config = Config.from_kubeconfig_text(control_plane.kubeconfig())
    return replace(config, credentials=StaticCredentials(bearer(token)))


async def token_of(client: Client, *audiences: str) -> str:
    """A token of the service account `robot`, which is made first when it is not there."""
    if await client.find(ServiceAccount, "robot") is None:
        await client.create(ServiceAccount(metadata=ObjectMeta(name="robot")))
    return text(sent(await client.token("robot", audiences=audiences)), "status", "token")


async def reviewed(client: Client, token: str, *audiences: str) -> JSONValue:
    spec: JSONObject = {"token": token, "audiences": [*audiences]}
    return at(sent(await client.create(from_json(TokenReview, {"spec": spec}))), "status")


async def reviewed_when_dead(client: Client, token: str) -> JSONValue:
    """The review of a token that is no longer good. The real server may think otherwise for its cache's 10 s."""
    async with asyncio.timeout(60):
        while at(review := await reviewed(client, token), "authenticated") is True:
            await asyncio.sleep(0.05)
    return review


async def test_a_certificate_is_a_user_in_groups(control_plane: ControlPlane) -> None:
    jane = control_plane.add_user("jane", ["dev", "ops"])

    async with Client(Config.from_kubeconfig_text(jane.kubeconfig)) as client:
        user = at(sent(await client.create(SelfSubjectReview())), "status", "userInfo")

    assert text(user, "username") == "jane"
    assert at(user, "groups") == ["dev", "ops", "system:authenticated"]
    credential = at(user, "extra", "authentication.kubernetes.io/credential-id")
    assert isinstance(credential, list)
    assert str(credential[0]).startswith("X509SHA256=")


async def test_a_certificate_that_has_expired_is_unauthorized(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "_NEVER", datetime.now(UTC) - timedelta(minutes=1))
    jane = control_plane.add_user("jane")

    async with Client(Config.from_kubeconfig_text(jane.kubeconfig)) as client:
        with pytest.raises(Unauthorized):
            await client.create(SelfSubjectReview())


async def test_a_token_is_its_service_account(control_plane: ControlPlane, client: Client, namespace: str) -> None:
    token = await token_of(client)

    async with Client(config_with_token(control_plane, token)) as robot:
        user = at(sent(await robot.create(SelfSubjectReview())), "status", "userInfo")
    review = await reviewed(client, token)

    assert text(user, "username") == f"system:serviceaccount:{namespace}:robot"
    assert at(user, "groups") == [
        "system:serviceaccounts",
        f"system:serviceaccounts:{namespace}",
        "system:authenticated",
    ]
    assert text(user, "uid") == (await client.get(ServiceAccount, "robot")).metadata.uid
    assert at(review, "authenticated") is True
    assert at(review, "user") == user


async def test_a_bad_token_is_unauthorized(control_plane: ControlPlane) -> None:
    async with Client(config_with_token(control_plane, "rubbish")) as client:
        with pytest.raises(Unauthorized) as refused:
            await client.create(SelfSubjectReview())

    assert refused.value.status.message == "Unauthorized"


async def test_without_credentials_one_is_anonymous(control_plane: ControlPlane) -> None:
    config = Config.from_kubeconfig_text(control_plane.kubeconfig())

    async with Client(replace(config, credentials=ANONYMOUS)) as client:
        with pytest.raises(Forbidden, match='User "system:anonymous" cannot create resource "selfsubjectreviews"'):
            await client.create(SelfSubjectReview())


async def test_a_token_for_others_is_refused_as_such(client: Client) -> None:
    token = await token_of(client, "vault", "consul")

    assert await reviewed(client, token, "other") == {
        "user": {},
        "error": '[invalid bearer token, token audiences ["vault" "consul"] is invalid for the target audiences '
        '["other"]]',
    }
    assert at(await reviewed(client, token, "other", "consul"), "audiences") == ["consul"]


async def test_a_forged_token_is_refused_as_such(client: Client) -> None:
    header, payload, signature = (await token_of(client)).split(".")

    assert await reviewed(client, "rubbish") == {"user": {}, "error": "invalid bearer token"}
    assert await reviewed(client, f"{header}.{payload}.{signature[:-8]}AAAAAAAA") == {
        "user": {},
        "error": "[invalid bearer token, go-jose/go-jose: error in cryptographic primitive]",
    }
    assert await reviewed(client, f"eyJhbGciOiJFUzI1NiIsImtpZCI6InoifQ.{payload}.{signature}") == {
        "user": {},
        "error": "[invalid bearer token, invalid signature, no keys found]",
    }


def claims_of(token: str) -> JSONObject:
    payload = token.split(".")[1]
    return mapping(decode_json(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))))


async def test_a_token_has_subject_audience_and_expiry(client: Client, namespace: str) -> None:
    claims = claims_of(await token_of(client, "vault"))
    account = await client.get(ServiceAccount, "robot")

    assert sorted(claims) == ["aud", "exp", "iat", "iss", "jti", "kubernetes.io", "nbf", "sub"]
    assert claims["aud"] == ["vault"]
    assert claims["sub"] == f"system:serviceaccount:{namespace}:robot"
    begin, end = claims["iat"], claims["exp"]
    assert isinstance(begin, int)
    assert isinstance(end, int)
    assert (end - begin, claims["nbf"]) == (3600, begin)
    assert claims["kubernetes.io"] == {
        "namespace": namespace,
        "serviceaccount": {"name": "robot", "uid": account.metadata.uid},
    }


async def test_a_token_of_a_pod_names_the_pod_and_its_node(client: Client, namespace: str) -> None:
    await token_of(client)
    node = await client.create(Node(metadata=ObjectMeta(name=f"{namespace}-node")))
    spec: JSONObject = {
        "serviceAccountName": "robot",
        "nodeName": node.metadata.name,
        "containers": [{"name": "main", "image": "busybox"}],
    }
    pod = await client.create(from_json(Pod, {"metadata": {"name": "pod"}, "spec": spec}))
    token = text(sent(await client.token("robot", bound_to=pod, expiration_seconds=3607)), "status", "token")
    claims = claims_of(token)
    user = at(await reviewed(client, token), "user")
    await client.delete(node)
    await client.delete(pod, grace_period=0)

    about = mapping(claims, "kubernetes.io")
    assert about["pod"] == {"name": "pod", "uid": pod.metadata.uid}
    assert about["node"] == {"name": node.metadata.name, "uid": node.metadata.uid}
    # Tokens that kubelets request live for a year, for clients that do not renew them.
    begin, end, warning = claims["iat"], claims["exp"], about["warnafter"]
    assert isinstance(begin, int)
    assert isinstance(end, int)
    assert isinstance(warning, int)
    assert (end - begin, warning - begin) == (365 * 24 * 3600, 3607)
    extra = mapping(user, "extra")
    assert extra["authentication.kubernetes.io/pod-name"] == ["pod"]
    assert extra["authentication.kubernetes.io/pod-uid"] == [pod.metadata.uid]
    assert extra["authentication.kubernetes.io/node-name"] == [node.metadata.name]
    assert extra["authentication.kubernetes.io/node-uid"] == [node.metadata.uid]
    assert extra["authentication.kubernetes.io/credential-id"] == [f"JTI={claims['jti']}"]
    assert await reviewed_when_dead(client, token) == {
        "user": {},
        "error": "[invalid bearer token, service account token has been invalidated]",
    }


async def test_a_token_is_invalid_once_its_bound_object_is_gone(client: Client) -> None:
    await token_of(client)
    secret = await client.create(Secret(metadata=ObjectMeta(name="it")))
    token = text(sent(await client.token("robot", bound_to=secret)), "status", "token")
    await client.delete(secret)

    assert await reviewed_when_dead(client, token) == {
        "user": {},
        "error": "[invalid bearer token, service account token has been invalidated]",
    }


async def test_a_token_dies_with_its_service_account(client: Client) -> None:
    token = await token_of(client)
    await client.delete(ServiceAccount, "robot")

    assert await reviewed_when_dead(client, token) == {
        "user": {},
        "error": '[invalid bearer token, serviceaccounts "robot" not found]',
    }


async def test_a_token_cannot_be_short_lived(client: Client) -> None:
    await token_of(client)

    with pytest.raises(APIError) as refused:
        await client.token("robot", expiration_seconds=5)

    assert refused.value.code == 422
    assert refused.value.status.message == (
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 5: '
        "may not specify a duration less than 10 minutes"
    )
