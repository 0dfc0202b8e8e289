from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import copied_object
from kubewright.controlplane.embedded.builtins.events import CORE_EVENT, NEWER_EVENT, from_core, to_core
from kubewright.controlplane.embedded.builtins.typecheck import normalizer

CORE: JSONObject = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "a", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "web", "uid": "1"},
    "reason": "Tested",
    "message": "it was",
    "source": {"component": "tester"},
    "firstTimestamp": "2024-05-06T07:08:09Z",
    "lastTimestamp": None,
    "count": 2,
    "type": "Normal",
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}


def test_the_newer_view_has_other_names_for_the_same() -> None:
    newer = from_core(CORE)

    assert newer["apiVersion"] == "events.k8s.io/v1"
    assert newer["regarding"] == {"kind": "Pod", "name": "web", "uid": "1"}
    assert (newer["note"], newer["deprecatedCount"]) == ("it was", 2)
    assert "reportingController" not in newer


def test_both_views_convert_into_each_other_without_loss() -> None:
    assert to_core(from_core(CORE)) == CORE


def test_a_converted_event_is_what_go_would_have_written() -> None:
    newer = from_core(CORE)
    again = copied_object(newer)

    normalizer("events/v1#Event")(again)

    assert again == newer


def test_events_that_are_stored_without_kind_stay_without() -> None:
    stored = {name: value for name, value in CORE.items() if name not in ("apiVersion", "kind")}

    assert "apiVersion" not in from_core(stored)
    assert to_core(from_core(stored)) == stored


def test_an_event_is_selected_by_its_source_or_else_its_reporter() -> None:
    reported: JSONObject = {"reportingComponent": "example.com/x"}

    assert CORE_EVENT.selectable_fields(CORE)["source"] == "tester"
    assert CORE_EVENT.selectable_fields(reported)["source"] == "example.com/x"
    assert CORE_EVENT.selectable_fields(CORE)["involvedObject.uid"] == "1"


def test_each_view_is_selected_by_its_own_names() -> None:
    assert NEWER_EVENT.selectable_fields(from_core(CORE))["regarding.name"] == "web"
    assert "involvedObject.name" in CORE_EVENT.selectable
    assert "involvedObject.name" not in NEWER_EVENT.selectable
