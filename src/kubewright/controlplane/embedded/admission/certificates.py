"""The permissions for approving and signing certificates: the real server's admission plugins.

A user that approves or denies a request, or writes its outcome, needs the permission of its signer: the verb `approve`
or `sign` on the resource `signers`, by the signer's name or by `domain/*`. No request for system:masters is accepted.
"""

from __future__ import annotations

import base64

from cryptography.x509.oid import NameOID

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import at, text
from kubewright.controlplane.embedded.apimachinery.status import forbidden
from kubewright.controlplane.embedded.auth.attributes import Attributes
from kubewright.controlplane.embedded.auth.users import MASTERS
from kubewright.controlplane.embedded.builtins.pem import parse_request
from kubewright.controlplane.embedded.rest.call import Call

_GROUP, _PLURAL = CERTIFICATE_REQUESTS = ("certificates.k8s.io", "certificatesigningrequests")
_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"


def check_certificate_request(call: Call, new: JSONObject, old: JSONObject | None) -> None:
    """Raise the 403 for a write to a certificate signing request that its user has no right to."""
    if old is None:
        _check_subject(new)
    elif call.target.subresource == "approval":
        _require_signer(call, old, "approve")
    elif call.is_status and any(_differs(new, old, field) for field in ("certificate", "conditions")):
        _require_signer(call, old, "sign")


def _differs(new: JSONObject, old: JSONObject, field: str) -> bool:
    return (at(new, "status", field) or None) != (at(old, "status", field) or None)


def _require_signer(call: Call, request: JSONObject, verb: str) -> None:
    # What is stored counts: which signer it is for cannot be changed.
    signer = text(request, "spec", "signerName")
    for name in (signer, f"{signer.partition('/')[0]}/*"):
        if call.services.authorizer.authorize(Attributes(call.user, verb, _GROUP, "*", "signers", name=name)).allowed:
            return
    why = f'user not permitted to {verb} requests with signerName "{signer}"'
    raise forbidden(_PLURAL, _GROUP, call.target.name, why)


def _check_subject(request: JSONObject) -> None:
    if text(request, "spec", "signerName") != _CLIENT_SIGNER:
        return
    subject = parse_request(base64.b64decode(text(request, "spec", "request"))).subject
    if any(group.value == MASTERS for group in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)):
        why = f"use of {_CLIENT_SIGNER} signer with {MASTERS} group is not allowed"
        raise forbidden(_PLURAL, _GROUP, text(request, "metadata", "name"), why)
