"""From HTTP to a function and back, without a server."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from tests.webhook.reviews import Kettle, answer, kettle, review, send

from kubewright.manager.log import JSONFormatter
from kubewright.manager.metrics import Metrics
from kubewright.webhook import Denied, Review, validates


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
        (b"[]", "the body is not an AdmissionReview"),
        (b"{}", 'the body is of apiVersion "" and kind ""'),
        ({**review(), "apiVersion": "admission.k8s.io/v1beta1"}, 'has to have admissionReviewVersions: ["v1"]'),
        ({**review(), "request": None}, "the AdmissionReview has no request"),
        (review(uid=""), "has no uid"),
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


async def test_a_denial_is_logged_with_user_object_and_reason(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert (await answer(refuse, review(new=kettle())))["allowed"] is False
    (record,) = caplog.records
    line = json.loads(JSONFormatter().format(record))
    assert line["msg"] == "denied: no kettles today"
    assert (line["user"], line["object"], line["operation"]) == ("eve", "Kettle home/big", "CREATE")


async def test_a_function_that_is_not_done_in_the_time_of_the_request_leaves_the_decision_to_the_failure_policy() -> (
    None
):
    @validates(Kettle)
    async def slow(review: Review[Kettle]) -> None:
        await asyncio.Event().wait()

    response = await send(slow, review(new=kettle()), timeout="1ms")
    assert (response.status, response.body) == (504, b"slow was not done within 0.001 s\n")


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


def test_only_decorated_functions_are_served() -> None:
    from kubewright.webhook import serve_webhooks

    wrong: Any = lambda review: None  # noqa: E731
    with pytest.raises(TypeError, match="expected functions decorated with @defaults"):
        serve_webhooks(None, wrong)  # type: ignore[arg-type]
