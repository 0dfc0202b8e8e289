from __future__ import annotations

from collections.abc import Callable

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.builtins.jobs import JOB

Create = Callable[[JSONObject], JSONObject]
Update = Callable[[JSONObject, JSONObject], JSONObject]


def job(**spec: bool | int) -> JSONObject:
    template: JSONObject = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "a"},
        "spec": {"template": template, **spec},
    }


def test_the_pods_of_a_job_are_selected_by_its_uid(create: Create) -> None:
    stored = create(job())

    uid = mapping(stored, "metadata")["uid"]
    assert mapping(stored, "spec")["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert mapping(stored, "spec", "template", "metadata", "labels")["job-name"] == "a"


def test_labels_of_a_job_and_of_its_pods_are_two_things(create: Create) -> None:
    stored = create(job())

    assert mapping(stored, "metadata")["labels"] is not mapping(stored, "spec", "template", "metadata")["labels"]


def test_the_template_of_a_job_that_runs_is_fixed(create: Create, update: Update) -> None:
    stored = create(job())
    changed = copied_object(stored)
    inside(changed, "spec", "template", "spec")["nodeSelector"] = {"a": "b"}

    with pytest.raises(StatusError, match=r"spec\.template: Invalid value: .*: field is immutable"):
        update(stored, changed)


def test_a_job_that_was_never_started_may_be_sent_elsewhere(create: Create, update: Update) -> None:
    stored = create(job(suspend=True))
    changed = copied_object(stored)
    inside(changed, "spec", "template", "spec")["nodeSelector"] = {"a": "b"}

    assert mapping(update(stored, changed), "metadata")["generation"] == 2


def test_an_indexed_job_may_grow_with_its_parallelism(create: Create, update: Update) -> None:
    document = job(completions=2, parallelism=2)
    inside(document, "spec")["completionMode"] = "Indexed"
    stored = create(document)
    changed = copied_object(stored)
    inside(changed, "spec").update(completions=3, parallelism=3)

    assert mapping(update(stored, changed), "spec")["completions"] == 3
    inside(changed, "spec")["parallelism"] = 2
    with pytest.raises(StatusError, match=r"3: can only be modified in tandem with spec\.parallelism"):
        update(stored, changed)


def test_a_suspended_job_may_need_other_resources_but_no_other_image(create: Create, update: Update) -> None:
    stored = create(job(suspend=True))
    changed = copied_object(stored)
    container = mapping(items(changed, "spec", "template", "spec", "containers")[0])
    container["resources"] = {"requests": {"cpu": "2"}}

    assert update(stored, changed)
    container["image"] = "c"
    with pytest.raises(StatusError, match=r"spec\.template\.spec: Invalid value: .*: field is immutable"):
        update(stored, changed)


def test_what_is_wrong_with_a_changed_job_is_reported_as_of_a_new_one_and_again(create: Create, update: Update) -> None:
    stored = create(job())
    changed = copied_object(stored)
    inside(changed, "spec")["parallelism"] = -1

    with pytest.raises(StatusError) as refused:
        update(stored, changed)

    causes = [text(cause, "field") for cause in items(refused.value.details, "causes")]
    assert causes == ["spec.parallelism", "spec.parallelism"]


@pytest.mark.parametrize(
    ("status", "before", "expected"),
    [
        ({"active": -1}, {}, ["status.active: Invalid value: -1: must be greater than or equal to 0"]),
        ({"failed": 1}, {"failed": 2}, ["status.failed: Invalid value: 1: cannot decrease the failed counter"]),
        ({}, {"succeeded": 1}, ["status.succeeded: Invalid value: 0: cannot decrease the succeeded counter"]),
        (
            {},
            {"startTime": "2026-01-01T00:00:00Z"},
            ["status.startTime: Invalid value: null: field is immutable for unsuspended job once set"],
        ),
        (
            {"conditions": [{"type": "Suspended", "status": "False"}]},
            {
                "startTime": "2026-01-01T00:00:00Z",
                "conditions": [{"type": "Suspended", "status": "True"}],
            },
            [],
        ),
    ],
)
def test_counters_of_a_job_only_grow_and_its_start_stays(
    status: JSONObject, before: JSONObject, expected: list[str]
) -> None:
    errors = JOB.validate_status({"spec": {}, "status": status}, {"spec": {}, "status": before})

    assert [str(error) for error in errors] == expected


def test_a_job_that_loses_its_labels_with_its_status_shows_those_of_its_pods(create: Create) -> None:
    stored = create(job())
    changed = copied_object(stored)
    inside(changed, "metadata").pop("labels")

    JOB.prepare_status(changed, stored)

    assert mapping(changed, "metadata")["labels"] == mapping(stored, "spec", "template", "metadata")["labels"]
