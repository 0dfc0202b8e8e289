"""ConversionReviews, without a server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.webhook.boats import GROUP, Boat, BoatV1Beta1, boat
from tests.webhook.reviews import post

from kubewright.manager.log import JSONFormatter
from kubewright.manager.metrics import Metrics
from kubewright.webhook import converts
from kubewright.webhook.conversion_endpoint import ConversionEndpoint


def endpoint(metrics: Metrics | None = None) -> ConversionEndpoint:
    made = ConversionEndpoint(metrics or Metrics())
    made.add(converts(Boat, BoatV1Beta1))
    return made


def review(objects: list[Any], version: str = "v1beta1", **more: object) -> dict[str, Any]:
    request = {"uid": "705ab4f5", "desiredAPIVersion": f"{GROUP}/{version}", "objects": objects, **more}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


async def answer(body: object, to: ConversionEndpoint | None = None) -> dict[str, Any]:
    response = await post(to or endpoint(), body)
    assert (response.status, response.content_type) == (200, "application/json"), response.body
    content = json.loads(response.body)
    assert (content["apiVersion"], content["kind"]) == ("apiextensions.k8s.io/v1", "ConversionReview")
    found: dict[str, Any] = content["response"]
    assert found["uid"] == "705ab4f5"
    return found


async def test_order_and_number_of_the_objects_are_kept() -> None:
    objects = [boat("v1beta1" if index % 3 else "v1", {"owner": str(index)}, name=str(index)) for index in range(40)]
    found = await answer(review(objects))
    assert found["result"] == {"status": "Success"}
    assert [each["metadata"]["name"] for each in found["convertedObjects"]] == [str(index) for index in range(40)]
    assert {each["apiVersion"] for each in found["convertedObjects"]} == {f"{GROUP}/v1beta1"}
    assert found["convertedObjects"][1] == objects[1], "which is of that version, and stays as it is"
    assert (await answer(review([])))["convertedObjects"] == []


async def test_one_object_that_cannot_be_converted_fails_the_review_and_is_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(hub: Boat) -> BoatV1Beta1:
        raise LookupError("no such boat")

    monkeypatch.setattr(BoatV1Beta1, "from_hub", classmethod(lambda cls, hub: broken(hub)))
    metrics = Metrics()
    found = await answer(review([boat("v1beta1", {"owner": "ann"}), boat("v1", {"owner": "ann"})]), endpoint(metrics))
    message = "Boat sea/ship: BoatV1Beta1.from_hub failed: LookupError: no such boat"
    assert found["result"] == {"status": "Failure", "message": message}
    assert found["convertedObjects"] == []
    (record,) = caplog.records
    line = json.loads(JSONFormatter().format(record))
    assert line["msg"] == f"an object could not be converted: {message}"
    assert "in broken" in line["stacktrace"]
    assert "webhook/conversion" not in line["stacktrace"]
    assert "controller_runtime_conversion_webhook_panics_total 1" in metrics.render().decode()


@pytest.mark.parametrize(
    ("objects", "version", "message"),
    [
        (
            [{**boat("v1", {}), "kind": "Ship"}],
            "v1",
            'Ship sea/ship: objects of "boats.webhook.test" cannot be converted',
        ),
        ([{"apiVersion": "v1"}], "v1", 'objects of "" cannot be converted here, only Boat of boats.webhook.test'),
        ([boat("v1", {})], "v7", "Boat has no version boats.webhook.test/v7 here"),
        ([[]], "v1", "there is no object where one is expected"),
        ([boat("v1", {"owner": 3})], "v1beta1", 'Boat sea/ship cannot be read: Boat "sea/ship": not a valid Boat: '),
    ],
)
async def test_what_cannot_be_converted_is_answered_with_the_reason(
    objects: list[Any], version: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Metrics()
    found = await answer(review(objects, version), endpoint(metrics))
    assert found["result"]["status"] == "Failure"
    assert message in found["result"]["message"]
    (record,) = caplog.records
    assert record.exc_info is None
    assert "controller_runtime_conversion_webhook_panics_total 0" in metrics.render().decode()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is empty: expected ConversionReview"),
        (b"{", "the body is not JSON"),
        (b"[]", "the body is not an object of kind ConversionReview"),
        ({**review([]), "apiVersion": "apiextensions.k8s.io/v1beta1"}, 'has to have conversionReviewVersions: ["v1"]'),
        ({**review([]), "request": None}, "the ConversionReview has no request"),
        (review([], uid=""), "has no uid"),
        (review([{}], uid=3), "does not fit apiextensions.k8s.io/v1"),
    ],
)
async def test_a_body_that_is_not_a_review_is_a_bad_request(body: object, message: str) -> None:
    metrics = Metrics()
    response = await post(endpoint(metrics), body)
    assert response.status == 400
    assert message in response.body.decode()
    assert 'requests_total{webhook="/convert",code="400"} 1\n' in metrics.render().decode()


async def test_what_is_not_done_in_the_time_of_the_request_is_answered_504() -> None:
    objects = [boat("v1", {"owner": "ann"})] * 20
    response = await post(endpoint(), review(objects), timeout="1ns")
    assert (response.status, response.body) == (504, b"20 objects were not converted within 1e-09 s\n")


def test_a_kind_has_one_hub() -> None:
    with pytest.raises(ValueError, match=r"Boat of boats.webhook.test has the hub Boat already"):
        endpoint().add(converts(Boat, BoatV1Beta1))
