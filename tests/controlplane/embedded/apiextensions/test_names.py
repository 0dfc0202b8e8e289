from __future__ import annotations

from collections.abc import Callable

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apiextensions.names import accepted, condition_holds
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, items, mapping

Define = Callable[..., JSONObject]
NOW, LATER = "2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"


def test_free_names_are_accepted_and_the_definition_is_established(define: Define) -> None:
    definition = define()

    found = accepted(definition, [definition], NOW)

    assert found["status"] == {
        "conditions": [
            {
                "type": "NamesAccepted",
                "status": "True",
                "lastTransitionTime": NOW,
                "reason": "NoConflicts",
                "message": "no conflicts found",
            },
            {
                "type": "Established",
                "status": "True",
                "lastTransitionTime": NOW,
                "reason": "InitialNamesAccepted",
                "message": "the initial names have been accepted",
            },
        ],
        "acceptedNames": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "storedVersions": ["v1"],
    }
    assert not condition_holds(definition, "Established")
    assert accepted(found, [found], LATER) is found


@pytest.mark.parametrize(
    ("names", "reason", "message"),
    [
        ({"singular": "widget"}, "SingularConflict", '"widget" is already in use'),
        ({"kind": "Widget"}, "KindConflict", '"Widget" is already in use'),
        ({"listKind": "WidgetList"}, "ListKindConflict", '"WidgetList" is already in use'),
        ({"shortNames": ["w", "g"]}, "ShortNamesConflict", '"w" is already in use'),
        (
            {"shortNames": ["w", "widgets"]},
            "ShortNamesConflict",
            '["w" is already in use, "widgets" is already in use]',
        ),
    ],
)
def test_a_name_that_is_taken_in_the_group_keeps_a_definition_out(
    define: Define, names: JSONObject, reason: str, message: str
) -> None:
    first = define()
    inside(first, "spec", "names")["shortNames"] = ["w"]
    first = accepted(first, [], NOW)
    second = define(plural="gadgets")
    inside(second, "spec", "names").update(names)

    found = accepted(second, [first, second], NOW)

    conditions = [mapping(condition) for condition in items(found, "status", "conditions")]
    assert [(one["type"], one["status"], one["reason"], one["message"]) for one in conditions] == [
        ("NamesAccepted", "False", reason, message),
        ("Established", "False", "NotAccepted", "not all names are accepted"),
    ]
    assert mapping(found, "status", "acceptedNames")["plural"] == "gadgets"
    assert accepted(found, [first, found], LATER) is found


def test_names_are_free_in_another_group_and_once_the_other_definition_is_gone(define: Define) -> None:
    first = accepted(define(), [], NOW)
    second = define(plural="gadgets")
    inside(second, "spec", "names")["kind"] = "Widget"
    elsewhere = copied_object(second)
    inside(elsewhere, "spec")["group"] = "example.org"

    refused = accepted(second, [first, second], NOW)

    assert condition_holds(accepted(elsewhere, [first], NOW), "Established")
    assert not condition_holds(refused, "Established")
    assert condition_holds(accepted(refused, [refused], LATER), "Established")


def test_an_established_definition_stays_so_when_it_requests_a_name_that_is_taken(define: Define) -> None:
    first = accepted(define(), [], NOW)
    second = copied_object(accepted(define(plural="gadgets"), [first], NOW))
    inside(second, "spec", "names")["shortNames"] = ["widgets"]

    found = accepted(second, [first, second], LATER)

    assert condition_holds(found, "Established")
    assert not condition_holds(found, "NamesAccepted")
    assert "shortNames" not in mapping(found, "status", "acceptedNames")


def test_a_definition_with_an_unreadable_bundle_is_not_established(define: Define) -> None:
    definition = define()
    inside(definition, "spec", "conversion").update(
        strategy="Webhook", webhook={"clientConfig": {"url": "https://x", "caBundle": "eA=="}}
    )

    found = accepted(definition, [], NOW)

    established = mapping(items(found, "status", "conditions")[1])
    assert (established["status"], established["reason"]) == ("False", "InvalidCABundle")
    assert accepted(found, [], LATER) is found
