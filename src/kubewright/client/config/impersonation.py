"""Acting as another user: the `Impersonate-*` headers."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from kubewright.client.errors import ConfigError

# What may stand in a header's name (RFC 9110 token), without the percent sign, which starts an escape.
_PLAIN = frozenset((string.ascii_letters + string.digits + "!#$&'*+-.^_`|~").encode())


class Impersonation(Struct, frozen=True, kw_only=True):
    """The identity that requests ask to act as; the server checks that ours may `impersonate` it."""

    user: str
    groups: Sequence[str] = ()
    uid: str | None = None
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.user:
            raise ConfigError("impersonation needs a user; groups, uid and extra only go along with one")
        for name, value in self.headers():
            if not value.isprintable():
                raise ConfigError(f"impersonation: the value of {name} holds characters that a header cannot carry")

    def headers(self) -> list[tuple[str, str]]:
        """The headers as Kubernetes spells them; `Impersonate-Group` and the extras may repeat."""
        return list(self._headers())

    def _headers(self) -> Iterator[tuple[str, str]]:
        yield "Impersonate-User", self.user
        if self.uid:
            yield "Impersonate-Uid", self.uid
        for group in self.groups:
            yield "Impersonate-Group", group
        for key, values in self.extra.items():
            name = "Impersonate-Extra-" + "".join(
                chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in key.encode()
            )
            for value in values:
                yield name, value
