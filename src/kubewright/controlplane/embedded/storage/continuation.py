"""The `continue` tokens of paged lists: from which key, and at which revision, the next page is to be read.

To clients they are opaque, but kube-apiserver's form is kept, and so are its messages about invalid ones.
"""

from __future__ import annotations

import binascii
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass

import msgspec

from kubewright.controlplane.embedded.apimachinery.gotext import json_complaint
from kubewright.controlplane.embedded.apimachinery.status import StatusError, bad_request, expired

_VERSION = "meta.k8s.io/v1"
_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_FIELDS = {"v": "string", "rv": "int64", "start": "string"}
_ILLEGAL = re.compile(r"[^A-Za-z0-9_\-\r\n]")
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Continuation:
    """Where a list continues: at key `start`, as of `revision`, or as of now when that is negative."""

    start: str
    revision: int


class _Token(msgspec.Struct):
    v: str = ""
    rv: int = 0
    start: str = ""


def encode_continue(revision: int, start: str, prefix: str) -> str:
    """The token with which the list below `prefix` (which ends in a slash) continues at key `start`."""
    # The slash in front is what kube-apiserver sends whenever it answers from its cache.
    return _encoded("/" + start.removeprefix(prefix), revision)


def decode_continue(token: str, prefix: str) -> Continuation:
    """Decode a token for the list below `prefix`. Raises StatusError (400) for an invalid one.

    A token cannot lead out of the prefix.
    """
    try:
        found = _decoded(token)
    except ValueError as error:
        raise _refused(str(error)) from None
    except RecursionError:
        raise _refused("exceeded max depth") from None
    if found.v != _VERSION:
        raise _refused(f"server does not recognize this encoded version {found.v}")
    if found.rv == 0:
        raise _refused(f"incorrect encoded start resourceVersion (version {_VERSION})")
    if not found.start:
        raise _refused(f"encoded start key empty (version {_VERSION})")
    path = found.start.removeprefix("/")
    if path and not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise _refused(found.start)
    return Continuation(prefix + path, found.rv)


def expired_continue(prefix: str, start: str) -> StatusError:
    """410 for a page whose revision was compacted, with a token to continue at `start` as of now."""
    return expired(_EXPIRED, _encoded(start.removeprefix(prefix), -1))


def _refused(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")


def _encoded(start: str, revision: int) -> str:
    return urlsafe_b64encode(msgspec.json.encode(_Token(_VERSION, revision, start))).rstrip(b"=").decode()


def _decoded(token: str) -> _Token:
    data = _bytes(token)
    if complaint := json_complaint(data):
        raise ValueError(complaint)
    # Go decodes what is not UTF-8 as U+FFFD.
    data = data.decode("utf-8", "replace").encode()
    form = _form(data)
    if form == "null":
        return _Token()
    if form != "object":
        raise ValueError(f"json: cannot unmarshal {form} into Go value of type storage.continueToken")
    found: dict[str, str | int] = {}
    for name, raw in msgspec.json.decode(data, type=dict[str, msgspec.Raw]).items():
        # Go finds the fields of a struct whatever their case.
        field = name.lower()
        if field in _FIELDS and _form(raw) != "null":
            found[field] = _value(field, bytes(raw))
    return msgspec.convert(found, _Token)


def _value(field: str, raw: bytes) -> str | int:
    expected, form = _FIELDS[field], _form(raw)
    if expected == "string" and form == "string":
        return msgspec.json.decode(raw, type=str)
    if expected == "int64" and form == "number":
        literal = raw.decode()
        if re.fullmatch(r"-?[0-9]{1,20}", literal) and int(literal) in _INT64:
            return int(literal)
        form = f"number {literal}"
    raise ValueError(f"json: cannot unmarshal {form} into Go struct field continueToken.{field} of type {expected}")


def _form(raw: bytes | msgspec.Raw) -> str:
    """Which sort of JSON value this is, by its first character."""
    first = bytes(raw).lstrip()[:1]
    return {b"{": "object", b"[": "array", b'"': "string", b"t": "bool", b"f": "bool", b"n": "null"}.get(
        first, "number"
    )


def _bytes(token: str) -> bytes:
    """Base64 without padding, as Go's RawURLEncoding reads it; line breaks are ignored."""
    if illegal := _ILLEGAL.search(token):
        raise ValueError(_no_base64(len(token[: illegal.start()].encode())))
    plain = token.replace("\r", "").replace("\n", "")
    try:
        return urlsafe_b64decode(plain + "=" * (-len(plain) % 4))
    except binascii.Error:
        # One character more than whole groups of four: the only way left to be wrong.
        raise ValueError(_no_base64(len(token) - 1)) from None


def _no_base64(position: int) -> str:
    return f"illegal base64 data at input byte {position}"
