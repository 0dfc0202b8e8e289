"""What the flags of kube-apiserver mean here.

Flags that kube-apiserver knows and that have no effect on the embedded server are reported, one line each, so that a
suite that depends on one does not fail without a reason.
"""

from __future__ import annotations

import csv
import re
import ssl
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from kubewright.controlplane.certificates import CertificateAuthority
from kubewright.controlplane.embedded.admission.chain import OPTIONAL_PLUGINS
from kubewright.controlplane.embedded.auth.tokens import PublicKey, TokenSigner
from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.embedded.server.assembly import ISSUER, ServerOptions
from kubewright.controlplane.envtest.flags import FlagError, GivenFlags

_NAMES = ("localhost", "127.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_EFFECTIVE = frozenset(
    (
        "advertise-address",
        "allow-privileged",
        "api-audiences",
        "authorization-mode",
        "bind-address",
        "cert-dir",
        "client-ca-file",
        "disable-admission-plugins",
        "enable-admission-plugins",
        "etcd-servers",
        "secure-port",
        "service-account-issuer",
        "service-account-key-file",
        "service-account-signing-key-file",
        "service-cluster-ip-range",
        "tls-cert-file",
        "tls-private-key-file",
        "token-auth-file",
    )
)
_PEM = re.compile(rb"-----BEGIN [^-]+-----.*?-----END [^-]+-----", re.DOTALL)
_MODES = ("AlwaysAllow", "RBAC", "Node")
_ALWAYS_ON = frozenset(
    (
        "CertificateApproval",
        "CertificateSigning",
        "CertificateSubjectRestriction",
        "DefaultTolerationSeconds",
        "Priority",
    )
)
# Those that are neither, of which only some have an effect here, and that is not changed by a flag.
_OTHER_PLUGINS = frozenset(
    [
        "AlwaysAdmit",
        "AlwaysDeny",
        "AlwaysPullImages",
        "ClusterTrustBundleAttest",
        "DenyServiceExternalIPs",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "ImagePolicyWebhook",
        "JobValidation",
        "LimitPodHardAntiAffinityTopology",
        "MutatingAdmissionWebhook",
        "NamespaceAutoProvision",
        "NamespaceExists",
        "NodeDeclaredFeatureValidator",
        "NodeRestriction",
        "OwnerReferencesPermissionEnforcement",
        "PodGroupProtection",
        "PodGroupWorkloadExists",
        "PodNodeSelector",
        "PodResizeValidator",
        "PodTolerationRestriction",
        "PodTopologyLabels",
        "StorageObjectInUseProtection",
        "TaintNodesByCondition",
        "ValidatingAdmissionWebhook",
    ]
)
PLUGINS = OPTIONAL_PLUGINS | _ALWAYS_ON | _OTHER_PLUGINS
"""All that kube-apiserver knows."""


@dataclass(frozen=True)
class APIServerOptions:
    """Everything that a server is started with. Its repr holds no credentials."""

    host: str
    port: int
    advertised: str
    etcd: str
    client_ca: str
    tls: ssl.SSLContext = field(repr=False)
    tokens: dict[str, UserInfo] = field(repr=False)
    signer: TokenSigner = field(repr=False)
    server: ServerOptions
    warnings: tuple[str, ...]


def read_options(flags: GivenFlags) -> APIServerOptions:
    """Read the flags, and the files that they name.

    Raises FlagError for what kube-apiserver would refuse, and for what it would do and this server cannot.
    """
    etcd = flags.texts("etcd-servers")
    if not etcd:
        raise FlagError("--etcd-servers must be specified")
    for name in ("enable-admission-plugins", "disable-admission-plugins"):
        for plugin in flags.texts(name):
            if plugin not in PLUGINS:
                raise FlagError(f'{name} plugin "{plugin}" is unknown')
    host = flags.text("bind-address") or "0.0.0.0"  # noqa: S104 (kube-apiserver's default)
    advertised = flags.text("advertise-address") or host
    for name, address in (("bind-address", host), ("advertise-address", advertised)):
        try:
            unspecified = ip_address(address).is_unspecified
        except ValueError:
            raise FlagError(
                f'invalid argument "{address}" for "--{name}" flag: failed to parse IP: "{address}"'
            ) from None
    if unspecified:
        advertised = "127.0.0.1"
    port = flags.number("secure-port", 6443)
    if not 1 <= port <= 65535:
        raise FlagError(f"--secure-port {port} must be between 1 and 65535, inclusive. It cannot be turned off with 0")
    client_ca = _read(flags, "client-ca-file")
    return APIServerOptions(
        host=host,
        port=port,
        advertised=advertised,
        etcd=etcd[0],
        client_ca=client_ca,
        tls=_tls(flags, client_ca, {*_NAMES, host, advertised}),
        tokens=_tokens(flags),
        signer=_signer(flags),
        server=ServerOptions(
            network=_network(flags),
            audiences=flags.texts("api-audiences"),
            always_allow=_always_allow(flags),
            disabled_plugins=flags.texts("disable-admission-plugins"),
        ),
        warnings=tuple(_warnings(flags)),
    )


def _warnings(flags: GivenFlags) -> Iterator[str]:
    for name in flags:
        if name not in _EFFECTIVE:
            yield f"--{name} has no effect here"
    if not flags.switch("allow-privileged", default=False):
        yield "privileged pods are admitted, as with --allow-privileged=true"
    if flags.texts("service-cluster-ip-range")[1:]:
        yield "--service-cluster-ip-range: only the first range has an effect here"
    if "Node" in flags.texts("authorization-mode"):
        yield "--authorization-mode: Node has no effect here"
    for plugin in flags.texts("enable-admission-plugins"):
        if plugin in _OTHER_PLUGINS:
            yield f"--enable-admission-plugins: {plugin} has no effect here"
    for plugin in flags.texts("disable-admission-plugins"):
        if plugin not in OPTIONAL_PLUGINS:
            yield f"--disable-admission-plugins: {plugin} has no effect here"


