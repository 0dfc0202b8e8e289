"""When a kubeconfig is issued, renewed and revoked. In virtual time."""

from __future__ import annotations

import asyncio
import base64
from datetime import timedelta

import msgspec
import pytest
from operators.user import Options, User, UserSpec
from operators.user.kubeconfig import KEY, Credential, life_of, public_config
from operators.user.names import CREDENTIAL, OWNER, SYSTEM_NAMESPACE, kubeconfig_of
from operators.user.tests.deploying import Site, is_accepted, operating, site, vacant
from operators.user.types import DEFAULT_EXPIRATION

from kubewright import Client, Config, Forbidden, ObjectMeta, now
from kubewright.api.authentication.v1 import TokenRequest
from kubewright.api.core.v1 import ConfigMap, Secret, ServiceAccount
from kubewright.api.events.v1 import Event
from kubewright.api.markers import JSONObject
from kubewright.client import MergePatch
from kubewright.client.wait import Field, exists
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.patterns import get_condition
from kubewright.testing import count_requests, settled, virtual

EmbeddedSite = Site[EmbeddedControlPlane]

TOKENS = "POST /api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
THOUSAND_SECONDS = UserSpec(csr_expiration_seconds=1000)


def credential_of(secret: Secret) -> Credential:
    return msgspec.json.decode(secret.metadata.annotations[CREDENTIAL], type=Credential)


async def pass_(here: EmbeddedSite, seconds: float = 5) -> None:
    """Let so much time pass, and then until nothing is to be done."""
    await asyncio.sleep(seconds)
    await settled(here.manager)


async def respecify(here: EmbeddedSite, spec: JSONObject) -> None:
    await here.admin.patch(User, "alice", MergePatch({"spec": spec}))
    await pass_(here)


@virtual
async def test_no_event_reports_a_kubeconfig_that_could_not_be_written() -> None:
    async with site() as here:
        here.plane.faults.fail(lambda target: (target.resource, target.verb) == ("secrets", "patch"), times=None)
        await here.admin.create(User(metadata=ObjectMeta(name="alice")))
        await here.admin.wait_for(User, "alice", Field("status.conditions").satisfies(bool, "is set"))
        await asyncio.sleep(5)
        condition = get_condition(await here.admin.get(User, "alice"), "KubeConfigSyncReady")
        assert condition is not None
        assert condition.status == "False"
        assert await issued_events(here) == []
        here.plane.faults.clear()
        await pass_(here, 60)
        reported = (await here.admin.get(User, "alice")).status.kube_config_secret
        assert reported is not None
        valid = f"valid until {reported.expiration_time:%Y-%m-%d %H:%M:%S} UTC"
        assert await issued_events(here) == [f"Issued the kubeconfig user-system/kubeconfig-alice, {valid}"]


async def issued_events(here: EmbeddedSite) -> list[str | None]:
    found = await here.admin.list(Event)
    return [event.note for event in found if event.reason == "KubeConfigIssued"]


@virtual
async def test_a_kubeconfig_is_that_of_the_owner_of_the_workspace() -> None:
    async with site() as here:
        user = await here.create()
        config = await here.kubeconfig()
        assert (config.server, config.namespace) == (here.admin.config.server, "ns-alice")
        async with Client(config) as alice:
            await alice.create(ConfigMap(metadata=ObjectMeta(name="notes")))
            for elsewhere in ("default", SYSTEM_NAMESPACE):
                with pytest.raises(Forbidden, match="system:serviceaccount:user-system:alice"):
                    await alice.list(ConfigMap, namespace=elsewhere)
        reported = user.status.kube_config_secret
        assert reported is not None
        assert (reported.namespace, reported.name) == (SYSTEM_NAMESPACE, kubeconfig_of("alice"))
        assert (await here.secret()).type == "Opaque"


@virtual
async def test_the_life_of_a_token_is_that_of_the_spec_also_below_the_default_and_zero_is_the_default() -> None:
    async with site() as here:
        for name, given, expected in (("a", 600, 600), ("b", 0, DEFAULT_EXPIRATION), ("c", 2**31 - 1, 2**31 - 1)):
            user = await here.create(name, UserSpec(csr_expiration_seconds=given))
            credential = credential_of(await here.secret(name))
            assert user.metadata.creation_timestamp is not None
            life = credential.expires - user.metadata.creation_timestamp
            assert timedelta(0) <= life - timedelta(seconds=expected) <= timedelta(seconds=1)
            assert user.status.observed_csr_expiration_seconds == expected
            assert user.status.kube_config_secret is not None
            assert user.status.kube_config_secret.expiration_time == credential.expires


