"""From HTTP to a function and back, without a server."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from tests.webhook.reviews import Kettle, answer, kettle, review, send

from kubewright.api.admissionregistration.v1 import RuleWithOperations
from kubewright.api.core.v1 import Secret
from kubewright.client import Client, Config
from kubewright.manager import Manager
from kubewright.manager.log import JSONFormatter
from kubewright.manager.metrics import Metrics
from kubewright.webhook import (
    AdmissionResponse,
    Denied,
    FieldCause,
    Review,
    ReviewRequest,
    handles,
    serve_webhooks,
    validates,
)


@validates(Kettle)
def admit(review: Review[Kettle]) -> None: ...


@validates(Kettle)
def refuse(review: Review[Kettle]) -> None:
    raise Denied("no kettles today")


@validates(Kettle)
def broken(review: Review[Kettle]) -> None:
    raise LookupError("the shop is closed")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is empty"),
        (b"{", "the body is not JSON"),
        (b"[]", "the body is not an object of kind AdmissionReview"),
        (b"{}", 'the body is of apiVersion "" and kind ""'),
        ({**review(), "apiVersion": "admission.k8s.io/v1beta1"}, 'has to have admissionReviewVersions: ["v1"]'),
        ({**review(), "request": None}, "the AdmissionReview has no request"),
        (review(uid=""), "has no uid"),
        (b'{"request": ' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}", "nested too deeply"),
        (b'{"request": 1, no', "the body is not JSON"),
        (review(operation="PAINT"), "does not fit admission.k8s.io/v1"),
    ],
)
async def test_a_body_that_is_not_a_review_is_a_bad_request(body: object, message: str) -> None:
    response = await send(admit, body)
    assert response.status == 400
    assert message in response.body.decode()


async def test_another_content_type_or_duration_is_a_bad_request() -> None:
    assert b'the content type is "text/plain"' in (await send(admit, review(), content_type="text/plain")).body
    assert b'expected a duration such as "10s"' in (await send(admit, review(), timeout="soon")).body


async def test_a_function_that_raises_denies_and_is_logged_with_the_frames_of_the_user(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = Metrics()
    found = json.loads((await send(broken, review(new=kettle()), metrics=metrics)).body)["response"]
    assert found["allowed"] is False
    assert found["status"]["code"] == 500
    assert found["status"]["message"] == "broken failed: LookupError: the shop is closed"
    (record,) = caplog.records
    line = json.loads(JSONFormatter().format(record))
    assert (line["msg"], line["object"]) == (f"the webhook {broken.path} failed", "Kettle home/big")
    assert "in broken" in line["stacktrace"]
    assert "webhook/endpoint.py" not in line["stacktrace"]
    assert "controller_runtime_webhook_panics_total 1" in metrics.render().decode()


@pytest.mark.parametrize(
    ("metadata", "shown"),
    [
        ({"generateName": "big-"}, "Kettle home/big-*"),
        ({"generateName": "big-", "name": "big-x7"}, "Kettle home/big-x7"),
    ],
)
async def test_a_denial_names_an_object_that_the_server_names(
    metadata: dict[str, str], shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        await answer(refuse, review(new={**kettle(), "metadata": metadata}, name=""))
    (record,) = caplog.records
    assert json.loads(JSONFormatter().format(record))["object"] == shown


async def test_an_answer_that_cannot_be_written_is_named() -> None:
    everything = RuleWithOperations(api_groups=["*"], api_versions=["*"], operations=["*"], resources=["*"])

    @handles("/paint", rules=[everything], mutating=True)
    def paint(request: ReviewRequest) -> AdmissionResponse:
        step: Any = {"op": "add", "path": "/spec/colour", "value": object()}
        return AdmissionResponse(patch=[step])

    found = await answer(paint, review(new=kettle()))
    assert (found["allowed"], found["status"]["code"]) == (False, 500)
    assert found["status"]["message"] == "paint failed: its answer cannot be written: object has no JSON form"

    @validates(Kettle)
    def refuse(review: Review[Kettle]) -> None:
        raise Denied("not in \ud800")

    found = await answer(refuse, review(new=kettle()))
    assert (found["allowed"], found["status"]["code"]) == (False, 500)
    assert "refuse failed: its answer cannot be written: " in found["status"]["message"]


async def test_what_a_client_sent_is_neither_logged_nor_repeated_at_any_length(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @validates(Kettle)
    def check(review: Review[Kettle]) -> None:
        """Nothing."""

    response = await send(check, {"apiVersion": "x" * 100_000, "kind": "AdmissionReview"})
    assert response.status == 400
    assert len(response.body) < 2000
    assert len(caplog.records[0].getMessage()) < 2000


async def test_a_denial_is_logged_with_user_object_and_reason(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert (await answer(refuse, review(new=kettle())))["allowed"] is False
    (record,) = caplog.records
    line = json.loads(JSONFormatter().format(record))
    assert line["msg"] == "denied: no kettles today"
    assert (line["user"], line["object"], line["operation"]) == ("eve", "Kettle home/big", "CREATE")


def secret_review(**data: str) -> dict[str, Any]:
    found = review(new={"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": data})
    found["request"]["kind"] = {"group": "", "version": "v1", "kind": "Secret"}
    return found


async def test_what_is_in_a_secret_is_neither_logged_nor_shown(caplog: pytest.LogCaptureFixture) -> None:
    @validates(Secret)
    def check_key(review: Review[Secret]) -> list[FieldCause]:
        text = review.object.string_data["key"]
        if len(text) > 10:
            int(text)
        return [FieldCause.invalid("stringData[key]", text, "must have a digit"), FieldCause.duplicate("data", text)]

    caplog.set_level(logging.DEBUG)
    status = (await answer(check_key, secret_review(key="hunter")))["status"]
    assert status["message"] == (
        'Secret "big" is invalid: [stringData[key]: Invalid value: must have a digit, data: Duplicate value]'
    )
    assert [cause["message"] for cause in status["details"]["causes"]] == [
        "Invalid value: must have a digit",
        "Duplicate value",
    ]
    status = (await answer(check_key, secret_review(key="hunter-of-tigers")))["status"]
    assert status["message"] == "check_key failed: RedactedError: the message of a ValueError in a review of a Secret"
    denied, failed, _ = lines = [JSONFormatter().format(record) for record in caplog.records]
    assert "denied: Secret" in denied
    assert "in check_key" in json.loads(failed)["stacktrace"]
    assert "hunter" not in "".join(lines)


async def test_a_function_that_awaits_what_is_cancelled_denies() -> None:
    @validates(Kettle)
    async def waiting(review: Review[Kettle]) -> None:
        other = asyncio.get_running_loop().create_future()
        other.cancel()
        await other

    found = await answer(waiting, review(new=kettle()))
    assert found["status"]["message"] == "waiting failed: CancelledError"


async def test_a_denial_by_a_task_of_a_function_is_one_of_the_function() -> None:
    async def check() -> None:
        raise Denied("no kettles today")

    @validates(Kettle)
    async def checking(review: Review[Kettle]) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(check())

    found = await answer(checking, review(new=kettle()))
    assert (found["status"]["code"], found["status"]["message"]) == (403, "no kettles today")


async def test_a_function_that_is_not_done_in_the_time_of_the_request_leaves_the_decision_to_the_failure_policy() -> (
    None
):
    @validates(Kettle)
    async def slow(review: Review[Kettle]) -> None:
        await asyncio.Event().wait()

    response = await send(slow, review(new=kettle()), timeout="1ms")
    assert (response.status, response.body) == (504, b"slow was not done within 0.001 s\n")


async def test_a_hundred_reviews_are_answered_at_once_each_with_its_own_uid() -> None:
    arrived, all_arrived = 0, asyncio.Event()

    @validates(Kettle)
    async def wait_for_all(review: Review[Kettle]) -> None:
        nonlocal arrived
        arrived += 1
        if arrived == 100:
            all_arrived.set()
        await all_arrived.wait()
        raise Denied(f"no {review.request.uid}")

    responses = await asyncio.gather(*[send(wait_for_all, review(new=kettle(), uid=f"{n}")) for n in range(100)])
    answers = [json.loads(response.body)["response"] for response in responses]
    assert [(each["uid"], each["status"]["message"]) for each in answers] == [(f"{n}", f"no {n}") for n in range(100)]


async def test_requests_are_counted_under_the_names_of_controller_runtime() -> None:
    metrics = Metrics()
    await send(admit, review(new=kettle()), metrics=metrics)
    await send(admit, b"", metrics=metrics)
    text = metrics.render().decode()
    label = f'webhook="{admit.path}"'
    assert f'controller_runtime_webhook_requests_total{{{label},code="200"}} 1\n' in text
    assert f'controller_runtime_webhook_requests_total{{{label},code="400"}} 1\n' in text
    assert f'controller_runtime_webhook_requests_total{{{label},code="500"}} 0\n' in text
    assert f"controller_runtime_webhook_requests_in_flight{{{label}}} 0\n" in text
    assert f"controller_runtime_webhook_latency_seconds_count{{{label}}} 2\n" in text
    assert "controller_runtime_webhook_panics_total 0\n" in text


def test_two_functions_for_one_path_are_named() -> None:
    manager = Manager(Client(Config(server="https://127.0.0.1:1")))
    with pytest.raises(ValueError, match=f"admit and refuse are both for {admit.path}: make one function of them"):
        serve_webhooks(manager, admit, refuse)


def test_only_decorated_functions_are_served() -> None:
    wrong: Any = lambda review: None  # noqa: E731
    with pytest.raises(TypeError, match="expected functions decorated with @defaults"):
        serve_webhooks(None, wrong)  # type: ignore[arg-type]
