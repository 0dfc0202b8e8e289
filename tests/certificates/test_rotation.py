"""Which certificates come next, by a clock that the tests set."""

from __future__ import annotations

import ssl
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store

from kubewright.api.kinds import ObjectKey
from kubewright.certificates.issuing import Authority, KeyPair
from kubewright.certificates.rotation import CertificateSet, DamagedCertificates, Rotation

SERVICE = ObjectKey("ops", "lamp-webhook")
START = datetime(2026, 5, 1, tzinfo=UTC)
DAY = timedelta(days=1)
rotation = Rotation(SERVICE)


def first(now: datetime = START) -> CertificateSet:
    step = rotation.next(None, now, is_trusted=False)
    assert step is not None
    return step.result


def stepped(held: CertificateSet, now: datetime, *, is_trusted: bool = False) -> CertificateSet:
    step = rotation.next(held, now, is_trusted=is_trusted)
    assert step is not None
    return step.result


def is_settled(held: CertificateSet, now: datetime) -> bool:
    return all(rotation.next(held, now, is_trusted=trusted) is None for trusted in (True, False))


def verify(trusting: CertificateSet, serving: CertificateSet, now: datetime) -> None:
    """As the API server does, by the name that it uses."""
    certificate = serving.parsed_serving
    assert certificate is not None
    policy = PolicyBuilder().store(Store(trusting.parsed_authorities)).time(now)
    policy.build_server_verifier(x509.DNSName("lamp-webhook.ops.svc")).verify(certificate, [])


def test_the_first_set_is_of_one_authority_and_stays() -> None:
    held = first()
    verify(held, held, START)
    assert len(held.authorities) == 1
    assert is_settled(held, START)
    assert is_settled(held, START + 59 * DAY)


def test_a_serving_certificate_is_replaced_after_two_thirds_of_its_time_by_one_of_the_same_authority() -> None:
    held, now = first(), START + 60 * DAY
    renewed = stepped(held, now)
    assert renewed.authorities == held.authorities
    assert renewed.serving != held.serving
    verify(held, renewed, now)
    assert is_settled(renewed, now)


def test_a_new_authority_is_trusted_before_it_is_used_and_the_old_one_until_nothing_of_it_is_valid() -> None:
    held = first()
    for age in (60, 120, 180, 240):
        held = stepped(held, START + age * DAY)
    now = START + 244 * DAY
    announced = stepped(held, now)
    assert announced.authorities[1:] == held.authorities
    assert announced.serving == held.serving
    assert rotation.next(announced, now, is_trusted=False) is None, "not before all trust it"
    used = stepped(announced, now, is_trusted=True)
    assert used.authorities == announced.authorities
    verify(CertificateSet(announced.authorities[:1], announced.authority.pair.key, None), used, now)
    assert is_settled(used, now)
    # The serving certificate is renewed meanwhile.
    renewed = stepped(used, now + 60 * DAY)
    assert renewed.authorities == used.authorities
    assert is_settled(renewed, now + 89 * DAY)
    last = stepped(renewed, now + 90 * DAY)
    assert (last.authorities, last.serving) == (used.authorities[:1], renewed.serving)


def test_one_step_behind_everything_is_trusted_for_years() -> None:
    """A replica that still serves with the previous set, and an API server that still has the previous bundle."""
    held, now, authorities = first(), START, set()
    previous = held
    for _ in range(150):
        now += 6 * DAY
        while (step := rotation.next(held, now, is_trusted=held is previous)) is not None:
            previous, held = held, step.result
            verify(previous, held, now)
            verify(held, previous, now)
        previous = held
        authorities |= set(held.authorities)
        assert len(held.authorities) <= 2
    assert len(authorities) == 4


def test_all_is_replaced_at_once_when_all_has_expired() -> None:
    now = START + 1000 * DAY
    made = stepped(first(), now)
    assert len(made.authorities) == 1
    verify(made, made, now)
    assert is_settled(made, now)


def test_an_expired_serving_certificate_is_replaced_at_once_though_its_successor_is_not_trusted_yet() -> None:
    held = first()
    now = START + 150 * DAY
    assert stepped(held, now).authorities == held.authorities
    announced = stepped(stepped(held, START + 240 * DAY), START + 244 * DAY)
    late = announced.parsed_authorities[0].not_valid_before_utc + 88 * DAY
    made = stepped(announced, late)
    verify(made, made, late)
    assert not made.is_served_by_older


def test_what_a_clock_far_ahead_has_made_is_replaced_and_what_one_less_ahead_has_made_is_not() -> None:
    ahead = first(START + DAY)
    verify(ahead, ahead, START)
    assert is_settled(ahead, START)
    made = stepped(first(START + 100 * DAY), START)
    verify(made, made, START)
    assert len(made.authorities) == 1


