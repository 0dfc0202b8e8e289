"""ClusterRoles that are made of others: their rules follow those of the roles their `aggregationRule` selects."""

from __future__ import annotations

from typing import cast

from kubewright.api.codec import decode_json, encode, from_json, origin
from kubewright.api.kinds import ObjectKey
from kubewright.api.rbac.v1 import ClusterRole
from kubewright.client import Client
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.loop import Mirror, Queue, run
from kubewright.controlplane.embedded.auth.aggregation import aggregated_rules
from kubewright.controlplane.embedded.document import JSONObject, items

_FIELD_MANAGER = "clusterrole-aggregation-controller"
"""As kube-controller-manager's: it is seen in managedFields."""


class ClusterRoleAggregation:
    """Applies the rules, taking them over from anybody, whenever they are not what the selected roles add up to."""

    name = "clusterrole-aggregation"

    def __init__(self, client: Client, clock: Clock | None = None) -> None:
        self._client = client
        self._queue = Queue[str](clock or SystemClock())
        self._roles = Mirror(client, ClusterRole, changed=self._changed)
        self._contents: dict[str, tuple[ClusterRole, JSONObject]] = {}

    async def run(self) -> None:
        """Watch and aggregate until cancelled."""
        await run(self._roles, queue=self._queue, reconcile=self.reconcile)

    async def reconcile(self, name: str) -> None:
        """Bring the rules of one role up to date."""
        role = self._roles.get(ObjectKey("", name))
        if role is None or role.aggregation_rule is None:
            return
        content = self._content(role)
        rules = aggregated_rules(content, [self._content(other) for other in self._roles])
        if rules == items(content, "rules"):
            return
        wanted = from_json(ClusterRole, {"metadata": {"name": name}, "rules": rules})
        self._roles.record(await self._client.apply(wanted, force=True, field_manager=_FIELD_MANAGER))

    def _changed(self, old: ClusterRole | None, new: ClusterRole | None) -> None:
        if old is not None and new is None:
            self._contents.pop(old.metadata.name, None)
        # Which roles a selector finds is not known beforehand, and those that aggregate are few.
        for role in self._roles:
            if role.aggregation_rule is not None:
                self._queue.add(role.metadata.name)

    def _content(self, role: ClusterRole) -> JSONObject:
        """The role as JSON, made once for each version of it: each pass looks at all roles."""
        known, content = self._contents.get(role.metadata.name, (None, {}))
        if known is not role:
            content = cast(JSONObject, decode_json(origin(role) or encode(role)))
            self._contents[role.metadata.name] = role, content
        return content
