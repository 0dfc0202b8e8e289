"""Functions of a kind, asked as an API server asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.webhook.reviews import Kettle, KettleSpec, answer, kettle, review

from kubewright.api.admissionregistration.v1 import RuleWithOperations
from kubewright.api.core.v1 import Pod
from kubewright.webhook import (
    AdmissionResponse,
    Denied,
    FieldCause,
    Review,
    ReviewRequest,
    defaults,
    handles,
    validates,
)


@defaults(Kettle)
def steel(review: Review[Kettle]) -> None:
    if review.object.spec.colour is None:
        review.object.spec.colour = "steel"


@validates(Kettle, on=["CREATE", "UPDATE", "DELETE"])
async def check(review: Review[Kettle]) -> list[FieldCause]:
    if review.operation == "DELETE":
        raise Denied(f"{review.user.username} may not delete {review.object.metadata.name}")
    errors = []
    if review.object.spec.litres < 1:
        errors.append(FieldCause.invalid("spec.litres", review.object.spec.litres, "must be at least 1"))
    if review.old is not None and review.old.spec.colour != review.object.spec.colour:
        errors.append(FieldCause.forbidden("spec.colour", "may not be changed"))
    if review.object.spec.litres > 5:
        review.warn("this takes long to boil")
    return errors


async def test_the_patch_has_what_the_function_changed_and_leaves_unknown_fields_alone() -> None:
    sent = kettle(litres=2, lid={"unknown": True})
    assert await answer(steel, review(new=sent)) == {
        "uid": review()["request"]["uid"],
        "allowed": True,
        "patch": [{"op": "add", "path": "/spec/colour", "value": "steel"}],
    }


async def test_a_function_that_changes_nothing_sends_no_patch_although_the_type_has_defaults() -> None:
    assert "patch" not in await answer(steel, review(new=kettle(colour="red")))


async def test_wrong_fields_become_causes_as_the_servers_own_do() -> None:
    found = await answer(check, review("UPDATE", kettle(litres=0, colour="red"), kettle(litres=1)))
    assert found["allowed"] is False
    text = "spec.litres: Invalid value: 0: must be at least 1, spec.colour: Forbidden: may not be changed"
    assert found["status"] == {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": f'Kettle.kitchen.webhook.test "big" is invalid: [{text}]',
        "details": {
            "name": "big",
            "group": "kitchen.webhook.test",
            "kind": "Kettle",
            "causes": [
                {
                    "reason": "FieldValueInvalid",
                    "message": "Invalid value: 0: must be at least 1",
                    "field": "spec.litres",
                },
                {"reason": "FieldValueForbidden", "message": "Forbidden: may not be changed", "field": "spec.colour"},
            ],
        },
    }


async def test_what_is_admitted_may_be_warned_about() -> None:
    found = await answer(check, review(new=kettle(litres=6)))
    assert (found["allowed"], found["warnings"]) == (True, ["this takes long to boil"])


async def test_a_deletion_shows_the_object_that_goes() -> None:
    found = await answer(check, review("DELETE", old=kettle()))
    assert found["allowed"] is False
    assert found["status"] == {
        "status": "Failure",
        "code": 403,
        "reason": "Forbidden",
        "message": "eve may not delete big",
    }


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            review(new=kettle(), kind={"group": "", "version": "v1", "kind": "Pod"}),
            "this webhook takes kitchen.webhook.test/v1 Kettle, not v1 Pod",
        ),
        (review(new=kettle(litres="many")), "the object cannot be read: "),
        (review(), "the request to CREATE has no object"),
    ],
)
async def test_an_object_that_is_not_of_the_kind_is_denied(body: dict[str, Any], message: str) -> None:
    found = await answer(check, body)
    assert (found["allowed"], found["status"]["code"]) == (False, 400)
    assert found["status"]["message"].startswith(message)


async def test_a_plain_handler_answers_for_any_kind_and_subresource() -> None:
    rule = RuleWithOperations(api_groups=["*"], api_versions=["*"], operations=["*"], resources=["*/scale"])

    @handles("/label-everything", rules=[rule], mutating=True)
    async def label(request: ReviewRequest) -> AdmissionResponse:
        assert (request.sub_resource, request.resource.resource) == ("scale", "kettles")
        changed = kettle()
        changed["metadata"] = {"name": "big", "namespace": "home", "labels": {"a": "b"}}
        return AdmissionResponse.patched(request, changed, warnings=["labelled"])

    found = await answer(label, review("UPDATE", kettle(), kettle(), subResource="scale"))
    assert found["patch"] == [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]
    assert found["warnings"] == ["labelled"]


def test_a_function_is_tested_by_calling_it() -> None:
    review = Review(Kettle(spec=KettleSpec()))
    steel.function(review)
    assert review.object.spec.colour == "steel"
    assert (review.operation, review.is_dry_run) == ("CREATE", False)


def test_paths_are_those_of_controller_runtime() -> None:
    assert steel.path == "/mutate-kitchen-webhook-test-v1-kettle"
    assert check.path == "/validate-kitchen-webhook-test-v1-kettle"
    assert validates(Pod)(lambda review: None).path == "/validate--v1-pod"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: defaults(Kettle, on=["DELETE"])(lambda review: None), "only CREATE and UPDATE have an object"),
        (lambda: defaults(Kettle, path="kettles")(lambda review: None), 'begins with "/"'),
        (lambda: defaults(Kettle, timeout=31)(lambda review: None), "expected 1 to 30 seconds"),
        (lambda: Denied("no", code=200), "expected a code of HTTP for a failure"),
    ],
)
def test_what_an_api_server_would_refuse_is_refused_at_once(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wrong()
