"""Who manages the replicas of an object that is scaled through the endpoint `scale`."""

from __future__ import annotations

from tests.conformance.asking import Ask

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text

DEPLOYMENTS = "/apis/apps/v1/namespaces/NAMESPACE/deployments"
MERGE = "application/merge-patch+json"


async def managers(ask: Ask) -> list[tuple[str, str]]:
    found = (await ask("GET", f"{DEPLOYMENTS}/a")).body
    return [
        (text(entry, "manager"), text(entry, "subresource"))
        for entry in items(found, "metadata", "managedFields")
        if "f:replicas" in mapping(entry, "fieldsV1", "f:spec")
    ]


async def test_replicas_of_zero_have_no_manager(ask: Ask) -> None:
    """In Go's Scale nought is left out, and who manages nothing is forgotten, even when there is something again."""
    labels: JSONObject = {"app": "a"}
    template: JSONValue = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}}
    spec: JSONObject = {"replicas": 1, "paused": True, "selector": {"matchLabels": labels}, "template": template}
    await ask("POST", f"{DEPLOYMENTS}?fieldManager=creator", {"metadata": {"name": "a"}, "spec": spec})

    async def scale(manager: str, replicas: int) -> list[tuple[str, str]]:
        body: JSONObject = {"spec": {"replicas": replicas}}
        answer = await ask("PATCH", f"{DEPLOYMENTS}/a/scale?fieldManager={manager}", body, MERGE)
        assert answer.code == 200, answer.body
        return await managers(ask)

    assert await managers(ask) == [("creator", "")]
    assert await scale("one", 2) == [("one", "scale")]
    assert await scale("two", 2) == [("one", "scale")]
    assert await scale("two", 0) == []
    assert await scale("three", 3) == []