@virtual
async def test_a_token_is_renewed_after_80_percent_of_its_life_and_the_old_one_lives_on_to_its_end() -> None:
    async with site() as here:
        before = await here.create(spec=THOUSAND_SECONDS)
        old, old_secret = await here.kubeconfig(), await here.secret()
        issued = credential_of(old_secret).expires - timedelta(seconds=1000)

        await asyncio.sleep((issued - now()).total_seconds() + 799)
        assert (await here.secret()).data == old_secret.data
        await pass_(here)
        new, new_secret = await here.kubeconfig(), await here.secret()
        assert new_secret.data != old_secret.data
        assert new_secret.metadata.uid == old_secret.metadata.uid
        assert [await is_accepted(each) for each in (old, new)] == [True, True]
        after = await here.admin.get(before)
        assert after.status.kube_config_secret != before.status.kube_config_secret
        assert after.status.phase == "Active"

        await pass_(here, 300)  # the server allows for clocks that differ by a minute
        assert [await is_accepted(each) for each in (old, new)] == [False, True]


def test_a_token_that_the_server_has_shortened_is_renewed_by_what_it_answered() -> None:
    """By our own clock, which may be another one: by the server's, a token of ten minutes might be renewed for ever."""
    theirs = now() - timedelta(hours=3)
    answer = TokenRequest(metadata=ObjectMeta(creation_timestamp=theirs))
    answer.status.expiration_timestamp = theirs + timedelta(seconds=1000)
    expires, renewal = life_of(answer, 10**9)
    assert expires == theirs + timedelta(seconds=1000)
    assert abs(renewal - now() - timedelta(seconds=800)) < timedelta(seconds=5)


@virtual
async def test_a_rotation_revokes_all_tokens_before_it_and_happens_once() -> None:
    async with site() as here:
        await here.create()
        old, old_secret = await here.kubeconfig(), await here.secret()
        moment = now()
        await respecify(here, {"kubeConfigRotateAt": moment.isoformat()})
        new_secret = await here.secret()
        assert [await is_accepted(each) for each in (old, await here.kubeconfig())] == [False, True]
        assert new_secret.metadata.uid != old_secret.metadata.uid
        user = await here.admin.get(User, "alice")
        assert user.status.observed_kube_config_rotate_at == moment
        assert user.status.phase == "Active"
        await respecify(here, {"kubeConfigRotateAt": None})
        assert await here.secret() == new_secret


@virtual
async def test_a_rotation_in_the_future_happens_then() -> None:
    async with site() as here:
        await here.create()
        old = await here.kubeconfig()
        await respecify(here, {"kubeConfigRotateAt": (now() + timedelta(hours=3)).isoformat()})
        await pass_(here, 2 * 3600)
        assert await is_accepted(old)
        await pass_(here, 3600)
        assert [await is_accepted(each) for each in (old, await here.kubeconfig())] == [False, True]


@virtual
async def test_another_life_is_another_token_and_revokes_the_old_one() -> None:
    async with site() as here:
        await here.create()
        old = await here.kubeconfig()
        await respecify(here, {"csrExpirationSeconds": 3600})
        assert credential_of(await here.secret()).seconds == 3600
        assert [await is_accepted(each) for each in (old, await here.kubeconfig())] == [False, True]


@virtual
async def test_a_kubeconfig_whose_secret_is_lost_is_revoked_and_issued_again_at_once() -> None:
    async with site() as here:
        await here.create()
        old = await here.kubeconfig()
        await here.admin.delete(await here.secret())
        await pass_(here)
        assert [await is_accepted(each) for each in (old, await here.kubeconfig())] == [False, True]


@virtual
async def test_a_kubeconfig_that_another_client_has_changed_is_replaced() -> None:
    changes: list[JSONObject] = [
        {"data": {KEY: base64.b64encode(b"apiVersion: v1").decode()}},
        {"data": None},
        {"data": {KEY: None, "other": "eA=="}},
        {"data": {"other": "eA=="}},
        {"metadata": {"annotations": {CREDENTIAL: None}}},
        {"metadata": {"annotations": {CREDENTIAL: "{"}}},
        {"metadata": {"ownerReferences": None}},
        {"immutable": True},
    ]
    async with site() as here:
        await here.create()
        for changed in changes:
            old = await here.kubeconfig()
            await here.admin.patch(Secret, (await here.secret()).key, MergePatch(changed))
            await pass_(here)
            assert await is_accepted(await here.kubeconfig()), changed
            assert not await is_accepted(old), changed


@virtual
async def test_a_secret_that_was_there_before_the_user_is_replaced() -> None:
    async with site() as here:
        metadata = ObjectMeta(name=kubeconfig_of("alice"), namespace=SYSTEM_NAMESPACE)
        await here.admin.create(Secret(metadata=metadata, data={KEY: "eA=="}))
        await here.create()
        assert await is_accepted(await here.kubeconfig())


