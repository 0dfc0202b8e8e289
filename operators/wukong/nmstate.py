"""The kinds of NMState, as far as the operator reads and writes them: the network configuration of nodes."""

from __future__ import annotations

from typing import Annotated

from kubewright import Resource, resource
from kubewright.api.markers import JSONValue, ListMap
from kubewright.api.model import BuiltIn

from .kubevirt import KubeVirtCondition

POLICY_LABEL = "nmstate.io/policy"
"""The label of an enactment with the name of its policy."""


class PolicySpec(BuiltIn):
    """The desired state of the interfaces of some nodes."""

    node_selector: dict[str, str] = {}
    desired_state: dict[str, JSONValue] = {}


class PolicyStatus(BuiltIn):
    """What has become of it on all nodes."""

    conditions: Annotated[list[KubeVirtCondition], ListMap("type")] = []


@resource("nmstate.io/v1", plural="nodenetworkconfigurationpolicies", namespaced=False, short_names=["nncp"])
class NodeNetworkConfigurationPolicy(Resource[PolicySpec, PolicyStatus]):
    """A configuration of the interfaces of nodes. Its deletion undoes nothing."""


class EnactmentSpec(BuiltIn):
    """Nothing is wanted of it."""


class EnactmentStatus(BuiltIn):
    """What has become of one generation of a policy on a node."""

    policy_generation: int = 0
    conditions: Annotated[list[KubeVirtCondition], ListMap("type")] = []


@resource("nmstate.io/v1beta1", plural="nodenetworkconfigurationenactments", namespaced=False, short_names=["nnce"])
class NodeNetworkConfigurationEnactment(Resource[EnactmentSpec, EnactmentStatus]):
    """A policy on a node."""
