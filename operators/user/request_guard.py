"""Has requests be carried out only while the policy is in force that checks what their creators may request."""

from __future__ import annotations

from kubewright import CachedClient
from kubewright.api import Object
from kubewright.api.admissionregistration.v1 import ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding
from kubewright.patterns import NotYet, Permanent

from .request_policy import POLICY


class Guard:
    """Looks for the policy. One that is not enforced lets everybody request everything who may create requests."""

    def __init__(self, client: CachedClient, *, is_enforced: bool = True) -> None:
        """With `is_enforced=False` nothing is looked for: RBAC alone says who may create requests, and of what."""
        self._client = client
        self._is_enforced = is_enforced

    async def check(self, request: Object) -> None:
        """Return when the request was created under the policy."""
        if not self._is_enforced:
            return
        policy = await self._client.find(ValidatingAdmissionPolicy, POLICY)
        binding = await self._client.find(ValidatingAdmissionPolicyBinding, POLICY)
        if policy is None or binding is None or "Deny" not in (binding.spec.validation_actions or []):
            raise NotYet(
                f"the ValidatingAdmissionPolicy {POLICY}, which checks what the creators of requests may do, is not "
                "enforced: apply the manifests of the operator",
                after=30,
                reason="Unguarded",
            )
        created = request.metadata.creation_timestamp
        for part in (policy, binding):
            since = part.metadata.creation_timestamp
            if created is not None and since is not None and created < since:
                raise Permanent(f"it was created before the ValidatingAdmissionPolicy {POLICY}: create it again")
