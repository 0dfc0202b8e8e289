"""What becomes of a Secret that lacks something, or was changed by others. Nothing here needs a server."""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from operators.devbox import Devbox
from operators.devbox.names import AUTHORIZED_KEYS, ENV_PROFILE, JWT_SECRET, PRIVATE_KEY, PUBLIC_KEY
from operators.devbox.secret import complete
from operators.devbox.ssh_keys import key_pair_of, new_key_pair
from operators.devbox.tests.world import devbox, running_world

from kubewright.api.core.v1 import EnvVar, EnvVarSource, Event, Pod, Secret, SecretKeySelector
from kubewright.client import MergePatch
from kubewright.client.wait import Field, condition
from kubewright.patterns import get_condition
from kubewright.testing import virtual

KEYS = [AUTHORIZED_KEYS, ENV_PROFILE, JWT_SECRET, PRIVATE_KEY, PUBLIC_KEY]


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def text(secret: Secret, key: str) -> str:
    return b64decode(secret.data[key]).decode()


@pytest.fixture
def made() -> Secret:
    secret = Secret()
    complete(secret, devbox())
    return secret


def test_it_has_all_keys_from_the_beginning(made: Secret) -> None:
    assert sorted(made.data) == sorted(KEYS)
    assert text(made, AUTHORIZED_KEYS) == text(made, PUBLIC_KEY)


@pytest.mark.parametrize("key", [AUTHORIZED_KEYS, ENV_PROFILE, PUBLIC_KEY])
@pytest.mark.parametrize("damage", [None, "", "bm8="])
def test_what_depends_on_another_key_is_made_of_it_again(made: Secret, key: str, damage: str | None) -> None:
    before = dict(made.data)
    if damage is None:
        del made.data[key]
    else:
        made.data[key] = damage
    complete(made, devbox())
    if key == AUTHORIZED_KEYS and damage:
        before[key] = damage  # a user may permit other keys
    assert made.data == before


def test_a_lost_jwt_secret_is_replaced_and_so_is_the_profile_that_has_it(made: Secret) -> None:
    before = dict(made.data)
    made.data[JWT_SECRET] = ""
    complete(made, devbox())
    assert {key for key in KEYS if made.data[key] != before[key]} == {JWT_SECRET, ENV_PROFILE}
    assert f"DEVBOX_JWT_SECRET='{text(made, JWT_SECRET)}'" in text(made, ENV_PROFILE)


@pytest.mark.parametrize("damage", [None, "", "Cg=="])
def test_a_private_key_that_is_missing_is_made_with_all_that_belongs_to_it(made: Secret, damage: str | None) -> None:
    before = dict(made.data)
    if damage is None:
        del made.data[PRIVATE_KEY]
    else:
        made.data[PRIVATE_KEY] = damage
    assert complete(made, devbox())
    changed = {key for key in KEYS if made.data[key] != before[key]}
    assert changed == {PRIVATE_KEY, PUBLIC_KEY, AUTHORIZED_KEYS}
    assert text(made, AUTHORIZED_KEYS) == text(made, PUBLIC_KEY)


def test_keys_that_a_user_has_permitted_stay_permitted_when_the_private_key_is_made_again(made: Secret) -> None:
    other = f"{new_key_pair().public} me@home"
    made.data[AUTHORIZED_KEYS] = encoded(f"{text(made, PUBLIC_KEY)}\n{other}\n")
    del made.data[PRIVATE_KEY]
    complete(made, devbox())
    assert text(made, AUTHORIZED_KEYS).splitlines() == [other, text(made, PUBLIC_KEY)]


@pytest.mark.parametrize("is_permitted", [True, False])
def test_a_private_key_that_a_user_replaces_is_permitted_in_the_place_of_the_one_before(
    made: Secret, is_permitted: bool
) -> None:
    pair, other = new_key_pair(), f"{new_key_pair().public} me@home"
    made.data[AUTHORIZED_KEYS] = encoded(f"{text(made, PUBLIC_KEY)} it\n\n{other}" if is_permitted else other)
    made.data[PRIVATE_KEY] = encoded(pair.private)
    complete(made, devbox())
    assert text(made, AUTHORIZED_KEYS).splitlines() == ([other, pair.public] if is_permitted else [other])
    assert text(made, PUBLIC_KEY) == pair.public


@pytest.mark.parametrize("private", ["bm8=", "/////w==", "passphrase"])
@pytest.mark.parametrize("missing", [[], [PUBLIC_KEY], [PUBLIC_KEY, AUTHORIZED_KEYS]])
def test_a_private_key_that_cannot_be_read_is_never_replaced_and_keeps_no_pod_from_starting(
    made: Secret, private: str, missing: list[str]
) -> None:
    """No pod starts that mounts a key which is not there."""
    made.data[PRIVATE_KEY] = encoded(with_passphrase()) if private == "passphrase" else private
    for key in missing:
        del made.data[key]
    before = dict(made.data)
    assert not complete(made, devbox())
    assert made.data == {**dict.fromkeys(missing, ""), **before}


