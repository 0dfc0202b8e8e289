"""What kube-controller-manager does about certificate signing requests: approves those of kubelets and signs them.

A request for a client certificate of a kubelet is approved when its requester may have one; all others are approved by
users. Requests that were approved for one of Kubernetes' own signers and obey its rules are signed.
"""

from __future__ import annotations

import base64
from datetime import timedelta

from cryptography import x509

from kubewright.api.authorization.v1 import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from kubewright.api.certificates.v1 import CertificateSigningRequest, CertificateSigningRequestCondition
from kubewright.api.errors import KubernetesError
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.controller import Request, Watched, for_object
from kubewright.controlplane.certificates import CertificateAuthority
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.runtime import Runtime, StatelessController
from kubewright.controlplane.controllers.signer_rules import KUBELET_CLIENT, SIGNERS, common_name
from kubewright.controlplane.embedded.builtins.pem import parse_request
from kubewright.patterns.conditions import is_true, set_condition
from kubewright.patterns.object_reconciler import ObjectReconciler

_LIFETIME = timedelta(days=365)
_MIN_SECONDS = timedelta(minutes=10)
# So that a verifier whose clock is a little behind accepts it, too.
_BACKDATED = timedelta(minutes=5)
_SHORT = timedelta(hours=8)
"""Below this the end is not moved together with the beginning."""


class CertificateApprover(StatelessController):
    """Approves requests for client certificates of kubelets whose requesters may create `nodeclient` requests.

    A node that requests its own certificate needs only `selfnodeclient`.
    """

    name = "csrapproving"

    async def run(self) -> None:
        """Watch and approve until cancelled."""
        source = Watched(self._runtime.cache, CertificateSigningRequest, for_object)
        await self._runtime.run(self.name, self.reconcile, source)

    async def reconcile(self, key: Request) -> None:
        """Approve one request, unless it is decided already or needs a user to decide."""
        request = await self._client.find(CertificateSigningRequest, key)
        if request is None or request.status.certificate or is_true(request, "Approved") or is_true(request, "Denied"):
            return
        requested = _parsed(request)
        if request.spec.signer_name != KUBELET_CLIENT or SIGNERS[KUBELET_CLIENT](requested, request.spec.usages):
            return
        if common_name(requested) == request.spec.username and await self._may(request, "selfnodeclient"):
            await self._approve(request, "Auto approving self kubelet client certificate after SubjectAccessReview.")
        elif await self._may(request, "nodeclient"):
            await self._approve(request, "Auto approving kubelet client certificate after SubjectAccessReview.")
        else:
            raise _NotAllowed(f"the requester of {key.name} may not have a kubelet's certificate")

    async def _may(self, request: CertificateSigningRequest, subresource: str) -> bool:
        spec = request.spec
        requested = ResourceAttributes(
            group="certificates.k8s.io",
            version="*",
            resource="certificatesigningrequests",
            subresource=subresource,
            verb="create",
        )
        review = SubjectAccessReview(
            spec=SubjectAccessReviewSpec(
                user=spec.username, uid=spec.uid, groups=spec.groups, extra=spec.extra, resource_attributes=requested
            )
        )
        return (await self._client.create(review)).status.allowed

    async def _approve(self, request: CertificateSigningRequest, message: str) -> None:
        # Without times: the server's clock sets them.
        approved = CertificateSigningRequestCondition(
            type="Approved", status="True", reason="AutoApproved", message=message
        )
        request.status.conditions.append(approved)
        await self._client.subresource("approval").update(request)


class _NotAllowed(KubernetesError):
    """The requester lacks the permission; retried, as it may be granted later."""


class CertificateSigner(ObjectReconciler[CertificateSigningRequest]):
    """Signs what was approved with the control plane's own authority, for a year or for the requested time.

    Guarantee: a certificate has the subject, key and alternative names of its request, and no usage that its signer
    does not allow; a request that breaks the rules of its signer is marked as failed.
    """

    name = "csrsigning"

    def __init__(
        self,
        client: Client,
        clock: Clock | None = None,
        *,
        authority: CertificateAuthority,
        cache: Cache | None = None,
    ) -> None:
        self._runtime = Runtime(client, cache)
        super().__init__(self._runtime.client)
        self._clock = clock or SystemClock()
        self._authority = authority

    async def run(self) -> None:
        """Watch and sign until cancelled."""
        source = Watched(self._runtime.cache, CertificateSigningRequest, for_object)
        await self._runtime.run(self.name, self.reconcile, source)

    async def converge(self, request: CertificateSigningRequest, /) -> None:
        """Sign a request that was approved, or report why that failed."""
        check = SIGNERS.get(request.spec.signer_name)
        if check is None or request.status.certificate or not is_true(request, "Approved"):
            return
        if is_true(request, "Denied") or is_true(request, "Failed"):
            return
        requested = _parsed(request)
        if why := check(requested, request.spec.usages):
            set_condition(request, "Failed", True, "SignerValidationFailure", why, at=self._clock.now())
        else:
            request.status.certificate = base64.b64encode(self._sign(requested, request).encode()).decode()

    def _sign(self, requested: x509.CertificateSigningRequest, request: CertificateSigningRequest) -> str:
        lifetime, seconds = _LIFETIME, request.spec.expiration_seconds
        if seconds is not None:
            lifetime = min(_LIFETIME, max(_MIN_SECONDS, timedelta(seconds=seconds)))
        begin = self._clock.now() - _BACKDATED
        end = begin + lifetime + (_BACKDATED if lifetime < _SHORT else timedelta())
        return self._authority.certify(requested, request.spec.usages, begin=begin, end=end)


def _parsed(request: CertificateSigningRequest) -> x509.CertificateSigningRequest:
    return parse_request(base64.b64decode(request.spec.request))
