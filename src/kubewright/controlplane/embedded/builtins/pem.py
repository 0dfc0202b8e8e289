"""PEM as Go reads it: blocks between any text, and the certificates and certificate requests in them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa

_BEGIN, _END, _DASHES = b"-----BEGIN ", b"\n-----END ", b"-----"


class Block(NamedTuple):
    """One block: its type, whether it has headers, and its bytes."""

    type: str
    has_headers: bool
    content: bytes


def blocks(text: bytes) -> Iterator[Block]:
    """The blocks of a text, in time linear in it. What is not well-formed is skipped.

    A block is what is between an end and the last beginning before it.
    """
    start = 0
    while (end := text.find(_END, start)) >= 0:
        begin = text.rfind(_BEGIN, start, end)
        after = end + len(_END)
        if begin >= 0 and text[begin - 1 : begin] in (b"", b"\n"):
            found = _block(text[begin + len(_BEGIN) : end].split(b"\n"), _line(text, after))
            if found is not None:
                yield found
        start = after


def _line(text: bytes, start: int) -> bytes:
    end = text.find(b"\n", start)
    return (text[start:end] if end >= 0 else text[start:]).rstrip()


def _block(lines: Sequence[bytes], end: bytes) -> Block | None:
    label = lines[0].rstrip()
    if label != end or not label.endswith(_DASHES):
        return None
    headers = list(takewhile(lambda line: b":" in line, lines[1:]))
    try:
        content = base64.b64decode(b"".join(b"".join(lines[1 + len(headers) :]).split()), validate=True)
    except binascii.Error:
        return None
    return Block(label.removesuffix(_DASHES).decode(errors="replace"), bool(headers), content)


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
    messages = [failure for kind, failure in failures if isinstance(key, kind)]
    raise ValueError(messages[0] if messages else "x509: Ed25519 verification failure")


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
