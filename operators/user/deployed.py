"""What is deployed with the operator: it needs these objects, and may not write them itself.

The ClusterRoles say what the members of a workspace may do. The policy keeps those members from changing the labels,
the owner and the finalizers of their workspace: to have all rights in a namespace includes to update the namespace
itself, and so to take the Pod Security Standards off it, or to have it, or what is in it, outlive its User.
"""

from __future__ import annotations

from kubewright import ObjectMeta
from kubewright.api import Object
from kubewright.api.admissionregistration.v1 import (
    MatchResources,
    NamedRuleWithOperations,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpec,
    ValidatingAdmissionPolicySpec,
    Validation,
)
from kubewright.api.core.v1 import Namespace
from kubewright.api.meta import LabelSelector, LabelSelectorRequirement

from .names import OWNER, SYSTEM_NAMESPACE
from .roles import cluster_roles

POLICY = "workspace-labels"

# A right that comes by a role binding in the workspace is none to change namespaces of the cluster. The finalizers in
# the spec are taken off by the controller of namespaces, which may not patch them, when what is in one is deleted.
_MAY_WRITE = """\
authorizer.group('').resource('namespaces').check('patch').allowed()
|| (object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({})
  && object.metadata.?ownerReferences.orValue([]) == oldObject.metadata.?ownerReferences.orValue([])
  && object.metadata.?finalizers.orValue([]) == oldObject.metadata.?finalizers.orValue([])
  && (object.spec.?finalizers.orValue([]) == oldObject.spec.?finalizers.orValue([])
    || authorizer.group('').resource('namespaces').subresource('finalize').check('update').allowed()))"""

# The subresources of a namespace take labels, owners and finalizers, too.
_WRITTEN_BY = ["namespaces", "namespaces/status", "namespaces/finalize"]


def required_objects() -> list[Object]:
    """The system namespace, the ClusterRoles, and the policy for the labels of workspaces."""
    return [Namespace(metadata=ObjectMeta(name=SYSTEM_NAMESPACE)), *cluster_roles(), label_policy(), _enforced()]


def label_policy() -> ValidatingAdmissionPolicy:
    """Who may patch namespaces of the whole cluster may change the labels, owners and finalizers of a workspace."""
    updates = NamedRuleWithOperations(
        api_groups=[""], api_versions=["v1"], resources=_WRITTEN_BY, operations=["UPDATE"]
    )
    workspaces = LabelSelector(match_expressions=[LabelSelectorRequirement(key=OWNER, operator="Exists")])
    validation = Validation(
        expression=_MAY_WRITE,
        message="the labels, owners and finalizers of a workspace are changed by those who may patch namespaces of the "
        "cluster",
        reason="Forbidden",
    )
    return ValidatingAdmissionPolicy(
        metadata=ObjectMeta(name=POLICY),
        spec=ValidatingAdmissionPolicySpec(
            match_constraints=MatchResources(resource_rules=[updates], object_selector=workspaces),
            validations=[validation],
        ),
    )


def _enforced() -> ValidatingAdmissionPolicyBinding:
    return ValidatingAdmissionPolicyBinding(
        metadata=ObjectMeta(name=POLICY),
        spec=ValidatingAdmissionPolicyBindingSpec(policy_name=POLICY, validation_actions=["Deny"]),
    )
