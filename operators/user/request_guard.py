"""Has requests be carried out only while the policy is in force that checks what their creators may request."""

from __future__ import annotations

from datetime import datetime, timedelta

from kubewright import CachedClient
from kubewright.api import Object
from kubewright.api.admissionregistration.v1 import ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding
from kubewright.patterns import NotYet, Permanent

from .request_policy import EXPRESSIONS, POLICY

ENFORCED_AFTER = timedelta(seconds=5)
"""API servers take a moment to enforce a policy that was written; times of creation are whole seconds."""


class Guard:
    """Looks for the policy. One that is not enforced lets everybody request everything who may create requests."""

    def __init__(self, client: CachedClient, *, is_enforced: bool = True) -> None:
        """With `is_enforced=False` nothing is looked for: RBAC alone says who may create requests, and of what."""
        self._client = client
        self._is_enforced = is_enforced
        self._written: dict[tuple[str, str], datetime | None] = {}

    async def check(self, request: Object) -> None:
        """Return when the request was created under the policy."""
        if not self._is_enforced:
            return
        policy = await self._client.find(ValidatingAdmissionPolicy, POLICY)
        binding = await self._client.find(ValidatingAdmissionPolicyBinding, POLICY)
        if policy is None or binding is None:
            raise NotYet(
                f"the ValidatingAdmissionPolicy {POLICY}, which checks what the creators of requests may do, is not "
                "enforced: apply the manifests of the operator",
                after=30,
                reason="Unguarded",
            )
        if not (_checks_all(policy) and _denies(binding)):
            # Not to be waited for: that it was a weaker one may not show any more when it is mended.
            raise Permanent(
                f"the ValidatingAdmissionPolicy {POLICY}, which checks what the creators of requests may do, is not "
                "enforced as the operator deploys it: apply its manifests, and create the request again"
            )
        created = request.metadata.creation_timestamp
        for part in (policy, binding):
            written = await self._last_written(part)
            if created is not None and written is not None and created < written + ENFORCED_AFTER:
                raise Permanent(
                    f"it was created before the ValidatingAdmissionPolicy {POLICY}, or its last change, was in force: "
                    "create it again"
                )

    async def _last_written(self, part: Object) -> datetime | None:
        """When a part of the policy was created, or last changed: until then it may have been another one.

        Caches do not keep that, so that the server is asked once for each revision.
        """
        revision = part.kind, part.metadata.resource_version
        if revision not in self._written:
            metadata = (await self._client.get(part, consistency="live")).metadata
            self._written = {key: time for key, time in self._written.items() if key[0] != part.kind}
            times = [each.time for each in metadata.managed_fields if each.time is not None and not each.subresource]
            self._written[revision] = max([*times, *filter(None, [metadata.creation_timestamp])], default=None)
        return self._written[revision]


def _checks_all(policy: ValidatingAdmissionPolicy) -> bool:
    """Whether it refuses what the policy of this operator refuses."""
    spec = policy.spec
    found = {each.expression for each in spec.validations} | {each.expression for each in spec.variables}
    return found >= EXPRESSIONS and not spec.match_conditions and spec.failure_policy != "Ignore"


def _denies(binding: ValidatingAdmissionPolicyBinding) -> bool:
    """Whether it has the policy enforced, for all requests."""
    spec = binding.spec
    return spec.policy_name == POLICY and "Deny" in spec.validation_actions and spec.match_resources is None
