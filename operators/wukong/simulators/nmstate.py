"""A simulation of NMState's handlers: policies are enacted on nodes, and what they leave behind stays there."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubewright import CachedClient, Manager, ObjectMeta, Result, controller_for
from kubewright.patterns import ObjectReconciler, ensure, set_condition

from ..nmstate import (
    POLICY_LABEL,
    EnactmentSpec,
    EnactmentStatus,
    NodeNetworkConfigurationEnactment,
    NodeNetworkConfigurationPolicy,
)


@dataclass
class NMStateScript:
    """What nodes do."""

    step: float = 0.05
    """Seconds until a policy is enacted."""
    nodes: tuple[str, ...] = ("node-1", "node-2")
    failing: set[str] = field(default_factory=set[str])
    """The interfaces that cannot be configured."""
    interfaces: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The interfaces that policies have made, by node. Deleting a policy removes none."""


def set_up_nmstate(manager: Manager, script: NMStateScript | None = None) -> None:
    """The controller of policies."""
    (
        controller_for(manager, NodeNetworkConfigurationPolicy, name="nmstate", slow_hot_loops=False)
        .owns(NodeNetworkConfigurationEnactment)
        .complete(PolicyReconciler(manager.client, script or NMStateScript()))
    )


class PolicyReconciler(ObjectReconciler[NodeNetworkConfigurationPolicy]):
    """Enacts policies on all nodes."""

    def __init__(self, client: CachedClient, script: NMStateScript) -> None:
        super().__init__(client)
        self._script = script
        self._seen: dict[str, int] = {}

    async def converge(self, policy: NodeNetworkConfigurationPolicy) -> Result | None:
        """Enact one generation of a policy."""
        uid, generation = policy.metadata.uid, policy.metadata.generation
        if self._seen.get(uid) != generation:
            self._seen[uid] = generation
            set_condition(policy, "Available", False, "ConfigurationProgressing")
            set_condition(policy, "Degraded", False, "ConfigurationProgressing")
            return Result(requeue_after=self._script.step)
        set_condition(policy, "Ignored", not self._script.nodes, "NoMatchingNode" if not self._script.nodes else "Done")
        if not self._script.nodes:
            return None
        names = [name for name, _ in _interfaces(policy)]
        failed = [name for name in names if name in self._script.failing]
        for node in self._script.nodes:
            if not failed:
                self._apply(node, policy)
            await self._enact(node, policy)
        set_condition(policy, "Available", not failed, "FailedToConfigure" if failed else "SuccessfullyConfigured")
        message = f"interface {failed[0]} not found" if failed else ""
        set_condition(policy, "Degraded", bool(failed), "FailedToConfigure" if failed else "Done", message)
        return None

    def _apply(self, node: str, policy: NodeNetworkConfigurationPolicy) -> None:
        there = self._script.interfaces.setdefault(node, set())
        for name, state in _interfaces(policy):
            (there.discard if state == "absent" else there.add)(name)

    async def _enact(self, node: str, policy: NodeNetworkConfigurationPolicy) -> None:
        metadata = ObjectMeta(name=f"{node}.{policy.metadata.name}", labels={POLICY_LABEL: policy.metadata.name})
        enactment = NodeNetworkConfigurationEnactment(metadata=metadata, spec=EnactmentSpec())
        there = (await ensure(self.client, enactment, owner=policy)).object
        there.status = EnactmentStatus(policy_generation=policy.metadata.generation)
        await self.client.status.patch(there)


def _interfaces(policy: NodeNetworkConfigurationPolicy) -> list[tuple[str, str]]:
    found = policy.spec.desired_state.get("interfaces")
    items = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return [(str(each.get("name")), str(each.get("state"))) for each in items]
