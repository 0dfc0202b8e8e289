"""The configuration of a program that runs in a pod: the service account that the kubelet mounts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kubewright.client.config.address import parse_server, proxy_from_environment
from kubewright.client.config.config import Config
from kubewright.client.config.credentials import FileCredentials, bearer, read_token
from kubewright.client.config.tls import TLS
from kubewright.client.errors import ConfigError

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_ORIGIN = "of the pod's service account"


def why_not_in_cluster(directory: Path = SERVICE_ACCOUNT, environment: Mapping[str, str] = os.environ) -> str | None:
    """None when this program runs in a pod with a service account, else the reason."""
    for variable in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        if not environment.get(variable):
            return f"the environment variable {variable} is not set"
    if not (directory / "token").is_file():
        return f'there is no "{directory / "token"}" (does the pod say automountServiceAccountToken: false?)'
    return None


def config_in_cluster(directory: Path = SERVICE_ACCOUNT, environment: Mapping[str, str] = os.environ) -> Config:
    """The server and identity of a pod. Token and authorities are read again as they rotate."""
    reason = why_not_in_cluster(directory, environment)
    if reason is not None:
        raise ConfigError(f"this program does not run in a pod: {reason}")
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]
    try:
        server = parse_server(f"https://{f'[{host}]' if ':' in host else host}:{port}")
    except ValueError as error:
        raise ConfigError(f"KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT cannot be used: {error}") from None
    authority = directory / "ca.crt"
    try:
        ca = authority.read_bytes()
    except OSError as error:
        raise ConfigError(
            f'the certificate authority {_ORIGIN} cannot be read from "{authority}": {error.strerror}'
        ) from None
    tls = TLS(ca=ca, ca_file=authority, origin=_ORIGIN)
    tls.context(None)
    return Config(
        server=server,
        tls=tls,
        credentials=FileCredentials(lambda: bearer(read_token(directory / "token", origin=_ORIGIN), origin=_ORIGIN)),
        namespace=_namespace(directory),
        proxy=proxy_from_environment(server, environment),
    )


def _namespace(directory: Path) -> str:
    try:
        return (directory / "namespace").read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"
