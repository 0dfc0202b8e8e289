"""URLs in rules, read as Go's `net/url` reads those of requests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote, unquote_plus

from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.cel.library.overload import Overload, function, method
from kubewright.controlplane.embedded.cel.types import BOOL, STRING, CelType, list_of, map_of
from kubewright.controlplane.embedded.cel.values import EvaluationError, Opaque

URL: Final = CelType("struct", "kubernetes.URL")

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_ASCII_ESCAPE: Final = re.compile(r"%(?!25)[0-7][0-9A-Fa-f]")
_HOST: Final = re.compile(r"""[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>"%\u0080-\U0010ffff]*""")
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PATH: Final = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@/%\[\]]*")
_PORT: Final = re.compile(r":[0-9]*")


@dataclass(frozen=True, slots=True)
class Location(Opaque):
    """A URL taken apart."""

    text: str
    scheme: str
    host: str
    path: str
    query: str

    type_name = "kubernetes.URL"

    @property
    def hostname(self) -> str:
        """The host without port and brackets."""
        if self.host.startswith("["):
            return self.host[1:].partition("]")[0]
        return self.host.rpartition(":")[0] if _PORT.search(self.host) else self.host

    @property
    def port(self) -> str:
        """The port; empty without one."""
        rest = self.host.rpartition("]")[2]
        return rest.rpartition(":")[2] if ":" in rest else ""

    @property
    def escaped_path(self) -> str:
        """The path as it was written, if that was escaped properly."""
        return self.path if _PATH.fullmatch(self.path) else quote(unquote(self.path), safe="/$&+,:;=@-_.~")

    @property
    def parameters(self) -> dict[object, object]:
        """The values of each parameter of the query, in order."""
        found: dict[str, list[str]] = {}
        for part in self.query.split("&"):
            key, _, value = part.partition("=")
            if part and ";" not in part and not _BAD_ESCAPE.search(part):
                found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
        return {key: list(values) for key, values in found.items()}


class _UrlError(ValueError):
    pass


def parse_request_uri(text: str) -> Location:
    """The URL that a text stands for; ValueError unless it is absolute or begins with a slash."""
    return _checked(text, of_request=True)


def _checked(text: str, *, of_request: bool) -> Location:
    try:
        return _parsed(text, of_request=of_request)
    except _UrlError as error:
        raise ValueError(f"parse {quoted(text)}: {error}") from None


def _parsed(text: str, *, of_request: bool) -> Location:
    if any(ord(sign) < 0x20 or ord(sign) == 0x7F for sign in text):
        raise _UrlError("net/url: invalid control character in URL")
    if not text:
        raise _UrlError("empty url")
    if text == "*":
        return Location(text, "", "", "*", "")
    if text.startswith(":"):
        raise _UrlError("missing protocol scheme")
    found = _SCHEME.match(text)
    scheme = found.group()[:-1].lower() if found else ""
    rest, _, query = text[found.end() if found else 0 :].partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Location(text, scheme, "", "", query)
        raise _UrlError("invalid URI for request")
    host = ""
    has_host = scheme or (not of_request and not rest.startswith("///"))
    if has_host and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        host, rest = _host(authority), slash + path
    _check_escapes(rest)
    return Location(text, scheme, host, rest, query)


def _check_escapes(text: str) -> None:
    wrong = _BAD_ESCAPE.search(text)
    if wrong is not None:
        raise _UrlError(f"invalid URL escape {quoted(wrong.group())}")


def _host(authority: str) -> str:
    user, at, host = authority.rpartition("@")
    if at and not _USER.fullmatch(user):
        raise _UrlError("net/url: invalid userinfo")
    _check_escapes(user)
    if host.startswith("["):
        _, bracket, port = host.rpartition("]")
        if not bracket:
            raise _UrlError("missing ']' in host")
    else:
        port = host[host.find(":") :] if ":" in host else ""
    if port and not _PORT.fullmatch(port):
        raise _UrlError(f"invalid port {quoted(port)} after host")
    wrong = _HOST.match(host)
    if wrong is not None and wrong.end() != len(host):
        raise _UrlError(f"invalid character {quoted(host[wrong.end()])} in host name")
    _check_escapes(host)
    # In a host only what is not ASCII may be escaped, and the percent sign of a zone.
    wrong = _ASCII_ESCAPE.search(host)
    if wrong is not None:
        raise _UrlError(f"invalid URL escape {quoted(wrong.group())}")
    return unquote(host)


def _url(text: str) -> Location:
    try:
        parse_request_uri(text)
        # Other than a request, a URL may have a fragment, and a host without a scheme.
        return _checked(text.partition("#")[0], of_request=False)
    except ValueError as error:
        raise EvaluationError(f"URL parse error during conversion from string: {error}") from None


def _is_url(text: str) -> bool:
    try:
        parse_request_uri(text)
    except ValueError:
        return False
    return True


URL_FUNCTIONS: Final[list[Overload]] = [
    function("url", [STRING], URL, _url),
    method("getScheme", [URL], STRING, lambda location: location.scheme),
    method("getHost", [URL], STRING, lambda location: location.host),
    method("getHostname", [URL], STRING, lambda location: location.hostname),
    method("getPort", [URL], STRING, lambda location: location.port),
    method("getEscapedPath", [URL], STRING, lambda location: location.escaped_path),
    method("getQuery", [URL], map_of(STRING, list_of(STRING)), lambda location: location.parameters),
    function("isURL", [STRING], BOOL, _is_url),
]
