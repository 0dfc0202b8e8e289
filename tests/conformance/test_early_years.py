"""Times before the year 1000 keep the zeros of their years."""

from __future__ import annotations

from tests.conformance.asking import Ask

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import text

EVENTS = "/api/v1/namespaces/NAMESPACE/events"


async def test_years_have_four_digits(ask: Ask) -> None:
    event: JSONObject = {
        "metadata": {"name": "old", "namespace": "NAMESPACE"},
        "involvedObject": {"namespace": "NAMESPACE"},
        "firstTimestamp": "0005-01-02T03:04:05+01:00",
        "eventTime": "0017-01-02T03:04:05.000001Z",
        "reportingComponent": "example.com/a",
        "reportingInstance": "b",
        "action": "c",
        "reason": "d",
        "type": "Normal",
    }
    answer = await ask("POST", EVENTS, event)
    assert answer.code == 201, answer.body
    assert text(answer.body, "firstTimestamp") == "0005-01-02T02:04:05Z"
    assert text(answer.body, "eventTime") == "0017-01-02T03:04:05.000001Z"


async def test_those_of_field_managers_do_too(ask: Ask) -> None:
    entry: JSONObject = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "0005-01-02T03:04:05Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {}},
    }
    made: JSONObject = {"metadata": {"name": "a", "managedFields": [entry]}, "data": {}}
    answer = await ask("POST", "/api/v1/namespaces/NAMESPACE/configmaps", made)
    assert answer.code == 201, answer.body
