"""Reading a server's response: failures become errors, and each warning is reported once."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from kubewright.api.codec import NOT_JSON
from kubewright.api.errors import MalformedJSON
from kubewright.client.errors import APIError, DecodeError, ProtocolError, Status, TransportError, error_class
from kubewright.client.http.response import Headers, Response

_log = logging.getLogger("kubewright.client")

_WARNING = r'\d{3} \S+ "((?:[^"\\]|\\.)*)"'
_MAX_WARNINGS = 1000
_SHOWN = 120  # characters of a body that is no Status
_MAX_SEARCHED = 4096  # its bytes that are searched for an excerpt
# Compiled when first used: most programs never read a page.
_TITLE = r"(?i)<title[^>]*>([^<]+)"
_MARKUP = r"(?is)<(script|style)\b.*?</\1[^>]*>|<!--.*?-->|<[^>]*>?"


def failure(code: int, headers: Headers, body: bytes, request: object) -> APIError:
    """The error for a response that is no success. Responses of proxies (HTML, plain text) are quoted in part."""
    status = _server_status(body) or Status(code=code, message=_quote(code, headers, body))
    if not status.code:
        status = msgspec.structs.replace(status, code=code)
    return error_class(status)(status, str(request), retry_after=retry_after(headers, status))


def retry_after(headers: Headers, status: Status | None = None) -> float | None:
    """The seconds the server asks us to wait; None when it does not ask."""
    value = headers.get("Retry-After")
    if value is not None and value.strip().isdecimal():
        return float(value)
    if status is not None and status.details is not None and status.details.retry_after_seconds:
        return float(status.details.retry_after_seconds)
    return None


def described(error: TransportError, request: object) -> TransportError:
    """The same error, with the request description in front of its message."""
    return type(error)(f"{request}: {error}")


def unreadable(error: DecodeError, response: Response, request: object) -> ProtocolError | DecodeError:
    """The error for a response that cannot be decoded, such as a proxy's login page."""
    if isinstance(error, MalformedJSON):
        content_type = response.headers.get("Content-Type") or "no content type"
        # What was meant to be JSON is not quoted: it may be half a Secret.
        quote = f': "{_excerpt(response.body)}"' if response.body.lstrip().startswith(b"<") else ""
        return ProtocolError(
            f"{request}: the server answered {response.status} ({content_type}) with something that is not JSON, "
            f"or is cut short: {error}{quote}"
        )
    return DecodeError(f"{request}: {error}", kind=error.kind, key=error.key)


@contextmanager
def readable(response: Response, request: object) -> Iterator[None]:
    """Raise errors of decoding a response with the request description."""
    try:
        yield
    except DecodeError as error:
        raise unreadable(error, response, request) from None


class Warnings:
    """Reports each warning of the server once, however often the server repeats it; by default to the log."""

    def __init__(self, report: Callable[[str], None] | None = None) -> None:
        self._report = report
        self._seen: set[str] = set()

    def read(self, headers: Headers, request: object) -> None:
        """Report the new `Warning` headers of a response; the log names the request."""
        for value in headers.getall("Warning"):
            for text in re.findall(_WARNING, value):
                if text not in self._seen and len(self._seen) < _MAX_WARNINGS:
                    self._seen.add(text)
                    warning = re.sub(r"\\(.)", r"\1", text)
                    if self._report is not None:
                        self._report(warning)
                    else:
                        _log.warning("%s: %s", request, warning)


def _server_status(body: bytes) -> Status | None:
    try:
        status = msgspec.json.decode(body, type=Status)
    except NOT_JSON:
        return None
    return status if status.status == "Failure" and (status.reason or status.message) else None


def _quote(code: int, headers: Headers, body: bytes) -> str:
    content_type = headers.get("Content-Type") or "no content type"
    return f"HTTP {code} ({content_type}) without a Kubernetes status: {_excerpt(body) or 'empty body'}"


def _excerpt(body: bytes) -> str:
    """One short line of a body that is not from Kubernetes: the title of a page, else how its text begins."""
    text = body[:_MAX_SEARCHED].decode("utf-8", "replace")
    if text.lstrip().startswith("<"):
        title = re.search(_TITLE, text)
        text = title[1] if title else re.sub(_MARKUP, " ", text)
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return f"{line[:_SHOWN]}…" if len(line) > _SHOWN else line
