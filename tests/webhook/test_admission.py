"""Functions of a kind, asked as an API server asks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.webhook.reviews import Kettle, KettleSpec, answer, kettle, review

from kubewright import Resource
from kubewright.api.admissionregistration.v1 import RuleWithOperations
from kubewright.api.core.v1 import Pod
from kubewright.client.errors import NotFound, Status
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


async def test_unknown_content_may_be_nested_as_deeply_as_the_decoder_goes() -> None:
    sent = json.dumps(review(new=kettle(lid="here"))).replace('"here"', '{"in": ' * 700 + "1" + "}" * 700)
    found = await answer(steel, sent.encode())
    assert found["patch"] == [{"op": "add", "path": "/spec/colour", "value": "steel"}]


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


def test_one_function_may_be_for_several_kinds() -> None:
    def check_name(review: Review[Kettle] | Review[Pod]) -> list[FieldCause]:
        return [FieldCause.required("metadata.name")] if not review.object.metadata.name else []

    paths = {each.path for each in (validates(Kettle)(check_name), validates(Pod)(check_name))}
    assert paths == {"/validate-kitchen-webhook-test-v1-kettle", "/validate--v1-pod"}


async def test_warnings_of_a_function_that_denies_are_shown() -> None:
    @defaults(Kettle)
    def never(review: Review[Kettle]) -> None:
        review.warn("kettles are going")
        raise Denied("no more kettles", code=410, reason="Gone")

    found = await answer(never, review(new=kettle()))
    assert (found["allowed"], found["warnings"]) == (False, ["kettles are going"])
    assert (found["status"]["code"], found["status"]["reason"]) == (410, "Gone")


async def test_an_object_without_a_name_may_get_one() -> None:
    @defaults(Kettle)
    def name(review: Review[Kettle]) -> None:
        review.object.metadata.name = "given"

    sent = kettle()
    sent["metadata"] = {"generateName": "some-", "namespace": "home"}
    found = await answer(name, review(new=sent, name=""))
    assert found["patch"] == [{"op": "add", "path": "/metadata/name", "value": "given"}]


def rename(review: Review[Kettle]) -> None:
    review.object.metadata.name = "small"


def move(review: Review[Kettle]) -> None:
    review.object.metadata.namespace = "office"


def replace(review: Review[Kettle]) -> None:
    review.object = Kettle(spec=KettleSpec())  # type: ignore[misc]


def remove_spec(review: Review[Kettle]) -> None:
    del review.object.spec


def confuse(review: Review[Kettle]) -> None:
    review.object.spec.colour = object()  # type: ignore[assignment]


def give(review: Review[Kettle]) -> Any:
    return review.object


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (rename, "it changed metadata.name from 'big' to 'small': the request is about Kettle home/big"),
        (move, "it changed metadata.namespace from 'home' to 'office': the request is about Kettle home/big"),
        (replace, "it replaced review.object: change its fields, so that unknown ones are kept"),
        (remove_spec, "it left a review.object that cannot be written: "),
        (confuse, "it left a review.object that cannot be written: object has no JSON form"),
        (give, "it returned a Kettle: a function of @defaults changes review.object and returns None"),
    ],
)
async def test_a_function_of_defaults_that_does_what_cannot_be_answered_is_named_with_the_mistake(
    function: Callable[[Review[Kettle]], None], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = await answer(defaults(Kettle)(function), review(new=kettle()))
    assert (found["allowed"], found["status"]["code"]) == (False, 500)
    assert found["status"]["message"].startswith(f"{function.__name__} failed: {message}")
    (record,) = caplog.records
    assert record.exc_info is None
    assert found["status"]["message"] in record.getMessage()


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (
            "too small",
            "it returned a str: expected a list of FieldCause, or None; for a message, raise Denied(message)",
        ),
        (False, "it returned a bool: expected "),
        (AdmissionResponse.denied("no"), "it returned an AdmissionResponse: expected a list of FieldCause"),
        (FieldCause.required("spec.litres"), "it returned a FieldCause: expected a list of FieldCause"),
        (["too small"], "it returned a list with other things than FieldCause: expected "),
    ],
)
async def test_a_function_of_validates_that_returns_something_else_is_named_with_the_mistake(
    returned: Any, message: str
) -> None:
    @validates(Kettle)
    def check_size(review: Review[Kettle]) -> Any:
        return returned

    found = await answer(check_size, review(new=kettle()))
    assert (found["allowed"], found["status"]["code"]) == (False, 500)
    assert found["status"]["message"].startswith(f"check_size failed: {message}")


async def test_a_field_cause_is_returned_and_not_raised() -> None:
    @validates(Kettle)
    def raising(review: Review[Kettle]) -> None:
        raise FieldCause.required("spec.litres")  # type: ignore[misc]

    message = (await answer(raising, review(new=kettle())))["status"]["message"]
    assert message.startswith("raising failed: TypeError: exceptions must derive from BaseException: ")
    assert message.endswith("and so is a list of FieldCause")


async def test_an_error_of_a_client_is_not_the_answer_to_the_request() -> None:
    """Taken for the server's own answer, NotFound would have the client believe that its object is gone."""

    @validates(Kettle)
    def look_up(review: Review[Kettle]) -> None:
        raise NotFound(Status(message='plugs "wall" not found', reason="NotFound", code=404))

    status = (await answer(look_up, review(new=kettle())))["status"]
    assert (status["code"], status["reason"]) == (500, "InternalError")
    assert status["message"] == 'look_up failed: NotFound: plugs "wall" not found'


