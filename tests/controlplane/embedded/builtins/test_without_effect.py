from __future__ import annotations

import pytest

from kubewright.api.codec import from_json
from kubewright.api.core.v1 import Secret
from kubewright.api.markers import JSONObject
from kubewright.api.networking.v1 import ServiceCIDR
from kubewright.client import Client, MergePatch
from kubewright.client.config import Config
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.builtins.registry import built_in_resources
from kubewright.controlplane.embedded.builtins.without_effect import WITHOUT_EFFECT, effect_warnings, warning_of

# Something comes of them here: they are answered, checked, allocated, run or simulated.
ACTED_ON = {
    "admissionregistration.k8s.io/v1 MutatingAdmissionPolicy",
    "admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding",
    "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration",
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy",
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding",
    "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
    "apiextensions.k8s.io/v1 CustomResourceDefinition",
    "apps/v1 DaemonSet",
    "apps/v1 Deployment",
    "apps/v1 ReplicaSet",
    "apps/v1 StatefulSet",
    "authentication.k8s.io/v1 SelfSubjectReview",
    "authentication.k8s.io/v1 TokenReview",
    "authorization.k8s.io/v1 LocalSubjectAccessReview",
    "authorization.k8s.io/v1 SelfSubjectAccessReview",
    "authorization.k8s.io/v1 SelfSubjectRulesReview",
    "authorization.k8s.io/v1 SubjectAccessReview",
    "batch/v1 CronJob",
    "batch/v1 Job",
    "certificates.k8s.io/v1 CertificateSigningRequest",
    "networking.k8s.io/v1 IngressClass",
    "node.k8s.io/v1 RuntimeClass",
    "policy/v1 PodDisruptionBudget",
    "rbac.authorization.k8s.io/v1 ClusterRole",
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding",
    "rbac.authorization.k8s.io/v1 Role",
    "rbac.authorization.k8s.io/v1 RoleBinding",
    "scheduling.k8s.io/v1 PriorityClass",
    "storage.k8s.io/v1 StorageClass",
    "v1 Binding",
    "v1 LimitRange",
    "v1 Namespace",
    "v1 Node",
    "v1 PersistentVolume",
    "v1 PersistentVolumeClaim",
    "v1 Pod",
    "v1 ReplicationController",
    "v1 ResourceQuota",
    "v1 Secret",
    "v1 Service",
    "v1 ServiceAccount",
}
# On these no control plane acts: they are for others to read, or to act on.
FOR_OTHERS = {
    "apps/v1 ControllerRevision",
    "coordination.k8s.io/v1 Lease",
    "discovery.k8s.io/v1 EndpointSlice",
    "events.k8s.io/v1 Event",
    "networking.k8s.io/v1 IPAddress",
    "networking.k8s.io/v1 Ingress",
    "networking.k8s.io/v1 NetworkPolicy",
    "storage.k8s.io/v1 CSIDriver",
    "storage.k8s.io/v1 CSINode",
    "storage.k8s.io/v1 CSIStorageCapacity",
    "storage.k8s.io/v1 VolumeAttachment",
    "storage.k8s.io/v1 VolumeAttributesClass",
    "v1 ComponentStatus",
    "v1 ConfigMap",
    "v1 Endpoints",
    "v1 Event",
    "v1 PodTemplate",
}


def test_every_kind_has_an_effect_or_needs_none_or_is_warned_about() -> None:
    served = {f"{resource.gvk.api_version} {resource.gvk.kind}" for resource in built_in_resources()}

    assert served == ACTED_ON | FOR_OTHERS | WITHOUT_EFFECT.keys()
    assert not (ACTED_ON | FOR_OTHERS) & WITHOUT_EFFECT.keys()


@pytest.mark.parametrize(
    ("name", "inert", "effective"),
    [
        (
            "apiregistration.k8s.io/v1 APIService",
            {"spec": {"service": {"name": "a", "namespace": "b"}}},
            {"spec": {"group": "apps"}},
        ),
    ],
)
def test_a_kind_of_which_only_a_part_has_no_effect_is_warned_about_for_that_part(
    name: str, inert: JSONObject, effective: JSONObject
) -> None:
    assert effect_warnings(name, inert) == [warning_of(name)]
    assert effect_warnings(name, effective) == []


async def test_a_client_is_warned_of_fields_without_effect() -> None:
    creator: list[str] = []
    changer: list[str] = []
    async with ControlPlane.embedded(controllers=[], nodes=0) as plane:
        config = Config.from_kubeconfig_text(plane.kubeconfig())
        async with Client(config, on_warning=creator.append) as client:
            await client.create(from_json(Secret, {"metadata": {"name": "a"}}))
            assert creator == []
            await client.create(from_json(ServiceCIDR, {"metadata": {"name": "a"}, "spec": {"cidrs": ["10.9.0.0/16"]}}))
        async with Client(config, on_warning=changer.append) as client:
            found = await client.get(ServiceCIDR, "a")
            assert changer == []
            await client.patch(found, MergePatch({"metadata": {"labels": {"a": "b"}}}))

    expected = (
        "kubewright: the embedded control plane stores this ServiceCIDR but does not act on it: "
        "no service gets an address of it"
    )
    assert creator == changer == [expected]
