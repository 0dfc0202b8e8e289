"""What admission notes in the audit log, and when policies are compiled. The rest is compared with a real server."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from kubewright.api.admissionregistration.v1 import ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import ConfigMap, Namespace, Pod
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, MergePatch
from kubewright.client.errors import APIError
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.admission import chain
from kubewright.controlplane.embedded.admission.validating_policies import ValidatingPolicy
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane

RULE: JSONObject = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}


async def bound(client: Client, name: str, actions: JSONValue, **spec: JSONValue) -> None:
    """A policy for new configmaps, and its binding."""
    content: JSONObject = {"matchConstraints": {"resourceRules": [RULE]}, **spec}
    await client.create(from_json(ValidatingAdmissionPolicy, {"metadata": {"name": name}, "spec": content}))
    binding: JSONObject = {"policyName": name, "validationActions": actions}
    await client.create(from_json(ValidatingAdmissionPolicyBinding, {"metadata": {"name": name}, "spec": binding}))


def noted(plane: EmbeddedControlPlane, name: str) -> Mapping[str, str]:
    """What was noted about the last request for an object of this name, or without one."""
    return next(event for event in reversed(plane.audit.events) if event.name == name).annotations


async def test_failures_and_annotations_of_policies_are_in_the_audit_log() -> None:
    async with ControlPlane.embedded(controllers=[], nodes=0) as plane, plane.client() as client:
        await bound(client, "a.example.com", ["Audit"], validations=[{"expression": "true"}, {"expression": "1 > 2"}])
        await bound(
            client,
            "b.example.com",
            ["Deny"],
            auditAnnotations=[
                {"key": "name", "valueExpression": "' was ' + object.metadata.name"},
                {"key": "none", "valueExpression": "null"},
                {"key": "empty", "valueExpression": "''"},
            ],
        )
        await client.create(ConfigMap(metadata=ObjectMeta(name="a")))

        found = dict(noted(plane, ""))
        failure = msgspec.json.decode(found.pop("validation.policy.admission.k8s.io/validation_failure"))
        assert failure == [
            {
                "message": "failed expression: 1 > 2",
                "policy": "a.example.com",
                "binding": "a.example.com",
                "expressionIndex": 1,
                "validationActions": ["Audit"],
            }
        ]
        assert found == {"b.example.com/name": "was a"}


async def test_pod_security_notes_the_standard_and_what_would_violate_it() -> None:
    labels = {"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/audit": "restricted"}
    async with ControlPlane.embedded(controllers=[], nodes=0) as plane, plane.client() as client:
        await client.create(Namespace(metadata=ObjectMeta(name="a", labels=labels)))
        container: JSONObject = {"name": "main", "image": "busybox", "securityContext": {"privileged": True}}
        # Run by a kubelet from a file: it needs no service account.
        mirror: JSONObject = {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}
        pod = from_json(Pod, {"metadata": mirror, "spec": {"containers": [container]}})
        with pytest.raises(APIError):
            await client.in_namespace("a").create(pod)

        found = noted(plane, "")
        prefix = "pod-security.kubernetes.io/"
        assert found[f"{prefix}enforce-policy"] == "baseline:latest"
        assert found[f"{prefix}audit-violations"].startswith('would violate PodSecurity "restricted:latest": ')


async def test_a_policy_is_compiled_once_per_change_of_its_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[JSONObject] = []

    class Counted(ValidatingPolicy):
        def __init__(self, spec: JSONObject) -> None:
            compiled.append(spec)
            super().__init__(spec)

    monkeypatch.setattr(chain, "ValidatingPolicy", Counted)
    async with ControlPlane.embedded(controllers=[], nodes=0) as plane, plane.client() as client:
        await bound(client, "a", ["Deny"], validations=[{"expression": "object.metadata.name != 'no'"}])
        for number in range(3):
            await client.create(ConfigMap(metadata=ObjectMeta(name=f"a-{number}")))
        assert len(compiled) == 1
        policy = await client.get(ValidatingAdmissionPolicy, "a")
        await client.patch(policy, MergePatch({"metadata": {"labels": {"a": "b"}}}))
        await client.create(ConfigMap(metadata=ObjectMeta(name="b")))
        assert len(compiled) == 1
        await client.patch(policy, MergePatch({"spec": {"validations": [{"expression": "false"}]}}))
        with pytest.raises(APIError):
            await client.create(ConfigMap(metadata=ObjectMeta(name="c")))
        assert len(compiled) == 2
        await client.delete(policy)
        await client.create(ConfigMap(metadata=ObjectMeta(name="c")))
