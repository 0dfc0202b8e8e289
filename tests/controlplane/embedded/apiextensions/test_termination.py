from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apiextensions.names import set_definition_condition
from kubewright.controlplane.embedded.apiextensions.termination import (
    CLEANUP,
    begin_termination,
    completed,
    in_progress,
    is_terminating,
)
from kubewright.controlplane.embedded.apimachinery.document import at, items

NOW, LATER = "2020-01-01T00:00:00Z", "2020-01-01T00:00:05Z"


def marked(*, established: bool = True) -> JSONObject:
    definition: JSONObject = {"metadata": {"name": "things.example.com"}, "status": {}}
    if established:
        set_definition_condition(definition, "Established", "True", "InitialNamesAccepted", "", NOW)
    begin_termination(definition, NOW)
    return definition


def terminating(definition: JSONObject) -> list[object]:
    return [
        at(condition, name)
        for condition in items(definition, "status", "conditions")
        if at(condition, "type") == "Terminating"
        for name in ("status", "reason", "lastTransitionTime")
    ]


def test_a_definition_that_is_being_deleted_is_kept_with_a_condition() -> None:
    definition = marked()

    assert is_terminating(definition)
    assert at(definition, "metadata", "deletionTimestamp") == NOW
    assert items(definition, "metadata", "finalizers") == [CLEANUP]
    assert terminating(definition) == ["True", "InstanceDeletionPending", NOW]


def test_progress_is_reported_once_and_changes_nothing_in_place() -> None:
    definition = marked()
    started = in_progress(definition, LATER)

    assert terminating(definition) == ["True", "InstanceDeletionPending", NOW]
    assert terminating(started) == ["True", "InstanceDeletionInProgress", NOW]
    assert in_progress(started, LATER) == started


def test_a_definition_without_objects_is_removed() -> None:
    done, never = completed(marked(), LATER), completed(marked(established=False), LATER)

    assert items(done, "metadata", "finalizers") == []
    assert terminating(done) == ["False", "InstanceDeletionCompleted", LATER]
    assert terminating(never) == ["False", "NeverEstablished", LATER]


def test_other_finalizers_stay() -> None:
    definition = marked()
    items(definition, "metadata", "finalizers").insert(0, "example.com/hold")

    assert items(completed(definition, LATER), "metadata", "finalizers") == ["example.com/hold"]
