"""ClusterRoles that are made of others: their rules follow those of the roles their `aggregationRule` selects."""

from __future__ import annotations

from collections.abc import Iterable

from kubewright.api.codec import from_json, to_json
from kubewright.api.errors import KubernetesError
from kubewright.api.markers import JSONValue
from kubewright.api.rbac.v1 import ClusterRole
from kubewright.api.resources import Object
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.controller import Event, Handler, Request, Watched
from kubewright.controlplane.controllers.clock import Clock
from kubewright.controlplane.controllers.runtime import Runtime
from kubewright.controlplane.embedded.apimachinery.document import items, text
from kubewright.controlplane.embedded.auth.aggregation import aggregated_rules
from kubewright.controlplane.embedded.builtins.label_selectors import matcher_of

_FIELD_MANAGER = "clusterrole-aggregation-controller"
"""As kube-controller-manager's: it is seen in managedFields."""

_ALL = Request("", "all")


class ClusterRoleAggregation:
    """Applies the rules, with force, whenever they are not what the selected roles add up to."""

    name = "clusterrole-aggregation"

    def __init__(self, client: Client, clock: Clock | None = None, *, cache: Cache | None = None) -> None:
        self._runtime = Runtime(client, cache)
        self._client = self._runtime.client

    async def run(self) -> None:
        """Watch and aggregate until cancelled."""
        await self._runtime.run(self.name, self.reconcile, Watched(self._runtime.cache, ClusterRole, Handler(_for_all)))

    async def reconcile(self, request: Request) -> None:
        """Bring the rules of all roles up to date. One that cannot be written does not hold up the others."""
        roles = [_document(role) for role in _concerned(await self._client.list(ClusterRole))]
        failure: KubernetesError | None = None
        for role in roles:
            rules = aggregated_rules(role, roles)
            if rules is None or rules == items(role, "rules"):
                continue
            desired = from_json(ClusterRole, {"metadata": {"name": text(role, "metadata", "name")}, "rules": rules})
            try:
                await self._client.apply(desired, force=True, field_manager=_FIELD_MANAGER)
                # What follows is made of this. Two roles that select each other would exchange their rules for ever.
                role["rules"] = rules
            except KubernetesError as error:
                failure = error
        if failure is not None:
            raise failure


def _for_all(event: Event[Object]) -> Iterable[Request]:
    """Which roles a selector matches is not known beforehand: one reconcile checks all of them."""
    return (_ALL,)


def _concerned(roles: list[ClusterRole]) -> Iterable[ClusterRole]:
    """Those that are made of others and those that these may be made of, which of all roles are few."""
    rules = [role.aggregation_rule for role in roles if role.aggregation_rule is not None]
    selectors = [matcher_of(to_json(selector)) for rule in rules for selector in rule.cluster_role_selectors]
    for role in roles:
        labels = role.metadata.labels
        if role.aggregation_rule is not None or any(selector.matches(labels) for selector in selectors):
            yield role


def _document(role: ClusterRole) -> dict[str, JSONValue]:
    parts = {"aggregationRule": role.aggregation_rule, "rules": role.rules}
    metadata = {"name": role.metadata.name, "labels": role.metadata.labels}
    return {"metadata": to_json(metadata)} | {name: to_json(part) for name, part in parts.items()}
