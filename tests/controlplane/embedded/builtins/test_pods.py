from __future__ import annotations

from collections.abc import Callable

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.builtins.pods import POD, quality_of_service

SMALL: JSONObject = {"cpu": "100m", "memory": "1Mi"}
BASE: JSONObject = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "a", "image": "b"}]},
}


def with_spec(**fields: JSONValue) -> JSONObject:
    pod = copied_object(BASE)
    inside(pod, "spec").update(fields)
    return pod


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([{}], "BestEffort"),
        ([{"requests": {"cpu": "0"}}], "BestEffort"),
        ([{"requests": SMALL, "limits": SMALL}], "Guaranteed"),
        ([{"requests": SMALL, "limits": SMALL}, {}], "Burstable"),
        ([{"requests": {"cpu": "50m", "memory": "1Mi"}, "limits": SMALL}], "Burstable"),
        ([{"requests": {"cpu": "100m"}}], "Burstable"),
        ([{"limits": {"example.com/gpu": "1"}, "requests": {"example.com/gpu": "1"}}], "BestEffort"),
    ],
)
def test_the_quality_of_service_follows_from_requests_and_limits(resources: list[JSONValue], expected: str) -> None:
    containers: list[JSONValue] = [{"name": "a", "resources": each} for each in resources]

    assert quality_of_service({"containers": containers}) == expected


def test_a_pod_tolerates_lost_nodes_for_five_minutes(create: Callable[[JSONObject], JSONObject]) -> None:
    assert items(create(BASE), "spec", "tolerations") == [
        {
            "key": f"node.kubernetes.io/{condition}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
        for condition in ("not-ready", "unreachable")
    ]


def test_a_pod_that_tolerates_everything_gets_no_more_tolerations(create: Callable[[JSONObject], JSONObject]) -> None:
    pod = create(with_spec(tolerations=[{"operator": "Exists"}]))

    assert items(pod, "spec", "tolerations") == [{"operator": "Exists"}]


def test_a_pod_with_a_priority_class_is_left_to_admission(create: Callable[[JSONObject], JSONObject]) -> None:
    pod = create(with_spec(priorityClassName="high"))

    assert "priority" not in mapping(pod, "spec")
    assert "preemptionPolicy" not in mapping(pod, "spec")


@pytest.mark.parametrize(
    ("pod", "requested", "expected"),
    [
        ({"spec": {"terminationGracePeriodSeconds": 30}}, 5, 0),
        ({"spec": {"terminationGracePeriodSeconds": 30, "nodeName": "n"}}, None, 30),
        ({"spec": {"terminationGracePeriodSeconds": 30, "nodeName": "n"}}, 5, 5),
        ({"spec": {"terminationGracePeriodSeconds": 30, "nodeName": "n"}}, -1, 1),
        ({"spec": {"terminationGracePeriodSeconds": 30, "nodeName": "n"}, "status": {"phase": "Failed"}}, 5, 0),
    ],
)
def test_only_a_pod_that_runs_has_time_to_end(pod: JSONObject, requested: int | None, expected: int) -> None:
    assert POD.graceful_deletion is not None
    assert POD.graceful_deletion(pod, requested) == expected


def test_a_deadline_may_only_come_nearer(
    create: Callable[[JSONObject], JSONObject], update: Callable[[JSONObject, JSONObject], JSONObject]
) -> None:
    stored = create(with_spec(activeDeadlineSeconds=10))
    sooner, later, never = copied_object(stored), copied_object(stored), copied_object(stored)
    inside(sooner, "spec")["activeDeadlineSeconds"] = 5
    inside(later, "spec")["activeDeadlineSeconds"] = 11
    inside(never, "spec").pop("activeDeadlineSeconds")

    assert mapping(update(stored, sooner), "spec")["activeDeadlineSeconds"] == 5
    with pytest.raises(StatusError, match="must be less than or equal to previous value"):
        update(stored, later)
    with pytest.raises(StatusError, match="must not update from a positive integer to nil value"):
        update(stored, never)


def test_the_node_selector_of_a_gated_pod_may_change(
    create: Callable[[JSONObject], JSONObject], update: Callable[[JSONObject, JSONObject], JSONObject]
) -> None:
    stored = create(with_spec(schedulingGates=[{"name": "example.com/wait"}]))
    moved = copied_object(stored)
    inside(moved, "spec")["nodeSelector"] = {"a": "b"}

    assert mapping(update(stored, moved), "metadata")["generation"] == 2


def test_a_refused_change_is_shown_as_a_difference(
    create: Callable[[JSONObject], JSONObject], update: Callable[[JSONObject, JSONObject], JSONObject]
) -> None:
    stored = create(BASE)
    changed = copied_object(stored)
    inside(changed, "spec")["hostname"] = "other"

    with pytest.raises(StatusError) as refused:
        update(stored, changed)

    assert '+ "hostname": "other",' in refused.value.message.splitlines()


def test_a_status_keeps_the_quality_of_service_and_the_owners(create: Callable[[JSONObject], JSONObject]) -> None:
    stored = create(BASE)
    report = copied_object(stored)
    report["status"] = {"phase": "Running"}
    inside(report, "metadata")["ownerReferences"] = [{"name": "x"}]

    POD.prepare_status(report, stored)

    assert report["status"] == {"phase": "Running", "qosClass": "BestEffort"}
    assert "ownerReferences" not in mapping(report, "metadata")


@pytest.mark.parametrize(
    ("policy", "code", "refused"), [("Never", 1, True), ("OnFailure", 1, False), ("Always", 0, False)]
)
def test_a_container_that_ended_for_good_does_not_run_again(policy: str, code: int, refused: bool) -> None:
    def pod(state: JSONObject) -> JSONObject:
        return {
            "spec": {"restartPolicy": policy},
            "status": {"containerStatuses": [{"name": "a", "state": state}], "qosClass": "BestEffort"},
        }

    errors = POD.validate_status(pod({"running": {}}), pod({"terminated": {"exitCode": code}}))

    assert [str(error) for error in errors] == (
        ["status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"]
        if refused
        else []
    )


def test_pods_are_selected_by_what_their_fields_say() -> None:
    fields = POD.selectable_fields(
        {"spec": {"nodeName": "n", "hostNetwork": True}, "status": {"podIPs": [{"ip": "1.2.3.4"}]}}
    )

    assert fields["spec.nodeName"] == "n"
    assert fields["spec.hostNetwork"] == "true"
    assert fields["status.podIP"] == "1.2.3.4"
    assert set(fields) <= POD.selectable


def test_the_image_of_a_changed_pod_is_validated_twice(
    create: Callable[[JSONObject], JSONObject], update: Callable[[JSONObject, JSONObject], JSONObject]
) -> None:
    stored = create(BASE)
    changed = copied_object(stored)
    mapping(items(changed, "spec", "containers")[0])["image"] = ""

    with pytest.raises(StatusError) as refused:
        update(stored, changed)

    causes = [text(cause, "field") for cause in items(refused.value.details, "causes")]
    assert causes == ["spec.containers[0].image", "spec.containers[0].image"]
