from __future__ import annotations

import base64

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, items, text
from kubewright.controlplane.embedded.auth.tokens import BadSignature, TokenSigner

ISSUER = "https://example.test"


def encoded(value: JSONValue) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(value)).rstrip(b"=").decode()


@pytest.fixture(scope="module", params=["ES256", "RS256"])
def signer(request: pytest.FixtureRequest) -> TokenSigner:
    if request.param == "ES256":
        return TokenSigner.generate(ISSUER)
    return TokenSigner(ISSUER, rsa.generate_private_key(public_exponent=65537, key_size=2048))


def test_a_signed_token_is_verified_and_has_the_issuer(signer: TokenSigner) -> None:
    token = signer.sign({"sub": "me", "nested": {"b": 1, "a": [2]}})

    assert signer.verified(token) == {"sub": "me", "nested": {"b": 1, "a": [2]}, "iss": ISSUER}


def test_the_header_names_algorithm_and_key(signer: TokenSigner) -> None:
    header = signer.sign({}).partition(".")[0]

    assert msgspec.json.decode(base64.urlsafe_b64decode(header + "==")) == {
        "alg": signer.algorithm,
        "kid": signer.key_id,
    }


def test_changed_claims_another_key_or_no_signature_are_forgeries(signer: TokenSigner) -> None:
    header, payload, signature = signer.sign({"sub": "me"}).split(".")
    forged = [
        f"{header}.{encoded({'sub': 'you', 'iss': ISSUER})}.{signature}",
        f"{header}.{payload}.{signature[:-4]}AAAA",
        f"{header}.{payload}.",
        f"{encoded({'alg': 'none'})}.{payload}.",
        f"{encoded({'alg': 'HS256', 'kid': signer.key_id})}.{payload}.{signature}",
    ]

    for token in forged:
        with pytest.raises(BadSignature, match="error in cryptographic primitive"):
            signer.verified(token)
    with pytest.raises(BadSignature, match="invalid signature, no keys found"):
        signer.verified(TokenSigner.generate(ISSUER).sign({"sub": "me"}))


def test_a_token_of_another_issuer_is_not_a_forgery(signer: TokenSigner) -> None:
    header, payload, signature = signer.sign({}).split(".")
    strangers = [
        "",
        "abc",
        "a.b",
        f"{header}.{payload}.!!",
        f"{header}.{encoded([1])}.{signature}",
        f"{encoded({})}.{payload}.{signature}",
        f"{header}.é.{signature}",
        f"{header}.{base64.urlsafe_b64encode(b'[' * 100_000).decode()}.{signature}",
        TokenSigner.generate("https://other.test").sign({}),
    ]

    assert [signer.verified(token) for token in strangers] == [None] * len(strangers)


def test_the_published_key_is_the_one_tokens_are_signed_with() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    signer = TokenSigner(ISSUER, key)
    published = items(signer.keys(), "keys")[0]

    def coordinate(name: str) -> int:
        return int.from_bytes(base64.urlsafe_b64decode(text(published, name) + "="))

    numbers = ec.EllipticCurvePublicNumbers(coordinate("x"), coordinate("y"), ec.SECP256R1())
    assert numbers.public_key().public_numbers() == key.public_key().public_numbers()
    assert {name: at(published, name) for name in ("use", "kty", "kid", "crv", "alg")} == {
        "use": "sig",
        "kty": "EC",
        "kid": signer.key_id,
        "crv": "P-256",
        "alg": "ES256",
    }


def test_an_rsa_key_is_published_as_such() -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    published = items(TokenSigner(ISSUER, key).keys(), "keys")[0]

    assert text(published, "kty") == "RSA"
    assert text(published, "e") == "AQAB"
    modulus = base64.urlsafe_b64decode(text(published, "n") + "==")
    assert int.from_bytes(modulus) == key.public_key().public_numbers().n


def test_the_configuration_points_to_the_keys(signer: TokenSigner) -> None:
    expected: JSONObject = {
        "issuer": ISSUER,
        "jwks_uri": "https://127.0.0.1:6443/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [signer.algorithm],
    }

    assert signer.configuration("https://127.0.0.1:6443/") == expected


def test_a_curve_that_es256_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="RSA or P-256 keys, not with secp384r1"):
        TokenSigner(ISSUER, ec.generate_private_key(ec.SECP384R1()))