async def test_a_function_of_validates_that_changes_the_object_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @validates(Kettle, on=["UPDATE", "DELETE"])
    def paint(review: Review[Kettle]) -> None:
        if review.operation == "UPDATE":
            review.object.spec.colour = "blue"

    await answer(paint, review("DELETE", old=kettle(lid=1, litres=2)))
    await answer(check, review(new=kettle(lid=1, litres=2)))
    assert not caplog.records
    for _ in range(2):
        assert (await answer(paint, review("UPDATE", kettle(), kettle())))["allowed"] is True
    (record,) = caplog.records
    assert record.getMessage() == (
        "paint changes review.object, which has no effect: that is for a function of @defaults(Kettle)"
    )


def rule(**fields: list[str]) -> RuleWithOperations:
    everything = {"api_groups": ["*"], "api_versions": ["*"], "operations": ["*"], "resources": ["*"]}
    return RuleWithOperations(**(everything | fields))  # type: ignore[arg-type]


class NoKind(Resource[KettleSpec, None]):
    """Was not given one."""


class Checks:
    async def check(self, review: Review[Kettle]) -> None: ...


# As they are for those who check no types.
untyped_defaults: Any = defaults
untyped_validates: Any = validates
untyped_handles: Any = handles

WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "deletions have no object to change": (
        lambda: untyped_defaults(Kettle, on=["DELETE"]),
        "expected a list of CREATE, UPDATE",
    ),
    "one operation, not a list": (
        lambda: untyped_validates(Kettle, on="CREATE"),
        "on='CREATE', expected a list of CREATE",
    ),
    "no operation": (lambda: untyped_validates(Kettle, on=[]), "expected a list of CREATE, UPDATE, DELETE"),
    "a scale is no Kettle": (lambda: untyped_validates(Kettle, subresource="scale"), "of another kind: use @handles"),
    "all subresources": (lambda: untyped_validates(Kettle, subresource="*"), 'expected one such as "status"'),
    "a code for success": (lambda: Denied("no", code=200), "expected a code of HTTP for a failure"),
    "no kind": (
        lambda: untyped_validates(steel.function),
        r"@validates\(steel\): expected a kind, as in @validates\(PodManager\)",
    ),
    "a class that is no kind": (
        lambda: untyped_validates(NoKind),
        "NoKind is not a kind yet: decorate it with @resource",
    ),
    "a method of a class": (
        lambda: untyped_validates(Kettle)(Checks.check),
        r"cannot be called with the review alone; .*: validates\(Kettle\)\(self.check\)",
    ),
    "two arguments": (
        lambda: untyped_validates(Kettle)(lambda new, old: None),
        r"<lambda>\(new, old\) cannot be called with the review alone$",
    ),
    "a webhook": (
        lambda: untyped_validates(Kettle)(check),
        r"check is the webhook /validate-\S+ already; .*check.function\)",
    ),
    "no function": (lambda: untyped_defaults(Kettle)(None), "expected a function, not None"),
    "no rules": (lambda: untyped_handles("/a", rules=[]), "without rules it is never called"),
    "a rule, not a list": (lambda: untyped_handles("/a", rules=rule()), "rules are a list of RuleWithOperations"),
    "a rule without groups": (lambda: untyped_handles("/a", rules=[rule(api_groups=[])]), "a rule has no api_groups"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_decoration_is_refused_with_the_fix(case: str) -> None:
    wrong, message = WRONG[case]
    with pytest.raises((TypeError, ValueError), match=message):
        wrong()


async def test_a_method_of_an_object_can_be_decorated() -> None:
    assert (await answer(validates(Kettle)(Checks().check), review(new=kettle())))["allowed"] is True
