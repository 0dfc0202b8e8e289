"""Requests of an API server, without one."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

from kubewright import Model, Resource, resource
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.manager.metrics import Metrics
from kubewright.manager.serving import EndpointRequest, EndpointResponse
from kubewright.webhook import AdmissionWebhook
from kubewright.webhook.endpoint import ReviewEndpoint, WebhookEndpoint


class KettleSpec(Model):
    litres: int = 1
    colour: str | None = None


@resource("kitchen.webhook.test/v1")
class Kettle(Resource[KettleSpec, None]):
    """Boils water."""


def kettle(**spec: JSONValue) -> JSONObject:
    return {
        "apiVersion": "kitchen.webhook.test/v1",
        "kind": "Kettle",
        "metadata": {"name": "big", "namespace": "home"},
        "spec": spec,
    }


def review(operation: str = "CREATE", new: object = None, old: object = None, **more: object) -> dict[str, Any]:
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "kitchen.webhook.test", "version": "v1", "kind": "Kettle"},
        "resource": {"group": "kitchen.webhook.test", "version": "v1", "resource": "kettles"},
        "name": "big",
        "namespace": "home",
        "operation": operation,
        "userInfo": {"username": "eve", "groups": ["cooks"]},
        "object": new,
        "oldObject": old,
        "dryRun": False,
        "options": None,
        **more,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


async def send(
    webhook: AdmissionWebhook[object],
    body: object,
    *,
    metrics: Metrics | None = None,
    content_type: str = "application/json",
    timeout: str = "",
) -> EndpointResponse:
    endpoint = ReviewEndpoint(webhook, metrics or Metrics())
    return await post(endpoint, body, content_type=content_type, timeout=timeout)


async def post(
    endpoint: WebhookEndpoint, body: object, *, content_type: str = "application/json", timeout: str = ""
) -> EndpointResponse:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    parameters = {"timeout": [timeout]} if timeout else {}
    response = endpoint(EndpointRequest(endpoint.path, parameters, {"content-type": content_type}, "POST", raw))
    return response if isinstance(response, EndpointResponse) else await response


async def answer(webhook: AdmissionWebhook[object], body: object) -> dict[str, Any]:
    """The response in the AdmissionReview that comes back, with its patch decoded."""
    response = await send(webhook, body)
    assert (response.status, response.content_type) == (200, "application/json"), response.body
    content = json.loads(response.body)
    assert (content["apiVersion"], content["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    found: dict[str, Any] = content["response"]
    assert found["uid"] == "705ab4f5-6393-11e8-b7cc-42010a800002"
    if "patch" in found:
        assert found.pop("patchType") == "JSONPatch"
        found["patch"] = json.loads(b64decode(found["patch"]))
    return found
