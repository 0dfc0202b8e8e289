"""The address of an API server or of a proxy, parsed from a URL."""

from __future__ import annotations

import base64
from typing import ClassVar
from urllib.parse import SplitResult, unquote, urlsplit

from kubewright.client.errors import ConfigError
from kubewright.client.redacted import Redacted


class ServerURL(Redacted, frozen=True):
    """Where to connect. Credentials in the URL are kept apart and never shown."""

    tls: bool
    host: str
    """As the resolver takes it: an IPv6 address has no brackets."""
    port: int
    authority: str
    """As the Host field has it: host, and the port when the URL names one."""
    path: str
    """What comes before every target; never ends with a slash."""
    authorization: str | None = None
    """Value of an authorization field for the user of the URL."""
    __shown__: ClassVar = ("tls", "host", "port", "authority", "path")

    @property
    def address(self) -> str:
        """Host and port, for CONNECT and for messages."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def of_server(cls, url: str) -> ServerURL:
        """The endpoint of an API server; `ConfigError` when `url` is not one."""
        endpoint = cls._parse(url, "server address")
        if endpoint.authorization is not None:
            raise ConfigError(
                f"the server address of {endpoint.address} holds a user name or password;"
                " put them into the user entry of the configuration"
            )
        return endpoint

    @classmethod
    def of_proxy(cls, url: str) -> ServerURL:
        """The endpoint of an HTTP proxy; `ConfigError` when `url` is not one."""
        return cls._parse(url, "proxy address")

    @classmethod
    def _parse(cls, url: str, what: str) -> ServerURL:
        # `url` itself is never shown: it may hold a password where the parser does not expect one.
        try:
            parts = urlsplit(url)
            port = parts.port
            host = parts.hostname
        except ValueError as error:
            raise ConfigError(f"the {what} cannot be parsed; expected https://host:port") from error
        if parts.scheme not in ("http", "https"):
            raise ConfigError(
                f'the {what} has the scheme "{parts.scheme}"; expected a URL that starts with https:// or http://'
            )
        if not host:
            raise ConfigError(f"the {what} names no host; expected {parts.scheme}://host:port")
        if parts.query or parts.fragment:
            raise ConfigError(f"the {what} of {host} has a query or fragment; expected {parts.scheme}://host:port/path")
        return cls(
            tls=parts.scheme == "https",
            host=host,
            port=port or (443 if parts.scheme == "https" else 80),
            authority=parts.netloc.rpartition("@")[2],
            path=parts.path.rstrip("/"),
            authorization=_basic(parts),
        )


def _basic(parts: SplitResult) -> str | None:
    if parts.username is None:
        return None
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"
