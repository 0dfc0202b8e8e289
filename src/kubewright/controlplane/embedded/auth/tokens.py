"""JSON Web Tokens of service accounts: signing, checking signatures, and the documents by which clients can check them.

The claims of a token are checked elsewhere: a token with a good signature may have expired, or its pod was deleted.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable
from typing import TypeAlias

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from kubewright.api.markers import JSONObject, JSONValue

_COORDINATE = 32
"""Bytes of a coordinate of P-256, and of each half of an ES256 signature."""

LEGACY_ISSUER = "kubernetes/serviceaccount"
"""The issuer of the tokens in Secrets, which are signed with the same key as all others."""
JWKS_PATH = "/openid/v1/jwks"
CONFIGURATION_PATH = "/.well-known/openid-configuration"


class BadSignature(Exception):
    """A token of ours by its issuer, but not signed by our key."""


PrivateKey: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
PublicKey: TypeAlias = ec.EllipticCurvePublicKey | rsa.RSAPublicKey


class TokenSigner:
    """Signs tokens as one issuer with one key, P-256 (ES256) or RSA (RS256). The key is in no repr.

    Tokens are checked with the public part of it, or else with the keys in `trusted`.
    """

    def __init__(self, issuer: str, key: PrivateKey, trusted: Iterable[PublicKey] = ()) -> None:
        public = key.public_key()
        self.issuer = issuer
        self._key = key
        self.key_id = _key_id(public)
        self.algorithm = _algorithm(public)
        self._trusted = {_key_id(found): found for found in trusted} or {self.key_id: public}
        self._header = _encoded(msgspec.json.encode({"alg": self.algorithm, "kid": self.key_id}))

    @classmethod
    def generate(cls, issuer: str) -> TokenSigner:
        """A signer with a new P-256 key, which is made in microseconds."""
        return cls(issuer, ec.generate_private_key(ec.SECP256R1()))

    def sign(self, claims: JSONObject) -> str:
        """A token with these claims; without an `iss` it is from the issuer of this server."""
        payload = msgspec.json.encode({"iss": self.issuer, **claims}, order="sorted")
        signed = f"{self._header}.{_encoded(payload)}"
        return f"{signed}.{_encoded(self._signature(signed.encode()))}"

    def verified(self, token: str) -> JSONObject | None:
        """The claims of a token of this server; None for anything else. Raises BadSignature for a forged one."""
        parts = token.split(".")
        if len(parts) != 3:
            return None
        try:
            header, claims, signature = _document(parts[0]), _document(parts[1]), _decoded(parts[2])
        except ValueError:
            return None
        if claims.get("iss") not in (self.issuer, LEGACY_ISSUER) or not isinstance(header.get("alg"), str):
            return None
        keys = [key for name, key in self._trusted.items() if header.get("kid", "") in ("", name)]
        if not keys:
            raise BadSignature("invalid signature, no keys found")
        signed = f"{parts[0]}.{parts[1]}".encode()
        if not any(header["alg"] == _algorithm(key) and _is_signature(signature, signed, key) for key in keys):
            raise BadSignature("go-jose/go-jose: error in cryptographic primitive")
        return claims

    def keys(self) -> JSONObject:
        """What is served at `JWKS_PATH`: the public keys."""
        return {"keys": [_published(name, key) for name, key in self._trusted.items()]}

    def configuration(self, server: str) -> JSONObject:
        """What is served at `CONFIGURATION_PATH`; `server` is the URL of the API server."""
        return {
            "issuer": self.issuer,
            "jwks_uri": f"{server.rstrip('/')}{JWKS_PATH}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [*dict.fromkeys(map(_algorithm, self._trusted.values()))],
        }

    def _signature(self, signed: bytes) -> bytes:
        if isinstance(self._key, rsa.RSAPrivateKey):
            return self._key.sign(signed, padding.PKCS1v15(), hashes.SHA256())
        r, s = decode_dss_signature(self._key.sign(signed, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(_COORDINATE) + s.to_bytes(_COORDINATE)


def _key_id(key: PublicKey) -> str:
    public = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return _encoded(hashlib.sha256(public).digest())


def _algorithm(key: PublicKey) -> str:
    if isinstance(key, rsa.RSAPublicKey):
        return "RS256"
    if key.curve.name != ec.SECP256R1.name:
        raise ValueError(f"service account tokens are signed with RSA or P-256 keys, not with {key.curve.name}")
    return "ES256"


def _is_signature(signature: bytes, signed: bytes, key: PublicKey) -> bool:
    try:
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
            return True
        if len(signature) != 2 * _COORDINATE:
            return False
        r, s = int.from_bytes(signature[:_COORDINATE]), int.from_bytes(signature[_COORDINATE:])
        key.verify(encode_dss_signature(r, s), signed, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def _published(name: str, key: PublicKey) -> JSONObject:
    published: dict[str, JSONValue] = {"use": "sig", "kty": "", "kid": name}
    if isinstance(key, rsa.RSAPublicKey):
        numbers = key.public_numbers()
        return published | {
            "kty": "RSA",
            "alg": _algorithm(key),
            "n": _encoded(_shortest(numbers.n)),
            "e": _encoded(_shortest(numbers.e)),
        }
    point = key.public_numbers()
    return published | {
        "kty": "EC",
        "crv": "P-256",
        "alg": _algorithm(key),
        "x": _encoded(point.x.to_bytes(_COORDINATE)),
        "y": _encoded(point.y.to_bytes(_COORDINATE)),
    }


def _shortest(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8)


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def _decoded(value: str) -> bytes:
    try:
        # Python's decoder skips what is no base64; a token that has such characters is none.
        return base64.b64decode(value.encode("ascii") + b"=" * (-len(value) % 4), b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError("not base64url") from error


def _document(part: str) -> JSONObject:
    try:
        found: JSONObject = msgspec.json.decode(_decoded(part), type=dict)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return found
