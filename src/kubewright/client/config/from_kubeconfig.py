"""What the entries of a kubeconfig mean: a `Config`.

Whatever can be checked without the server is checked here, so that a mistake is reported when the program starts.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
from typing import cast

from kubewright.client.config.address import parse_proxy, parse_server, proxy_from_environment
from kubewright.client.config.config import Config
from kubewright.client.config.credentials import (
    ANONYMOUS,
    Credential,
    Credentials,
    FileCredentials,
    StaticCredentials,
    basic,
    bearer,
    read_token,
)
from kubewright.client.config.impersonation import Impersonation
from kubewright.client.config.kubeconfig import (
    Entry,
    Exec,
    Kubeconfig,
    KubeconfigCluster,
    KubeconfigUser,
)
from kubewright.client.config.tls import TLS, Certificate

_log = logging.getLogger(__name__)

_PLUGIN_EXTENSION = "client.authentication.k8s.io/exec"
_INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")


def config_from_kubeconfig(kubeconfig: Kubeconfig, context: str | None) -> Config:
    """The configuration of `context`, or else of the current context."""
    selection = kubeconfig.select(context)
    cluster, user = selection.cluster, selection.user
    server = _server(cluster)
    inline, path = cluster.value.certificate_authority_data, cluster.value.certificate_authority
    tls = TLS(
        ca=_data(cluster, "certificate-authority", inline, path),
        ca_file=cluster.source.resolve(path) if path and not inline else None,
        server_name=cluster.value.tls_server_name or None,
        verify=not cluster.value.insecure_skip_tls_verify,
        origin=cluster.origin,
    )
    if tls.ca is not None:
        tls.context(None)
    credentials, impersonate = ANONYMOUS, None
    if user is not None:
        impersonate = _impersonation(user)
        if server.startswith("https:"):
            credentials = _credentials(user, cluster, tls)
        elif _has_credentials(user.value):
            # As kubectl: what is sent unencrypted is no secret afterwards.
            _log.warning("the credentials %s are not sent, as %s is not https", user.origin, server)
    return Config(
        server=server,
        tls=tls,
        credentials=credentials,
        namespace=selection.context.value.namespace or "default",
        impersonate=impersonate,
        proxy=_proxy(cluster, server),
        context=selection.context.name,
    )


def _server(cluster: Entry[KubeconfigCluster]) -> str:
    if not cluster.value.server:
        raise cluster.error("the server is missing; expected a URL like https://host:6443")
    try:
        return parse_server(cluster.value.server)
    except ValueError as error:
        raise cluster.error(f"server: {error}") from None


def _proxy(cluster: Entry[KubeconfigCluster], server: str) -> str | None:
    try:
        if cluster.value.proxy_url:
            return parse_proxy(cluster.value.proxy_url)
    except ValueError as error:
        raise cluster.error(f"proxy-url: {error}") from None
    return proxy_from_environment(server, os.environ)


def _data(
    entry: Entry[KubeconfigCluster] | Entry[KubeconfigUser],
    key: str,
    inline: str | None,
    path: str | None,
) -> bytes | None:
    """What `<key>-data` holds, or else the file that `<key>` names."""
    if inline:
        try:
            # Go, and so kubectl, accepts line breaks inside base64.
            return base64.b64decode("".join(inline.split()), validate=True)
        except (binascii.Error, ValueError):
            raise entry.error(f"{key}-data is not base64") from None
    if not path:
        return None
    file = entry.source.resolve(path)
    try:
        return file.read_bytes()
    except OSError as error:
        raise entry.error(f'{key}: cannot read "{file}": {error.strerror}') from None


def _impersonation(user: Entry[KubeconfigUser]) -> Impersonation | None:
    value = user.value
    if value.impersonate:
        return Impersonation(
            user=value.impersonate,
            groups=tuple(value.as_groups or ()),
            uid=value.as_uid or None,
            extra=value.as_user_extra or {},
        )
    if value.as_groups or value.as_uid or value.as_user_extra:
        raise user.error('as-groups, as-uid and as-user-extra need a user to act as; add the key "as"')
    return None


def _has_credentials(user: KubeconfigUser) -> bool:
    certificate = user.client_certificate or user.client_certificate_data
    return bool(user.token or user.token_file or user.username or user.password or certificate or user.exec)


def _credentials(user: Entry[KubeconfigUser], cluster: Entry[KubeconfigCluster], tls: TLS) -> Credentials:
    value = user.value
    if value.auth_provider is not None:
        raise user.error(
            f'the auth-provider "{value.auth_provider.name}" is not supported, as Kubernetes replaced auth-provider by '
            "exec plugins; have your provider's command line tool write the kubeconfig again"
        )
    has_token = bool(value.token or value.token_file)
    has_password = bool(value.username or value.password)
    has_certificate = _has_certificate(user)
    if has_token and has_password:
        raise user.error("there is a token and a username or password; only one of them can be sent")
    if not (has_token or has_password or has_certificate):
        return ANONYMOUS if value.exec is None else _plugin(user, value.exec, cluster, tls)
    reads_certificate = has_certificate and not (value.client_certificate_data and value.client_key_data)
    if value.token_file or reads_certificate:
        # As client-go: the file counts, and the token beside it only as long as the file could not be read.
        fallback = _credential(user, value.token) if value.token and value.token_file else None
        return FileCredentials(lambda: _credential(user, _current_token(user)), fallback=fallback)
    return StaticCredentials(_credential(user, value.token))


def _has_certificate(user: Entry[KubeconfigUser]) -> bool:
    value = user.value
    certificate = value.client_certificate_data or value.client_certificate
    key = value.client_key_data or value.client_key
    if certificate and not key:
        raise user.error("there is a client-certificate without a client-key")
    if key and not certificate:
        raise user.error("there is a client-key without a client-certificate")
    return bool(certificate)


def _current_token(user: Entry[KubeconfigUser]) -> str | None:
    if user.value.token_file:
        return read_token(user.source.resolve(user.value.token_file), origin=user.origin)
    return user.value.token


def _credential(user: Entry[KubeconfigUser], token: str | None) -> Credential:
    value = user.value
    chain = _data(user, "client-certificate", value.client_certificate_data, value.client_certificate)
    key = _data(user, "client-key", value.client_key_data, value.client_key)
    certificate = None
    if chain is not None and key is not None:
        certificate = Certificate(chain=chain, key=key, origin=user.origin)
        certificate.check()
    if token:
        return bearer(token, origin=user.origin, certificate=certificate)
    if value.username or value.password:
        return basic(value.username or "", value.password or "", certificate=certificate)
    return Credential(certificate=certificate)


def _plugin(
    user: Entry[KubeconfigUser],
    description: Exec,
    cluster: Entry[KubeconfigCluster],
    tls: TLS,
) -> Credentials:
    # Imported where used: most users have a certificate or a token.
    from kubewright.client.config.exec_plugin import API_VERSIONS, ExecCredentials, ExecPlugin, InteractiveMode

    if not description.command:
        raise user.error("exec: the command is missing")
    if description.api_version not in API_VERSIONS:
        found = f'"{description.api_version}"' if description.api_version else "none"
        raise user.error(f"exec: the apiVersion must be one of {', '.join(API_VERSIONS)}; found {found}")
    mode = description.interactive_mode
    if not mode and description.api_version == API_VERSIONS[1]:
        mode = "IfAvailable"
    if mode not in _INTERACTIVE_MODES:
        found = f'"{mode}"' if mode else "none"
        raise user.error(f"exec: the interactiveMode must be one of {', '.join(_INTERACTIVE_MODES)}; found {found}")
    # A bare name is looked up on PATH, a path starts from the kubeconfig.
    by_path = os.sep in description.command
    plugin = ExecPlugin(
        command=str(user.source.resolve(description.command)) if by_path else description.command,
        arguments=tuple(description.args or ()),
        environment={variable.name: variable.value or "" for variable in description.env or ()},
        api_version=description.api_version,
        interactive_mode=cast(InteractiveMode, mode),
        install_hint=description.install_hint or "",
        cluster=_cluster_information(cluster.value, tls) if description.provide_cluster_info else None,
        origin=user.origin,
    )
    return ExecCredentials(plugin)


def _cluster_information(cluster: KubeconfigCluster, tls: TLS) -> dict[str, object]:
    """The cluster as `KUBERNETES_EXEC_INFO` describes it: files are inlined, what is not set is left out."""
    information: dict[str, object] = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": None if tls.ca is None else base64.b64encode(tls.ca).decode("ascii"),
        "proxy-url": cluster.proxy_url,
    }
    extensions = (item.extension for item in cluster.extensions or () if item.name == _PLUGIN_EXTENSION)
    return {key: value for key, value in information.items() if value} | {"config": next(extensions, None)}
