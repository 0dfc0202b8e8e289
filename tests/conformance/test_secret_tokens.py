"""Tokens of service accounts in Secrets: filled in, valid without an end, and gone with Secret or service account."""

from __future__ import annotations

import base64

from tests.conformance.test_authentication import claims_of, config_with_token, reviewed, reviewed_when_dead, sent
from tests.conformance.workload_steps import eventually, until

from kubewright.api.authentication.v1 import SelfSubjectReview
from kubewright.api.core.v1 import ObjectReference, Secret, ServiceAccount
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, MergePatch
from kubewright.client.wait import deleted
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.apimachinery.document import at

NAME, UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"


async def account(client: Client, name: str = "robot") -> ServiceAccount:
    return await client.create(ServiceAccount(metadata=ObjectMeta(name=name)))


async def secret(client: Client, name: str, account: str = "robot", **annotations: str) -> Secret:
    metadata = ObjectMeta(name=name, annotations={NAME: account, **annotations})
    return await client.create(Secret(metadata=metadata, type="kubernetes.io/service-account-token"))


async def token(client: Client, secret: Secret) -> str:
    filled = await until(client, secret, lambda found: bool(found.data.get("token")))
    return base64.b64decode(filled.data["token"]).decode()


async def test_a_secret_gets_a_token_that_is_its_service_account(
    control_plane: ControlPlane, client: Client, namespace: str
) -> None:
    robot = await account(client)
    made = await secret(client, "it")
    value = await token(client, made)
    filled = await client.get(Secret, "it")
    async with Client(config_with_token(control_plane, value)) as it:
        user = at(sent(await it.create(SelfSubjectReview())), "status", "userInfo")

    assert {name: base64.b64decode(data).decode() for name, data in filled.data.items()} == {
        "ca.crt": control_plane.ca_certificate,
        "namespace": namespace,
        "token": value,
    }
    assert filled.metadata.annotations == {NAME: "robot", UID: robot.metadata.uid}
    # Without an end, and without an audience.
    assert claims_of(value) == {
        "iss": "kubernetes/serviceaccount",
        "kubernetes.io/serviceaccount/namespace": namespace,
        "kubernetes.io/serviceaccount/secret.name": "it",
        "kubernetes.io/serviceaccount/service-account.name": "robot",
        "kubernetes.io/serviceaccount/service-account.uid": robot.metadata.uid,
        "sub": f"system:serviceaccount:{namespace}:robot",
    }
    assert user == {
        "username": f"system:serviceaccount:{namespace}:robot",
        "uid": robot.metadata.uid,
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
    }
    issuer = "https://kubernetes.default.svc.cluster.local"
    assert await reviewed(client, value, "vault") == {
        "user": {},
        "error": f'[invalid bearer token, token audiences ["{issuer}"] is invalid for the target audiences ["vault"]]',
    }
    assert at(await reviewed(client, value, "vault", issuer), "audiences") == [issuer]


async def test_what_is_removed_from_the_secret_is_filled_in_again(client: Client) -> None:
    await account(client)
    made = await secret(client, "it")
    await token(client, made)
    filled = await client.get(Secret, "it")
    await client.patch(made, MergePatch({"data": {"ca.crt": "YQ==", "namespace": None}}))

    await until(client, made, lambda found: found.data == filled.data)


async def test_a_token_is_invalid_without_its_secret(client: Client, namespace: str) -> None:
    """All in one, as the real server trusts a token for up to ten seconds after it has seen it."""
    await account(client)
    names = ("deleted", "renewed", "marked")
    made = {name: await secret(client, name) for name in names}
    orphaned = await secret(client, "orphaned", (await account(client, "other")).metadata.name)
    tokens = {name: await token(client, made[name]) for name in names}
    tokens["orphaned"] = await token(client, orphaned)
    for value in tokens.values():
        assert at(await reviewed(client, value), "authenticated") is True
    await client.delete(made["deleted"])
    await client.patch(made["renewed"], MergePatch({"data": {"token": None}}))
    label = "kubernetes.io/legacy-token-invalid-since"
    await client.patch(made["marked"], MergePatch({"metadata": {"labels": {label: "2026-01-02"}}}))
    await client.delete(ServiceAccount, "other")

    reasons = {
        "deleted": "Token has been invalidated",
        "renewed": "Token does not match server's copy",
        "marked": f"the token in secret {namespace}/marked for service account {namespace}/robot has been marked "
        "invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the "
        f"'{label}' label from the secret to temporarily allow use of this token",
        # Its Secret has gone with the service account.
        "orphaned": "Token has been invalidated",
    }
    await client.wait_for(Secret, "orphaned", deleted, timeout=60)
    for name, why in reasons.items():
        review = await reviewed_when_dead(client, tokens[name])
        assert (name, review) == (name, {"user": {}, "error": f"[invalid bearer token, {why}]"})


async def test_a_secret_goes_with_the_service_account_that_it_is_of(client: Client) -> None:
    robot = await account(client)
    kept = await secret(client, "kept")
    await secret(client, "of-none", account="nobody")
    await secret(client, "of-another", **{UID: "1e3c5dee-0000-4000-8000-000000000000"})
    for name in ("of-none", "of-another"):
        await client.wait_for(Secret, name, deleted, timeout=60)
    await token(client, kept)
    await client.delete(robot)
    await account(client)

    await client.wait_for(Secret, "kept", deleted, timeout=60)


async def test_a_service_account_refers_to_no_secret_that_was_deleted(client: Client) -> None:
    robot = await account(client)
    made = await secret(client, "it")
    await token(client, made)
    robot = await client.get(ServiceAccount, "robot")
    robot.secrets = [ObjectReference(name="it"), ObjectReference(name="other")]
    await client.update(robot)
    await client.delete(made)

    found = await eventually(lambda: client.get(ServiceAccount, "robot"), lambda found: len(found.secrets) == 1)
    assert [reference.name for reference in found.secrets] == ["other"]