def _always_allow(flags: GivenFlags) -> bool:
    modes = flags.texts("authorization-mode") or ["AlwaysAllow"]
    for mode in modes:
        if mode not in _MODES:
            raise FlagError(f"--authorization-mode: {mode} is not available here (there are: {', '.join(_MODES)})")
    return "AlwaysAllow" in modes


def _network(flags: GivenFlags) -> IPv4Network | IPv6Network:
    text = flags.texts("service-cluster-ip-range") or ["10.0.0.0/24"]
    try:
        return ip_network(text[0], strict=False)
    except ValueError:
        raise FlagError(f'--service-cluster-ip-range: "{text[0]}" is not a range such as 10.0.0.0/24') from None


def _read(flags: GivenFlags, name: str) -> str:
    """The text of the file that a flag names; empty without the flag."""
    path = flags.text(name)
    if not path:
        return ""
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text"
        raise FlagError(f"cannot read --{name} {path!r}: {reason}") from None


def _tls(flags: GivenFlags, client_ca: str, hosts: Collection[str]) -> ssl.SSLContext:
    """Client certificates are optional; with none to check them by, none is asked for."""
    # Not `ssl.create_default_context`, which refuses authorities that kube-apiserver accepts.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory(prefix="kubewright-") as temporary:
        certificate, key = _serving_pair(flags, hosts, Path(temporary))
        try:
            context.load_cert_chain(certificate, key)
        except OSError as error:  # ssl.SSLError is one
            raise FlagError(
                f"cannot serve with the certificate {str(certificate)!r} and the key {str(key)!r}: "
                f"{error.strerror or error}"
            ) from None
    if client_ca:
        try:
            context.load_verify_locations(cadata=client_ca)
        except ssl.SSLError:
            path = flags.text("client-ca-file")
            raise FlagError(f"--client-ca-file {path!r} holds no certificate (PEM)") from None
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _serving_pair(flags: GivenFlags, hosts: Collection[str], temporary: Path) -> tuple[Path, Path]:
    """The files with certificate and key: those that were named, those in --cert-dir, or new ones, written there."""
    named = flags.text("tls-cert-file"), flags.text("tls-private-key-file")
    if all(named):
        return Path(named[0]), Path(named[1])
    if any(named):
        raise FlagError("--tls-cert-file and --tls-private-key-file are given together or not at all")
    directory = Path(flags.text("cert-dir") or temporary)
    certificate, key = directory / "apiserver.crt", directory / "apiserver.key"
    missing = [path for path in (certificate, key) if not path.exists()]
    if len(missing) == 1:
        # As kube-apiserver does: what is there belongs to someone, and so do the permissions of a key.
        raise FlagError(f"--cert-dir {str(directory)!r} has only one of apiserver.crt and apiserver.key")
    if missing:
        authority = CertificateAuthority()
        pair = authority.server("kube-apiserver", hosts=hosts)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            certificate.write_text(pair.certificate + authority.certificate)
            key.touch(0o600)
            key.write_text(pair.key)
        except OSError as error:
            raise FlagError(
                f"cannot write a certificate to --cert-dir {str(directory)!r}: {error.strerror or error}"
            ) from None
    return certificate, key


def _tokens(flags: GivenFlags) -> dict[str, UserInfo]:
    """The users of --token-auth-file: lines of token, name, uid and, if any, the groups in quotation marks."""
    path = flags.text("token-auth-file")
    users: dict[str, UserInfo] = {}
    for number, row in enumerate(csv.reader(_read(flags, "token-auth-file").splitlines()), 1):
        if not row:
            continue
        if len(row) < 3:
            raise FlagError(
                f"token file {path!r} must have at least 3 columns (token, user name, user uid), "
                f"found {len(row)} in line {number}"
            )
        token, name, uid = row[:3]
        if token:
            users[token] = UserInfo(name, tuple(row[3].split(",")) if row[3:] and row[3] else (), uid)
    return users


def _signer(flags: GivenFlags) -> TokenSigner:
    name = "service-account-signing-key-file"
    issuer, text = flags.text("service-account-issuer") or ISSUER, _read(flags, name)
    if not text:
        return TokenSigner.generate(issuer)
    trusted = [key for path in flags.texts("service-account-key-file") for key in _public_keys(path)]
    try:
        key = serialization.load_pem_private_key(text.encode(), password=None)
    except (TypeError, ValueError):
        raise FlagError(f"--{name} {flags.text(name)!r} holds no private key (PEM)") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise FlagError(f"--{name} {flags.text(name)!r} holds neither an RSA nor a P-256 key")
    try:
        return TokenSigner(issuer, key, trusted)
    except ValueError as error:
        raise FlagError(f"--{name} {flags.text(name)!r}: {error}") from None


def _public_keys(path: str) -> Iterator[PublicKey]:
    """The keys in a file: public or private ones, or certificates."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise FlagError(f"cannot read --service-account-key-file {path!r}: {error.strerror}") from None
    found = False
    for block in _PEM.findall(text):
        key = _public_key(block)
        if isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey):
            found = True
            yield key
    if not found:
        raise FlagError(f"--service-account-key-file {path!r} holds no RSA or P-256 key (PEM)")


def _public_key(block: bytes) -> object:
    try:
        if b"CERTIFICATE" in block:
            return x509.load_pem_x509_certificate(block).public_key()
        if b"PRIVATE KEY" in block:
            return serialization.load_pem_private_key(block, password=None).public_key()
        return serialization.load_pem_public_key(block)
    except (TypeError, ValueError):
        return None
