from __future__ import annotations

from collections.abc import Callable

import pytest

from kubewright.controlplane.embedded.document import JSONObject, copied_object, inside, mapping
from kubewright.controlplane.embedded.status import StatusError

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
    with pytest.raises(StatusError, match=r"spec\.completions: Invalid value: 3: field is immutable"):
        update(stored, changed)
