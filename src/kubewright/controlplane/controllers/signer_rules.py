"""The rules of Kubernetes' own signers: each returns what is wrong with a request, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from cryptography import x509
from cryptography.x509.oid import NameOID

SignerRule: TypeAlias = Callable[[x509.CertificateSigningRequest, Collection[str]], str]
"""Takes a request and its usages."""

KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
_NODES, _NODE = "system:nodes", "system:node:"
_OPTIONAL = "key encipherment"
_NO_NODES = f"subject organization is not {_NODES}"
_NO_NODE = f"subject common name does not begin with {_NODE}"
_KINDS: Mapping[type[x509.GeneralName], str] = {
    x509.DNSName: "DNS",
    x509.RFC822Name: "Email",
    x509.IPAddress: "IP",
    x509.UniformResourceIdentifier: "URI",
}


def common_name(request: x509.CertificateSigningRequest) -> str:
    """The name of the subject."""
    names = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[-1].value) if names else ""


def _client(request: x509.CertificateSigningRequest, usages: Collection[str]) -> str:
    for usage in usages:
        if usage not in ("digital signature", _OPTIONAL, "client auth"):
            return f"invalid usage for client certificate: {usage}"
    return "" if "client auth" in usages else "missing required usage for client certificate: client auth"


def _kubelet_client(request: x509.CertificateSigningRequest, usages: Collection[str]) -> str:
    if not _is_of_nodes(request):
        return _NO_NODES
    found = _kinds_of_alternatives(request)
    for kind in _KINDS.values():
        if kind in found:
            return f"{kind} subjectAltNames are not allowed"
    if not common_name(request).startswith(_NODE):
        return _NO_NODE
    return _wrong_usages(usages, "client auth")


def _kubelet_serving(request: x509.CertificateSigningRequest, usages: Collection[str]) -> str:
    if not _is_of_nodes(request):
        return _NO_NODES
    found = _kinds_of_alternatives(request)
    if not found & {"DNS", "IP"}:
        return "DNS or IP subjectAltName is required"
    for kind in ("Email", "URI"):
        if kind in found:
            return f"{kind} subjectAltNames are not allowed"
    return _wrong_usages(usages, "server auth") or ("" if common_name(request).startswith(_NODE) else _NO_NODE)


def _is_of_nodes(request: x509.CertificateSigningRequest) -> bool:
    organizations = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return [organization.value for organization in organizations] == [_NODES]


def _kinds_of_alternatives(request: x509.CertificateSigningRequest) -> set[str]:
    try:
        alternatives = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {_KINDS[type(name)] for name in alternatives if type(name) in _KINDS}


def _wrong_usages(usages: Collection[str], extended: str) -> str:
    needed = {"digital signature", extended}
    if set(usages) in (needed, needed | {_OPTIONAL}):
        return ""
    return f"usages did not match [{' '.join(sorted(needed | {_OPTIONAL}))}]"


SIGNERS: Mapping[str, SignerRule] = {
    "kubernetes.io/kube-apiserver-client": _client,
    KUBELET_CLIENT: _kubelet_client,
    "kubernetes.io/kubelet-serving": _kubelet_serving,
}
