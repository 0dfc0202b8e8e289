"""Which server to connect to, with which identity, and how to verify the server.

A `Config` is plain data and opens nothing. It comes from a kubeconfig, the pod's service account, or the
program itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from msgspec import field
from msgspec.structs import force_setattr, replace

from kubewright.client.config.address import parse_proxy, parse_server
from kubewright.client.config.credentials import ANONYMOUS, Credentials
from kubewright.client.config.impersonation import Impersonation
from kubewright.client.config.tls import TLS
from kubewright.client.errors import ConfigError
from kubewright.client.redacted import Redacted


class Config(Redacted, frozen=True, kw_only=True):
    """How to reach one API server. `repr` shows no credential.

    Guarantee: `server` is `https://host:port` (or http) plus the path prefix, if any, and `proxy` is a URL with a port;
    anything else is a `ConfigError`. `namespace` is where namespaced requests go that name none.
    """

    server: str
    tls: TLS = field(default_factory=TLS)
    credentials: Credentials = ANONYMOUS
    namespace: str = "default"
    impersonate: Impersonation | None = None
    proxy: str | None = None
    context: str = ""
    """The context of the kubeconfig that it comes from; empty when it comes from elsewhere."""
    __shown__: ClassVar = ("server", "tls", "namespace", "impersonate", "context")

    def __post_init__(self) -> None:
        try:
            force_setattr(self, "server", parse_server(self.server))
        except ValueError as error:
            raise ConfigError(f"server: {error}") from None
        try:
            force_setattr(self, "proxy", parse_proxy(self.proxy) if self.proxy else None)
        except ValueError as error:
            raise ConfigError(f"proxy: {error}") from None

    @classmethod
    def load(cls, *, kubeconfig: str | Path | None = None, context: str | None = None) -> Config:
        """The configuration that kubectl and controller-runtime would use.

        In this order: `kubeconfig`, the files in `KUBECONFIG`, the pod's service account, `~/.kube/config`. A `context`
        can only be meant for a kubeconfig, so it excludes the service account.
        """
        # Imported where used: a program in a pod never loads the YAML parser.
        from kubewright.client.config.in_cluster import why_not_in_cluster

        if kubeconfig is not None:
            return cls.from_kubeconfig(kubeconfig, context=context)
        variable = os.environ.get("KUBECONFIG", "")
        # An element may be empty, and naming a file twice changes nothing.
        paths = [Path(name) for name in dict.fromkeys(variable.split(os.pathsep)) if name]
        if paths:
            return _from_files(paths, context, skip_absent=True)
        not_in_cluster = "a context was given" if context else why_not_in_cluster()
        if not_in_cluster is None:
            return cls.in_cluster()
        try:
            default = Path("~/.kube/config").expanduser()
        except RuntimeError:
            default = Path("~/.kube/config")
        if default.exists():
            return cls.from_kubeconfig(default, context=context)
        raise ConfigError(
            "no configuration was found; name a kubeconfig or set KUBECONFIG. Tried:\n"
            "  KUBECONFIG: the environment variable is not set\n"
            f"  the pod's service account: {not_in_cluster}\n"
            f"  {default}: there is no such file"
        )

    @classmethod
    def from_kubeconfig(cls, path: str | Path, *more: str | Path, context: str | None = None) -> Config:
        """The configuration in one or several kubeconfigs, of which the first to define an entry counts.

        `context` is the current context unless given.
        """
        return _from_files([Path(file).expanduser() for file in (path, *more)], context, skip_absent=False)

    @classmethod
    def from_kubeconfig_text(cls, text: str, *, context: str | None = None) -> Config:
        """The configuration in the text of a kubeconfig; relative paths in it start from the current directory."""
        from kubewright.client.config.from_kubeconfig import config_from_kubeconfig
        from kubewright.client.config.kubeconfig import Kubeconfig

        return config_from_kubeconfig(Kubeconfig.from_text(text), context)

    @classmethod
    def in_cluster(cls) -> Config:
        """The configuration of a program that runs in a pod."""
        from kubewright.client.config.in_cluster import config_in_cluster

        return config_in_cluster()

    def impersonating(
        self,
        user: str,
        *,
        groups: Sequence[str] = (),
        uid: str | None = None,
        extra: Mapping[str, Sequence[str]] | None = None,
    ) -> Config:
        """A copy whose requests act as `user`; the server must permit our own identity to impersonate it."""
        impersonate = Impersonation(user=user, groups=tuple(groups), uid=uid, extra=extra or {})
        return replace(self, impersonate=impersonate)

    def to_kubeconfig(self, *, name: str = "kubewright", namespace: str | None = None, token: str | None = None) -> str:
        """The text of a kubeconfig for the same server, with certificates and credentials inlined: keep it secret.

        `name` is that of its cluster, user and context, `namespace` the default one there. With `token`, such as
        that of `client.token(...)`, it has the identity of that token; without, that of this configuration.
        Raises `ConfigError` where the credentials come from a plugin.
        """
        from kubewright.client.config.to_kubeconfig import kubeconfig_text

        return kubeconfig_text(self, name=name, namespace=namespace, token=token)


def _from_files(paths: Sequence[Path], context: str | None, *, skip_absent: bool) -> Config:
    from kubewright.client.config.from_kubeconfig import config_from_kubeconfig
    from kubewright.client.config.kubeconfig import Kubeconfig

    return config_from_kubeconfig(Kubeconfig.from_files(paths, skip_absent=skip_absent), context)
