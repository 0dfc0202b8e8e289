"""An operator with everything that can be deployed: two kinds, one in two versions, webhooks, roles, objects."""

from __future__ import annotations

from typing import Self

from kubewright import Model, Resource, Review, converts, defaults, resource, validates
from kubewright.api.admissionregistration.v1 import (
    MatchResources,
    NamedRuleWithOperations,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpec,
    ValidatingAdmissionPolicySpec,
    Validation,
)
from kubewright.api.core.v1 import ConfigMap, Pod
from kubewright.api.meta import ObjectMeta
from kubewright.api.rbac.v1 import ClusterRole, PolicyRule, Role
from kubewright.deployment import Operator

GROUP = "ferries.deployment.test"
PODS = MatchResources(
    resource_rules=[
        NamedRuleWithOperations(api_groups=[""], api_versions=["v1"], operations=["CREATE"], resources=["pods"])
    ]
)


class FerrySpec(Model):
    seats: int = 100


class FerryStatus(Model):
    is_sailing: bool = False


@resource(f"{GROUP}/v1")
class Ferry(Resource[FerrySpec, FerryStatus]):
    """Crosses a river."""


class FerryV1Beta1Spec(Model):
    places: int = 100


@resource(f"{GROUP}/v1beta1", kind="Ferry", storage=False)
class FerryV1Beta1(Resource[FerryV1Beta1Spec, FerryStatus]):
    """Crosses a river."""

    def to_hub(self) -> Ferry:
        return Ferry(spec=FerrySpec(seats=self.spec.places), status=self.status)

    @classmethod
    def from_hub(cls, hub: Ferry) -> Self:
        return cls(spec=FerryV1Beta1Spec(places=hub.spec.seats), status=hub.status)


@resource(f"{GROUP}/v1", plural="anchorages")
class Anchorage(Resource[FerrySpec, None]):
    """Where ferries are at night."""


@validates(Ferry)
def check_ferry(review: Review[Ferry]) -> None: ...


@defaults(Pod, namespace_selector="tier=ferries")
def default_pod(review: Review[Pod]) -> None: ...


def ferries(namespace: str = "harbour") -> Operator:
    """Roles are called as the namespace, so that tests have their own."""
    return Operator(
        name="ferries",
        image="ferries:1.0",
        namespace=namespace,
        kinds=[Ferry, Anchorage],
        webhooks=[check_ferry, default_pod, converts(Ferry, FerryV1Beta1)],
        roles=[
            Role(
                metadata=ObjectMeta(name=namespace, namespace=namespace),
                rules=[PolicyRule(api_groups=["coordination.k8s.io"], resources=["leases"], verbs=["create"])],
            ),
            ClusterRole(
                metadata=ObjectMeta(name=namespace),
                rules=[PolicyRule(api_groups=[GROUP], resources=["ferries"], verbs=["list", "watch"])],
            ),
        ],
        objects=[
            ValidatingAdmissionPolicyBinding(
                metadata=ObjectMeta(name=namespace),
                spec=ValidatingAdmissionPolicyBindingSpec(policy_name=namespace, validation_actions=["Audit"]),
            ),
            ValidatingAdmissionPolicy(
                metadata=ObjectMeta(name=namespace, labels={"tier": "ferries"}),
                spec=ValidatingAdmissionPolicySpec(match_constraints=PODS, validations=[Validation(expression="true")]),
            ),
            ConfigMap(metadata=ObjectMeta(name="timetable", namespace=namespace), data={"east": "08:00"}),
        ],
        samples=[
            Ferry(metadata=ObjectMeta(name="big"), spec=FerrySpec()),
            Anchorage(metadata=ObjectMeta(name="east"), spec=FerrySpec()),
        ],
    )
