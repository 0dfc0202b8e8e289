"""Labels every ReplicaSet `hello: world`: the smallest controller of a kind that is defined elsewhere."""

from __future__ import annotations

import logging

from kubewright import CachedClient, Request
from kubewright.api.apps.v1 import ReplicaSet

_log = logging.getLogger(__name__)


class HelloReconciler:
    """Reconciles ReplicaSets."""

    def __init__(self, client: CachedClient) -> None:
        self.client = client

    async def reconcile(self, request: Request) -> None:
        """Set the label where it is missing."""
        replica_set = await self.client.find(ReplicaSet, request)
        if replica_set is None:
            _log.info("the ReplicaSet is gone")
            return
        _log.debug("its first container is %s", replica_set.spec.template.spec.containers[0].name)
        if replica_set.metadata.labels.get("hello") == "world":
            return
        replica_set.metadata.labels["hello"] = "world"
        await self.client.patch(replica_set)