def test_a_certificate_for_other_names_is_replaced() -> None:
    held = first()
    other = Rotation(ObjectKey("ops", "bulb-webhook"))
    step = other.next(held, START, is_trusted=False)
    assert step is not None
    assert step.result.authorities == held.authorities
    assert other.next(step.result, START, is_trusted=False) is None


def test_a_set_is_read_from_a_secret_as_it_was_written() -> None:
    held = first()
    read = CertificateSet.of_secret(held.to_secret())
    assert (read.authorities, read.serving, read.bundle) == (held.authorities, held.serving, held.bundle)
    assert is_settled(read, START)


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def other_key() -> str:
    return Authority.create("other", begin=START, end=START + DAY).pair.key


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ({"ca.key": ""}, "it has no ca.key"),
        ({"ca.crt": ""}, "it has no ca.crt"),
        ({"ca.crt": encoded("hunter2")}, "the certificates in ca.crt cannot be read"),
        ({"ca.crt": "%%%"}, "ca.crt is no PEM data"),
        ({"ca.key": encoded("-----BEGIN EC PRIVATE KEY-----\nhunter2")}, "the private key cannot be read"),
        ({"ca.key": other_key}, "the private key belongs to another certificate"),
    ],
)
def test_a_damaged_authority_is_an_error_that_shows_nothing_of_it(
    damage: dict[str, str | Callable[[], str]], reason: str
) -> None:
    damaged = {name: text if isinstance(text, str) else encoded(text()) for name, text in damage.items()}
    with pytest.raises(DamagedCertificates) as error:
        CertificateSet.of_secret({**first().to_secret(), **damaged})
    assert reason in str(error.value)
    assert "hunter2" not in str(error.value)
    assert error.value.__context__ is None or error.value.__suppress_context__


def test_a_single_bit_of_damage_is_noticed_and_repaired() -> None:
    """Parsers raise many errors, and accept what no client does."""
    random, held = Random(1), stepped(stepped(first(), START + 240 * DAY), START + 250 * DAY)
    now, data = START + 250 * DAY, held.to_secret()
    outcomes = set()
    for _ in range(150):
        name = random.choice(sorted(data))
        lines = b64decode(data[name]).decode().splitlines()
        number = random.choice([index for index, line in enumerate(lines) if not line.startswith("-")])
        block = bytearray(b64decode(lines[number]))
        block[random.randrange(len(block))] ^= 1 << random.randrange(8)
        lines[number] = b64encode(block).decode()
        try:
            found = CertificateSet.of_secret({**data, name: encoded("\n".join(lines) + "\n")})
        except DamagedCertificates:
            assert name.startswith("ca.")
            outcomes.add("damaged")
            continue
        step = rotation.next(found, now, is_trusted=False)
        repaired = step.result if step is not None else found
        verify(held, repaired, now)
        outcomes.add("unchanged" if step is None else "replaced")
    assert outcomes >= {"damaged", "replaced"}


def test_an_extension_that_is_there_twice_is_damage() -> None:
    held = first()
    assert held.serving is not None
    der = ssl.PEM_cert_to_DER_cert(held.serving.certificate)
    # The authority's key identifier becomes a second one of the certificate's own.
    damaged = ssl.DER_cert_to_PEM_cert(der.replace(b"\x55\x1d\x23", b"\x55\x1d\x0e"))
    found = CertificateSet.of_secret({**held.to_secret(), "tls.crt": encoded(damaged)})
    verify(held, stepped(found, START), START)


@pytest.mark.parametrize("damage", [{"tls.crt": ""}, {"tls.key": encoded("x")}, {"tls.crt": encoded("x")}])
def test_a_damaged_serving_certificate_is_replaced_by_one_of_the_same_authority(damage: dict[str, str]) -> None:
    held = first()
    found = CertificateSet.of_secret({**held.to_secret(), **damage})
    assert found.serving is None
    made = stepped(found, START)
    assert made.authorities == held.authorities
    verify(held, made, START)


def test_a_serving_certificate_of_a_foreign_authority_is_replaced() -> None:
    held = first()
    made = stepped(CertificateSet(held.authorities, held.authority.pair.key, first().serving), START)
    verify(held, made, START)


def test_no_private_key_is_in_a_repr() -> None:
    held = first()
    shown = f"{held!r} {held.serving!r} {held.authority!r} {rotation.next(None, START, is_trusted=True)!r}"
    assert "PRIVATE" not in shown
    assert isinstance(held.serving, KeyPair)
