"""Built-in kinds on servers that run: what is defaulted, what is refused, and with which message.

The expected answers were recorded from kube-apiserver (see tools/record_answers); the unit tests of the rules use them,
too. On the real server these tests check that the records still hold.
"""

from __future__ import annotations

from collections import defaultdict

import pytest
from tests.conformance.asking import Ask
from tools.record_answers import Question, answers, questions
from tools.record_answers.asking import Asker

from kubewright.api.autoscaling import v1 as autoscaling_v1
from kubewright.api.autoscaling import v2 as autoscaling_v2
from kubewright.api.codec import from_json
from kubewright.api.core import v1 as core_v1
from kubewright.api.events import v1 as events_v1
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.quantity import Quantity
from kubewright.client import Client
from kubewright.client.errors import Invalid
from kubewright.client.patch import MergePatch

ANSWERS = answers()


def by_kind() -> dict[str, list[Question]]:
    found: defaultdict[str, list[Question]] = defaultdict(list)
    for question in questions():
        found[f"{question.document['apiVersion']} {question.document['kind']}"].append(question)
    return found


KINDS = by_kind()


@pytest.mark.parametrize("kind", list(KINDS))
async def test_every_answer_about_a_kind_is_kube_apiservers(kind: str, client: Client) -> None:
    """One test per kind, because a control plane may be started for each test."""
    asker = Asker(client._operations.session, client.namespace)

    given = {question.title: await asker.ask(question) for question in KINDS[kind]}

    assert given == {title: ANSWERS[title] for title in given}


async def test_an_event_of_the_old_kind_is_seen_as_one_of_the_new(client: Client) -> None:
    event: JSONValue = {
        "metadata": {"name": "seen-twice", "namespace": client.namespace},
        "involvedObject": {"kind": "Pod", "name": "web", "namespace": client.namespace},
        "reason": "Tested",
        "message": "it was",
        "source": {"component": "tester"},
        "firstTimestamp": "2024-05-06T07:08:09Z",
        "count": 2,
        "type": "Normal",
    }
    await client.create(from_json(core_v1.Event, event))

    seen = await client.get(events_v1.Event, "seen-twice")

    assert (seen.note, seen.reason, seen.type, seen.deprecated_count) == ("it was", "Tested", "Normal", 2)
    assert seen.regarding is not None
    assert seen.regarding.name == "web"
    assert seen.deprecated_source is not None
    assert seen.deprecated_source.component == "tester"


async def test_an_event_of_the_new_kind_is_seen_as_one_of_the_old(client: Client) -> None:
    event: JSONValue = {
        "metadata": {"name": "seen-twice", "namespace": client.namespace},
        "eventTime": "2024-05-06T07:08:09.000001Z",
        "regarding": {"kind": "Pod", "name": "web", "namespace": client.namespace},
        "reportingController": "example.com/tester",
        "reportingInstance": "tester-0",
        "action": "Testing",
        "reason": "Tested",
        "note": "it was",
        "type": "Normal",
    }
    await client.create(from_json(events_v1.Event, event))

    seen = await client.get(core_v1.Event, "seen-twice")

    assert (seen.message, seen.reason, seen.reporting_component) == ("it was", "Tested", "example.com/tester")
    assert seen.involved_object.name == "web"


async def test_events_of_both_kinds_are_selected_by_what_they_are_about(client: Client) -> None:
    for name in ("web", "db"):
        about: JSONValue = {"kind": "Pod", "name": name, "namespace": client.namespace}
        event: JSONValue = {
            "metadata": {"name": name, "namespace": client.namespace},
            "involvedObject": about,
            "reason": "Tested",
        }
        await client.create(from_json(core_v1.Event, event))

    old = await client.list(core_v1.Event, fields={"involvedObject.name": "web"})
    new = await client.list(events_v1.Event, fields={"regarding.name": "web"})

    assert [event.metadata.name for event in old] == [event.metadata.name for event in new] == ["web"]


async def test_an_autoscaler_is_seen_in_both_versions(client: Client) -> None:
    target: JSONValue = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    memory: JSONValue = {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 70}}
    cpu: JSONValue = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
    spec: JSONValue = {
        "maxReplicas": 3,
        "scaleTargetRef": target,
        "metrics": [{"type": "Resource", "resource": memory}, {"type": "Resource", "resource": cpu}],
    }
    await client.create(from_json(autoscaling_v2.HorizontalPodAutoscaler, {"metadata": {"name": "a"}, "spec": spec}))

    seen = await client.get(autoscaling_v1.HorizontalPodAutoscaler, "a")

    assert seen.spec.target_cpu_utilization_percentage == 60
    assert seen.metadata.annotations == {
        "autoscaling.alpha.kubernetes.io/metrics": (
            '[{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":70}}]'
        )
    }


async def test_an_autoscaler_of_the_first_version_has_a_metric_in_the_second(client: Client) -> None:
    spec: JSONValue = {
        "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    }
    await client.create(from_json(autoscaling_v1.HorizontalPodAutoscaler, {"metadata": {"name": "a"}, "spec": spec}))

    seen = await client.get(autoscaling_v2.HorizontalPodAutoscaler, "a")

    assert [metric.type for metric in seen.spec.metrics] == ["Resource"]
    assert seen.spec.metrics[0].resource is not None
    assert seen.spec.metrics[0].resource.target.average_utilization == 80


async def test_an_immutable_config_map_stays_as_it_is(client: Client) -> None:
    config_map = from_json(core_v1.ConfigMap, {"metadata": {"name": "a"}, "data": {"a": "b"}, "immutable": True})
    stored = await client.create(config_map)
    stored.data = {"a": "c"}
    stored.immutable = None

    with pytest.raises(Invalid, match="field is immutable when `immutable` is set") as refused:
        await client.update(stored)

    assert "[immutable: Forbidden:" in str(refused.value)
    assert "data: Forbidden:" in str(refused.value)


async def test_a_bound_claim_does_not_shrink(client: Client) -> None:
    spec: JSONValue = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "2Gi"}},
        "storageClassName": "none",
    }
    claim = await client.create(from_json(core_v1.PersistentVolumeClaim, {"metadata": {"name": "a"}, "spec": spec}))
    claim.status.phase = "Bound"
    claim.status.capacity = {"storage": Quantity("2Gi")}
    bound = await client.status.update(claim)

    with pytest.raises(Invalid, match=r"spec.resources.requests.storage: Forbidden: field can not be less than"):
        await client.patch(bound, MergePatch({"spec": {"resources": {"requests": {"storage": "1Gi"}}}}), dry_run=True)


@pytest.mark.parametrize(
    ("path", "warning"),
    [
        ("/api/v1/endpoints", "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        ("/api/v1/componentstatuses", "v1 ComponentStatus is deprecated in v1.19+"),
    ],
)
async def test_kinds_that_are_deprecated_warn(ask: Ask, path: str, warning: str) -> None:
    assert (await ask("GET", path)).warnings == [f'299 - "{warning}"']


async def test_candidates_for_a_lease_are_not_distinguished(ask: Ask) -> None:
    """A feature that is off: what belongs to it is dropped."""
    leases = "/apis/coordination.k8s.io/v1/namespaces/NAMESPACE/leases"
    spec: JSONObject = {"holderIdentity": "a", "strategy": "OldestEmulationVersion", "preferredHolder": "b"}
    created = await ask("POST", leases, {"metadata": {"name": "a"}, "spec": spec})

    assert created.body["spec"] == {"holderIdentity": "a"}
