"""Bridges on nodes, by NMState: one policy for each bridge, shared by all Wukongs that use it.

Each user has an annotation of its own on the policy. The last one to leave has the bridge removed from the nodes, waits
until that is done, and deletes the policy: a deletion alone would leave the bridge. Both changes are guarded by the
revision, so that no Wukong joins a bridge that is being removed without it being made again. A Wukong that was deleted
while no bridges were made (`--nmstate off`) has left its annotation behind, and does not count.

The interface below a bridge must be one that the nodes do not need themselves: it gets no address, and neither does the
bridge.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import NamedTuple

from kubewright import Manager, ObjectMeta, Request
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.patterns import NotYet, get_condition

from .failures import BridgeConflict, BridgeFailed
from .nmstate import POLICY_LABEL, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy, PolicySpec
from .types import Network, Wukong, bridge_of, vlan_interface

USER_PREFIX = "user.vm.novasphere.dev/"
"""Followed by the uid of a Wukong; the value is its namespace and name."""
BRIDGE_LABEL = "vm.novasphere.dev/bridge"


class Bridge(NamedTuple):
    """A bridge on some nodes."""

    name: str
    type: str
    """Of the network: bridge or ovs."""
    interface: str
    vlan_id: int | None
    node_selector: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, network: Network) -> Bridge:
        """The bridge of a network."""
        vlan_id = network.vlan_id if network.type == "bridge" else None  # of ovs, its ports are tagged
        selector = tuple(sorted(network.node_selector.items()))
        return cls(bridge_of(network), network.type or "", network.physical_interface or "", vlan_id, selector)

    @property
    def policy_name(self) -> str:
        """The same for all Wukongs that want just this bridge."""
        readable = re.sub("[^a-z0-9]+", "-", f"{self.name}-{self.interface}".lower()).strip("-")
        return f"wukong-{readable}-{sha256(json.dumps(self).encode()).hexdigest()[:8]}"

    @property
    def port(self) -> str:
        """The interface that is put into the bridge."""
        return vlan_interface(self.interface, self.vlan_id)

    def conflicts(self, other: Bridge) -> bool:
        """Whether some node cannot have both: they have one name, or one port, which can be in one bridge only."""
        is_one = self.name == other.name or self.port == other.port
        return self != other and is_one and not self._is_apart(dict(other.node_selector))

    def is_taken_by(self, policy: NodeNetworkConfigurationPolicy) -> bool:
        """Whether some node has an interface of its name, or its port in something else, by a policy of others."""
        interfaces = [each for each in _items(policy.spec.desired_state, "interfaces") if isinstance(each, dict)]
        names = [each.get("name") for each in interfaces]
        ports = [port for each in interfaces for port in _items(each.get("link-aggregation"), "port")]
        for port in (port for each in interfaces for port in _items(each.get("bridge"), "port")):
            ports.append(port.get("name") if isinstance(port, dict) else None)
        return (self.name in names or self.port in ports) and not self._is_apart(policy.spec.node_selector)

    def _is_apart(self, node_selector: Mapping[str, str]) -> bool:
        """Whether no node is selected by both."""
        return any(node_selector.get(label, value) != value for label, value in self.node_selector)

    def desired_state(self) -> JSONObject:
        """The interfaces, as they are to be."""
        options: JSONObject = {"stp": {"enabled": False}} if self.type == "bridge" else {"stp": False}
        bridge: JSONObject = {
            "name": self.name,
            "type": _TYPES[self.type],
            "state": "up",
            "bridge": {"options": options, "port": [{"name": self.port}]},
        }
        if self.type == "bridge":
            bridge |= {"ipv4": {"enabled": False}, "ipv6": {"enabled": False}}
        if self.vlan_id is None:
            return {"interfaces": [bridge]}
        vlan: JSONObject = {"base-iface": self.interface, "id": self.vlan_id}
        return {"interfaces": [{"name": self.port, "type": "vlan", "state": "up", "vlan": vlan}, bridge]}

    def absent_state(self) -> JSONObject:
        """The interfaces, as they are to be when they have no user."""
        gone: list[JSONObject] = [{"name": self.name, "type": _TYPES[self.type], "state": "absent"}]
        if self.vlan_id is not None:
            gone.append({"name": self.port, "type": "vlan", "state": "absent"})
        return {"interfaces": [*gone]}


_TYPES = {"bridge": "linux-bridge", "ovs": "ovs-bridge"}


def _items(value: JSONValue, name: str) -> list[JSONValue]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


class Bridges:
    """A `NodeNetworks` that makes and removes bridges."""

    def __init__(self, manager: Manager) -> None:
        self._client = manager.client
        self._cache = manager.cache
        self._joining = asyncio.Lock()

    def tags(self, network: Network) -> bool:
        """See `NodeNetworks`."""
        return network.type == "bridge" and _is_made(network)

    async def configure(self, wukong: Wukong) -> None:
        """See `NodeNetworks`."""
        wanted = dict.fromkeys(Bridge.of(network) for network in wukong.spec.networks if _is_made(network))
        if not wanted:
            return
        if not await self._client.serves(NodeNetworkConfigurationPolicy):
            raise NotYet("NMState is not installed, and bridges are to be made", reason="NMStateMissing")
        async with self._joining:  # of two that conflict and come at once, the second has to see the first
            policies = [(bridge, await self._join(wukong, bridge, wanted)) for bridge in wanted]
        for bridge, policy in policies:
            problem = await self._pending(policy)
            if problem:
                raise NotYet(f"the bridge {bridge.name} is not on all nodes yet: {problem}", reason="NMStatePending")

    async def release(self, wukong: Wukong, *, everything: bool = False) -> None:
        """See `NodeNetworks`."""
        networks = [] if everything else wukong.spec.networks
        kept = {Bridge.of(network).policy_name for network in networks if _is_made(network)}
        user = USER_PREFIX + wukong.metadata.uid
        waiting: list[str] = []
        for policy in await self._client.list(NodeNetworkConfigurationPolicy, labels={BRIDGE_LABEL: True}):
            if user in policy.metadata.annotations and policy.metadata.name not in kept:
                waiting.append(await self._leave(policy, user))
        if any(waiting):
            raise NotYet(f"bridges are being removed from nodes: {'; '.join(filter(None, waiting))}", after=2)

    async def _join(self, wukong: Wukong, bridge: Bridge, wanted: Collection[Bridge]) -> NodeNetworkConfigurationPolicy:
        user = USER_PREFIX + wukong.metadata.uid
        policy = await self._client.find(NodeNetworkConfigurationPolicy, bridge.policy_name)
        if policy is None:
            await self._make_room(wukong, bridge, wanted)
            metadata = ObjectMeta(
                name=bridge.policy_name,
                labels={BRIDGE_LABEL: "true"},
                annotations={user: str(wukong.key), BRIDGE_LABEL: json.dumps(bridge)},
            )
            spec = PolicySpec(node_selector=dict(bridge.node_selector), desired_state=bridge.desired_state())
            return await self._client.create(NodeNetworkConfigurationPolicy(metadata=metadata, spec=spec))
        policy.metadata.annotations[user] = str(wukong.key)
        policy.spec.desired_state = bridge.desired_state()
        return await self._client.patch(policy, lock=True)

    async def _make_room(self, wukong: Wukong, bridge: Bridge, wanted: Collection[Bridge]) -> None:
        """Remove bridges that conflict and that nobody but this Wukong has used. Raises `BridgeConflict` of others."""
        for policy in await self._client.list(NodeNetworkConfigurationPolicy):
            if BRIDGE_LABEL not in policy.metadata.labels and bridge.is_taken_by(policy):
                # It would be changed, and with its last user removed: others may depend on it.
                raise BridgeConflict(
                    f"the bridge {bridge.name} on {bridge.port} is wanted, and the policy {policy.metadata.name}, "
                    "which no Wukong has made, has one of them: leave physicalInterface out to use what is there"
                )
            other = bridge_in(policy)
            if other is None or not bridge.conflicts(other):
                continue
            present = await self._present(policy)
            if other not in wanted:
                present.pop(USER_PREFIX + wukong.metadata.uid, None)
            if present:
                users = ", ".join(str(key) for key in present.values())
                raise BridgeConflict(
                    f"the bridge {bridge.name} on {bridge.port} is wanted, and {users} has {other.name} on "
                    f"{other.port}: share that, choose another bridgeName and physicalInterface, or nodes that "
                    "differ in a label of their nodeSelector"
                )
            waiting = await self._remove(policy)
            if waiting:
                raise NotYet(
                    f"a bridge makes room for {bridge.name} on {bridge.port}: {waiting}", reason="NMStatePending"
                )

    async def _leave(self, policy: NodeNetworkConfigurationPolicy, user: str) -> str:
        """Leave a policy; what is to be waited for, if it goes with us."""
        present = await self._present(policy)
        present.pop(user, None)
        if not present:
            return await self._remove(policy)
        for each in users_in(policy).keys() - present.keys():
            del policy.metadata.annotations[each]
        await self._client.patch(policy, lock=True)
        return ""

    async def _remove(self, policy: NodeNetworkConfigurationPolicy) -> str:
        """Have the bridge removed from the nodes, and then delete its policy; what is to be waited for until then."""
        bridge = bridge_in(policy)
        if bridge is not None:
            policy.spec.desired_state = bridge.absent_state()
            policy = await self._client.patch(policy, lock=True)
            problem = await self._pending(policy)
            if problem and not is_ignored(policy):
                return f"{bridge.name}: {problem}"
        revision = policy.metadata.resource_version
        await self._client.delete(policy, uid=policy.metadata.uid, resource_version=revision, missing_ok=True)
        return ""

    async def _present(self, policy: NodeNetworkConfigurationPolicy) -> dict[str, Request]:
        """The users of a policy, without those that are known to be gone."""
        namespaces, present = self._cache.namespaces, dict[str, Request]()
        for user, key in users_in(policy).items():
            if (namespaces and key.namespace not in namespaces) or await self._exists(key, user):
                present[user] = key
        return present

    async def _exists(self, key: Request, user: str) -> bool:
        found = await self._client.find(Wukong, key)
        if found is None or USER_PREFIX + found.metadata.uid != user:  # the cache may lag behind the policy
            found = await self._client.find(Wukong, key, consistency="live")
        return found is not None and USER_PREFIX + found.metadata.uid == user

    async def _pending(self, policy: NodeNetworkConfigurationPolicy) -> str:
        """What is missing until all nodes are as the policy says now; empty when they are. Raises `BridgeFailed`."""
        name, generation = policy.metadata.name, policy.metadata.generation
        if is_ignored(policy):
            return "no node matches its nodeSelector"
        enactments = await self._client.list(NodeNetworkConfigurationEnactment, labels={POLICY_LABEL: name})
        old = [each.metadata.name for each in enactments if each.status.policy_generation != generation]
        if old:
            return f"{len(old)} of {len(enactments)} nodes have not seen it"
        degraded, available = get_condition(policy, "Degraded"), get_condition(policy, "Available")
        if degraded is not None and degraded.status == "True":
            raise BridgeFailed(f"the policy {name} failed: {degraded.message or degraded.reason or 'no reason given'}")
        if available is None or available.status != "True":
            return (available.message or available.reason or "" if available is not None else "") or "it is in progress"
        return ""


def _is_made(network: Network) -> bool:
    """Whether the network has a bridge that is put on an interface of nodes."""
    return network.physical_interface is not None and network.nad_name is None and network.type in _TYPES


def is_ignored(policy: NodeNetworkConfigurationPolicy) -> bool:
    """Whether there is no node that it is about: none will ever see it."""
    ignored = get_condition(policy, "Ignored")
    return ignored is not None and ignored.status == "True"


def bridge_in(policy: NodeNetworkConfigurationPolicy) -> Bridge | None:
    """The bridge that a policy is about; None when its annotation is missing or damaged."""
    try:
        name, type_, interface, vlan_id, selector = json.loads(policy.metadata.annotations[BRIDGE_LABEL])
        return Bridge(name, type_, interface, vlan_id, tuple((key, value) for key, value in selector))
    except (KeyError, TypeError, ValueError):
        return None


def users_of(policy: NodeNetworkConfigurationPolicy) -> list[Request]:
    """The Wukongs that use a policy."""
    return list(users_in(policy).values())


def users_in(policy: NodeNetworkConfigurationPolicy) -> dict[str, Request]:
    """The same, by the names of their annotations."""
    annotations = policy.metadata.annotations
    keys = {name: value.partition("/") for name, value in annotations.items() if name.startswith(USER_PREFIX)}
    return {user: Request(namespace, name) for user, (namespace, _, name) in keys.items() if namespace and name}
