"""Has requests be carried out only if they were created under the policy that checks what their creators may request.

A policy may be weakened and mended while no operator runs. Neither its times nor its fields show that afterwards, its
generation does: the server counts it up whenever the spec changes. So the ConfigMap `workspace-requests` in
`user-system` has the generations that were found to be as they should be. It is never changed, only replaced: the time
of its creation, by the server's clock, is the time from which on requests are trusted.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta

from kubewright import CachedClient, ObjectMeta, Request, now
from kubewright.api import Object, metadata_only
from kubewright.api.admissionregistration.v1 import ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding
from kubewright.api.core.v1 import ConfigMap
from kubewright.patterns import NotYet, Permanent

from .names import SYSTEM_NAMESPACE
from .request_policy import POLICY, checks_all, denies

ENFORCED_AFTER = timedelta(seconds=5)
"""API servers take a moment to enforce a policy that was written; times of creation are whole seconds."""

RECORD = POLICY
"""The ConfigMap with the generations of the policy and its binding."""

_log = logging.getLogger(__name__)


class Guard:
    """Checks that requests were created under the policy: without it, who may create requests may request everything.

    Guarantee: a request is carried out only if policy and binding have been as they are deployed without interruption,
    from at least 5 s before its creation until now, whether or not an operator was running.
    """

    def __init__(self, client: CachedClient, *, is_enforced: bool = True) -> None:
        """With `is_enforced=False` nothing is checked: RBAC alone says who may create requests, and of what."""
        self._client = client
        self._is_enforced = is_enforced
        self._known: tuple[dict[str, str], datetime] | None = None
        self._verifying = asyncio.Lock()

    async def reconcile(self, _: Request) -> None:
        """Record a policy that has changed as soon as it has: requests are trusted from then on."""
        try:
            await self._in_force_since()
        except (NotYet, Permanent) as error:
            _log.warning("requests are not carried out: %s", error)

    async def check(self, request: Object) -> None:
        """Return when the request was created under the policy."""
        if not self._is_enforced:
            return
        since, created = await self._in_force_since(), request.metadata.creation_timestamp
        if created is None or created < since + ENFORCED_AFTER:
            raise Permanent(
                f"it was created before the ValidatingAdmissionPolicy {POLICY}, or its last change, was in force: "
                "create it again"
            )

    async def _in_force_since(self) -> datetime:
        """The time since which the policy is known to be what it is now.

        Not from the cache: a request may be there before the watch reports what happened to the policy before it.
        """
        policy, binding = await asyncio.gather(
            self._client.find(metadata_only(ValidatingAdmissionPolicy), POLICY, consistency="live"),
            self._client.find(metadata_only(ValidatingAdmissionPolicyBinding), POLICY, consistency="live"),
        )
        if self._known is not None and self._known[0] == _generations(policy, binding):
            return self._known[1]
        async with self._verifying:
            self._known = await self._verified()
            return self._known[1]

    async def _verified(self) -> tuple[dict[str, str], datetime]:
        """The generations of a policy that is as it should be, and since when it is."""
        policy = await self._client.find(ValidatingAdmissionPolicy, POLICY, consistency="live")
        binding = await self._client.find(ValidatingAdmissionPolicyBinding, POLICY, consistency="live")
        if policy is None or binding is None:
            raise NotYet(
                f"the ValidatingAdmissionPolicy {POLICY}, which checks what the creators of requests may do, is not "
                "enforced: apply the manifests of the operator",
                after=30,
                reason="Unguarded",
            )
        if not (checks_all(policy) and denies(binding)):
            # Not to be waited for: this request may not have been checked.
            raise Permanent(
                f"the ValidatingAdmissionPolicy {POLICY}, which checks what the creators of requests may do, is not "
                "enforced as the operator deploys it: apply its manifests, and create the request again"
            )
        generations = _generations(policy, binding)
        created = policy.metadata.creation_timestamp, binding.metadata.creation_timestamp
        if policy.metadata.generation == binding.metadata.generation == 1 and None not in created:
            return generations, max(filter(None, created))  # they have never been anything else
        return generations, await self._recorded(generations)

    async def _recorded(self, generations: dict[str, str]) -> datetime:
        """When these generations were found to be as they should be: now, unless there is a record of it."""
        found = await self._client.find(ConfigMap, RECORD, namespace=SYSTEM_NAMESPACE, consistency="live")
        if found is None or found.data != generations or not found.immutable:
            if found is not None:
                await self._client.delete(found, uid=found.metadata.uid, missing_ok=True)
            metadata = ObjectMeta(name=RECORD, namespace=SYSTEM_NAMESPACE)
            found = await self._client.create(ConfigMap(metadata=metadata, data=generations, immutable=True))
            _log.info("requests are carried out that are created from now on: the policy %s has changed", POLICY)
        return found.metadata.creation_timestamp or now()


def _generations(policy: Object | None, binding: Object | None) -> dict[str, str]:
    parts = {"policy": policy, "binding": binding}
    return {name: f"{part.metadata.uid}/{part.metadata.generation}" for name, part in parts.items() if part is not None}
