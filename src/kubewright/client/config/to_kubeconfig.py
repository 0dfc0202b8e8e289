"""A `Config` as the text of a kubeconfig, for kubectl and for other programs. Everything is inlined."""

from __future__ import annotations

import base64

from kubewright.api.markers import JSONValue
from kubewright.client.config.config import Config
from kubewright.client.config.credentials import Credential, FileCredentials, StaticCredentials
from kubewright.client.config.impersonation import Impersonation
from kubewright.client.config.tls import TLS
from kubewright.client.errors import ConfigError
from kubewright.manifest.yaml import to_yaml


def kubeconfig_text(config: Config, *, name: str, namespace: str | None, token: str | None) -> str:
    """See `Config.to_kubeconfig`."""
    if not name:
        raise ValueError("a kubeconfig needs a name for its context: name= is empty")
    user: dict[str, JSONValue]
    if token is not None:
        if not token:
            raise ValueError("token= is empty: leave it out for the credentials of this configuration")
        user = {"token": token}
    else:
        user = _user(_credential(config)) | _impersonation(config.impersonate)
    context: dict[str, JSONValue] = {"cluster": name, "user": name, "namespace": namespace or config.namespace}
    cluster = {"server": config.server} | _trust(config.tls) | ({"proxy-url": config.proxy} if config.proxy else {})
    return to_yaml(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": context}],
            "current-context": name,
        }
    )


def _trust(tls: TLS) -> dict[str, JSONValue]:
    trust: dict[str, JSONValue] = {}
    if tls.ca is not None:
        trust["certificate-authority-data"] = _base64(tls.ca)
    if not tls.verify:
        trust["insecure-skip-tls-verify"] = True
    if tls.server_name:
        trust["tls-server-name"] = tls.server_name
    return trust


def _credential(config: Config) -> Credential:
    credentials = config.credentials
    if isinstance(credentials, StaticCredentials | FileCredentials):
        return credentials.latest
    raise ConfigError(
        f"the credentials of {config.server} come from a plugin and cannot be written into a kubeconfig: give token=, "
        "such as one of client.token(...)"
    )


def _user(credential: Credential) -> dict[str, JSONValue]:
    user: dict[str, JSONValue] = {}
    scheme, _, value = credential.headers.get("Authorization", "").partition(" ")
    if scheme == "Bearer":
        user["token"] = value
    elif scheme == "Basic":
        user["username"], _, user["password"] = base64.b64decode(value).decode().partition(":")
    if credential.certificate is not None:
        user["client-certificate-data"] = _base64(credential.certificate.chain)
        user["client-key-data"] = _base64(credential.certificate.key)
    return user


def _impersonation(impersonate: Impersonation | None) -> dict[str, JSONValue]:
    if impersonate is None:
        return {}
    described: dict[str, JSONValue] = {
        "as": impersonate.user,
        "as-uid": impersonate.uid,
        "as-groups": list(impersonate.groups),
        "as-user-extra": {key: list(values) for key, values in impersonate.extra.items()},
    }
    return {key: value for key, value in described.items() if value}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
