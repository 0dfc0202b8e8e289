"""PEM as Go reads it: blocks between any text, and the certificates and certificate requests in them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa

_BLOCK = re.compile(rb"^-----BEGIN ([^\n]*?)-----[ \t\r]*\n(.*?)^-----END \1-----[ \t\r]*$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """One block: what it says it is, whether it has headers, and its bytes."""

    type: str
    has_headers: bool
    content: bytes


def blocks(text: bytes) -> Iterator[Block]:
    """The blocks of a text. What is not well-formed is passed over."""
    for found in _BLOCK.finditer(text):
        label, body = found.groups()
        headers, separator, rest = body.rpartition(b"\n\n")
        has_headers = bool(separator) and b":" in headers
        try:
            content = base64.b64decode(b"".join((rest if has_headers else body).split()), validate=True)
        except binascii.Error:
            continue
        yield Block(label.decode(errors="replace"), has_headers, content)


def parse_request(text: bytes) -> x509.CertificateSigningRequest:
    """The certificate request in a text; only the first block counts. Raises ValueError in the server's words."""
    first = next(blocks(text), None)
    if first is None or first.type != "CERTIFICATE REQUEST":
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    try:
        return x509.load_der_x509_csr(first.content)
    except ValueError:
        raise ValueError("x509: malformed certificate request") from None


def check_request(text: bytes) -> None:
    """Raise ValueError, in the server's words, unless a text is a request that is signed with the key it names."""
    request = parse_request(text)
    try:
        key = request.public_key()
        if request.is_signature_valid:
            return
    except (UnsupportedAlgorithm, ValueError):
        raise ValueError("x509: cannot verify signature: algorithm unimplemented") from None
    failures = (
        (rsa.RSAPublicKey, "crypto/rsa: verification error"),
        (ec.EllipticCurvePublicKey, "x509: ECDSA verification failure"),
    )
    told = [failure for kind, failure in failures if isinstance(key, kind)]
    raise ValueError(told[0] if told else "x509: Ed25519 verification failure")


def check_certificates(text: bytes) -> None:
    """Raise ValueError, in the server's words, unless a text is empty or has certificates only."""
    found = list(blocks(text))
    for block in found:
        if block.type != "CERTIFICATE":
            raise ValueError(f'only CERTIFICATE PEM blocks are allowed, found "{block.type}"')
        if block.has_headers:
            raise ValueError("no PEM block headers are permitted")
        try:
            x509.load_der_x509_certificate(block.content)
        except ValueError:
            raise ValueError("x509: malformed certificate") from None
    if text and not found:
        raise ValueError("must contain at least one CERTIFICATE PEM block")