@virtual
async def test_a_secret_that_something_else_controls_is_left_alone() -> None:
    async with site() as here:
        other = await here.admin.create(ConfigMap(metadata=ObjectMeta(name="other", namespace=SYSTEM_NAMESPACE)))
        metadata = ObjectMeta(name=kubeconfig_of("alice"), namespace=SYSTEM_NAMESPACE)
        metadata.owner_references = [other.as_owner()]
        taken = await here.admin.create(Secret(metadata=metadata))
        user = await here.admin.create(User(metadata=ObjectMeta(name="alice")))
        await here.admin.wait_for(user, Field("status.conditions").satisfies(bool, "is set"))
        user = await here.admin.get(user)
        found = get_condition(user, "KubeConfigSyncReady")
        assert found is not None
        assert (found.status, found.reason) == ("False", "NameTaken")
        assert "the Secret user-system/kubeconfig-alice exists already and is controlled by the ConfigMap other" in (
            found.message
        )
        assert user.status.phase == "Pending"
        assert (await here.secret()).metadata.uid == taken.metadata.uid


@virtual
async def test_a_service_account_that_is_made_again_gets_a_new_token() -> None:
    """The server refuses the tokens of a service account that was deleted, whatever its name."""
    async with site() as here:
        await here.create()
        old = await here.kubeconfig()
        await here.admin.delete(ServiceAccount, "alice", namespace=SYSTEM_NAMESPACE)
        await pass_(here)
        assert [await is_accepted(each) for each in (old, await here.kubeconfig())] == [False, True]


@virtual
async def test_a_secret_that_was_not_filled_when_the_process_ended_is_filled() -> None:
    async with vacant() as (plane, admin, own):
        plane.faults.fail(lambda target: target.verb == "patch" and target.resource == "secrets", times=None)
        async with operating(plane, admin, own):
            user = await admin.create(User(metadata=ObjectMeta(name="alice")))
            await admin.wait_for(Secret, kubeconfig_of("alice"), exists, namespace=SYSTEM_NAMESPACE)
        plane.faults.clear()
        async with operating(plane, admin, own) as restarted:
            assert not (await restarted.secret()).data
            await restarted.active(user)
            assert await is_accepted(await restarted.kubeconfig())


@virtual
async def test_a_secret_for_a_token_that_does_not_expire_is_replaced() -> None:
    """Filled, it would have both tokens: that of the kubeconfig, and one by the controller of such Secrets."""
    async with site() as here:
        user = await here.create()
        metadata = ObjectMeta(
            name=kubeconfig_of("alice"), namespace=SYSTEM_NAMESPACE, owner_references=[user.as_owner()]
        )
        metadata.annotations["kubernetes.io/service-account.name"] = "alice"
        metadata.labels[OWNER] = "alice"
        await here.admin.delete(await here.secret())
        await here.admin.create(Secret(metadata=metadata, type="kubernetes.io/service-account-token"))
        await pass_(here)
        secret = await here.secret()
        assert (secret.type, [*secret.data]) == ("Opaque", [KEY])
        assert await is_accepted(await here.kubeconfig())


@virtual
async def test_another_address_of_the_server_is_another_kubeconfig_and_revokes_nothing() -> None:
    async with vacant() as (plane, admin, own):
        async with operating(plane, admin, own) as here:
            await here.create()
            old = await here.kubeconfig()
        async with operating(plane, admin, own, Options(api_server_url="https://kubernetes.example.com")) as here:
            await pass_(here)
            assert (await here.kubeconfig()).server == "https://kubernetes.example.com:443"
        assert await is_accepted(old)


def test_a_kubeconfig_has_neither_the_credentials_nor_the_proxy_of_the_operator() -> None:
    text = """
        apiVersion: v1
        kind: Config
        current-context: it
        contexts: [{name: it, context: {cluster: it, user: it}}]
        clusters: [{name: it, cluster: {server: "https://here", proxy-url: "http://me:hunter2@proxy:80"}}]
        users: [{name: it, user: {token: s3cr3t}}]
    """
    config = Config.from_kubeconfig_text(text)
    public = public_config(config, "").to_kubeconfig(token="theirs")
    assert "https://here" in public
    assert "theirs" in public
    assert not any(word in public for word in ("s3cr3t", "hunter2", "proxy"))


@virtual
async def test_of_secrets_only_kubeconfigs_are_watched() -> None:
    async with site() as here:
        await here.create()
        unrelated = Secret(metadata=ObjectMeta(name="unrelated", namespace=SYSTEM_NAMESPACE))
        await here.admin.create(unrelated)
        await pass_(here)
        with count_requests(here.own) as requests:
            assert await here.manager.client.find(unrelated) is not None
            assert await here.manager.client.find(await here.secret()) is not None
        assert requests.reads == 1, "what is not watched is read from the server"
        needed = [each for each in here.manager.needs if each.kind is Secret]
        assert {each.namespace for each in needed} == {SYSTEM_NAMESPACE}