@pytest.mark.parametrize("format_", [PrivateFormat.OpenSSH, PrivateFormat.TraditionalOpenSSL])
def test_a_users_own_rsa_key_is_overwritten_by_one_of_ed25519(made: Secret, format_: PrivateFormat) -> None:
    key = rsa.generate_private_key(65537, 2048)
    private = key.private_bytes(Encoding.PEM, format_, NoEncryption()).decode()
    made.data |= {PRIVATE_KEY: encoded(private), AUTHORIZED_KEYS: ""}
    assert complete(made, devbox())
    assert text(made, PRIVATE_KEY) == private
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    assert (text(made, PUBLIC_KEY), text(made, AUTHORIZED_KEYS)) == (public, public)


def with_passphrase() -> str:
    key, encryption = ed25519.Ed25519PrivateKey.generate(), BestAvailableEncryption(b"secret")
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


def test_a_key_pair_of_the_users_own_is_kept_and_so_are_comments(made: Secret) -> None:
    pair = new_key_pair()
    public = f"{pair.public} me@home"
    made.data |= {PRIVATE_KEY: encoded(pair.private), PUBLIC_KEY: encoded(public), AUTHORIZED_KEYS: encoded(public)}
    made.data["MORE"] = encoded("of the user's own")
    before = dict(made.data)
    complete(made, devbox())
    assert made.data == before


def test_the_profile_follows_the_environment(made: Secret) -> None:
    changed = devbox()
    source = EnvVarSource(secret_key_ref=SecretKeySelector(name="other", key="password"))
    changed.spec.config.env = [
        EnvVar(name="A", value="it's"),
        EnvVar(name="B"),
        EnvVar(name="C", value_from=source),
        EnvVar(name="not-a-name", value="x"),
    ]
    complete(made, changed)
    jwt = text(made, JWT_SECRET)
    assert text(made, ENV_PROFILE) == f"export A='it'\\''s'\nexport B=''\nexport DEVBOX_JWT_SECRET='{jwt}'\n"


@virtual
async def test_no_secret_is_shown_in_status_events_or_pods() -> None:
    async with running_world() as world:
        await world.run()
        secret = await world.admin.get(Secret, "it")
        secrets = [text(secret, PRIVATE_KEY).splitlines()[2], text(secret, JWT_SECRET)]
        secrets.append("no key at all")
        await world.admin.patch(Secret, "it", MergePatch({"data": {PRIVATE_KEY: encoded(secrets[-1])}}))
        reported = Field("status.conditions").satisfies(lambda found: "KeyUnreadable" in str(found), "say so")
        await world.admin.wait_for(Devbox, "it", reported, timeout=60)
        events = await world.events()
        assert ("Warning", "KeyUnreadable") in [(type_, reason) for type_, reason, _ in events]
        shown = f"{await world.read()} {await world.admin.list(Event)} {await world.admin.list(Pod)}"
        assert not [each for each in secrets if each in shown]


@virtual
async def test_a_private_key_that_cannot_be_read_is_reported_until_it_is_removed_and_stops_nothing() -> None:
    async with running_world() as world:
        await world.run()
        await world.admin.patch(Secret, "it", MergePatch({"data": {PRIVATE_KEY: encoded("no key at all")}}))
        await world.set_state("Paused")
        paused = await world.reaches("Paused")
        ready = get_condition(paused, "Ready")
        assert ready is not None
        assert (ready.status, ready.reason) == ("False", "KeyUnreadable")
        assert "Correct it, or remove it to have a new pair made" in ready.message
        await world.at_rest()
        assert text(await world.admin.get(Secret, "it"), PRIVATE_KEY) == "no key at all"
        reports = [reason for _, reason, _ in await world.events()]
        assert reports.count("KeyUnreadable") == 1
        await world.admin.patch(Secret, "it", MergePatch({"data": {PRIVATE_KEY: None}}))
        await world.admin.wait_for(Devbox, "it", condition("Ready"), timeout=60)
        assert key_pair_of(text(await world.admin.get(Secret, "it"), PRIVATE_KEY)) is not None


@virtual
async def test_a_private_key_that_is_put_there_while_another_one_is_made_is_kept() -> None:
    async with running_world() as world:
        await world.run()
        await world.at_rest()
        world.plane.faults.delay(lambda target: (target.verb, target.resource) == ("patch", "secrets"), 5)
        secret = await world.admin.get(Secret, "it")
        del secret.data[PRIVATE_KEY]
        secret = await world.admin.update(secret)
        await asyncio.sleep(1)
        mine = secret.data[PRIVATE_KEY] = encoded(new_key_pair().private)
        await world.admin.update(secret)
        await world.at_rest()
        assert (await world.admin.get(Secret, "it")).data[PRIVATE_KEY] == mine


@virtual
async def test_a_secret_that_the_cache_does_not_show_keeps_its_keys() -> None:
    """The operator caches only what has its labels."""
    async with running_world() as world:
        await world.run()
        before = await world.admin.get(Secret, "it")
        await world.admin.patch(Secret, "it", MergePatch({"metadata": {"labels": None}}))
        labelled = Field("metadata.labels").satisfies(lambda labels: bool(labels), "are there")
        after = await world.admin.wait_for(Secret, "it", labelled, timeout=60)
        assert after is not None
        assert (after.data, after.metadata.labels) == (before.data, before.metadata.labels)
