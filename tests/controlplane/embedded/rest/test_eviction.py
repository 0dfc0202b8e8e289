"""Whether a disruption budget allows an eviction, whichever controller updates its status."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, items, text

Send = Callable[..., Awaitable[tuple[int, JSONObject]]]
PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."


async def a_running_pod(send: Send, *, is_ready: bool = True) -> None:
    containers: JSONValue = [{"name": "main", "image": "web:1"}]
    await send("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    await send(
        "POST",
        PODS,
        {"metadata": {"name": "a", "labels": {"app": "a"}}, "spec": {"containers": containers, "nodeName": "n"}},
    )
    conditions: JSONValue = [{"type": "Ready", "status": "True"}] if is_ready else []
    await send("PATCH", f"{PODS}/a/status", {"status": {"phase": "Running", "conditions": conditions}}, patch="merge")


async def a_budget(send: Send, status: JSONObject, **spec: JSONValue) -> None:
    selector: JSONValue = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    await send("POST", BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector, **spec}})
    await send("PATCH", f"{BUDGETS}/b/status", {"status": {"observedGeneration": 1, **status}}, patch="merge")


async def evict(send: Send, query: str = "") -> tuple[int, JSONObject]:
    return await send("POST", f"{PODS}/a/eviction{query}", {"metadata": {"name": "a"}})


async def test_an_eviction_that_is_allowed_is_counted(send: Send) -> None:
    await a_running_pod(send)
    await a_budget(send, {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1})
    await evict(send, "?dryRun=All")
    before = (await send("GET", f"{BUDGETS}/b"))[1]
    status, _ = await evict(send)
    after = (await send("GET", f"{BUDGETS}/b"))[1]

    assert (status, at(before, "status", "disruptionsAllowed"), at(before, "status", "disruptedPods")) == (201, 1, None)
    assert at(after, "status", "disruptionsAllowed") == 0
    assert at(after, "status", "disruptedPods", "a")


@pytest.mark.parametrize(
    ("budget", "why", "retry"),
    [
        (
            {"currentHealthy": 1, "desiredHealthy": 2},
            "The disruption budget b needs 2 healthy pods and has 1 currently",
            None,
        ),
        (
            {"currentHealthy": 2, "desiredHealthy": 1},
            "The disruption budget b does not allow evicting pods currently",
            None,
        ),
        (
            {
                "currentHealthy": 2,
                "desiredHealthy": 1,
                "conditions": [
                    {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "x"}
                ],
            },
            "The disruption budget b does not allow evicting pods currently because it failed sync: x",
            None,
        ),
        (
            {
                "currentHealthy": 2,
                "desiredHealthy": 1,
                "conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "Other", "message": "x"}],
            },
            "The disruption budget b does not allow evicting pods currently (Other): x",
            None,
        ),
        ({"observedGeneration": 0}, "The disruption budget b is still being processed by the server.", 10),
    ],
)
async def test_a_budget_has_a_reason_for_its_refusal(
    send: Send, budget: JSONObject, why: str, retry: int | None
) -> None:
    await a_running_pod(send)
    await a_budget(send, {"disruptionsAllowed": 0, **budget})
    status, refused = await evict(send)

    assert (status, text(refused, "reason"), text(refused, "message")) == (429, "TooManyRequests", REFUSED)
    assert items(refused, "details", "causes") == [{"reason": "DisruptionBudget", "message": why}]
    assert at(refused, "details", "retryAfterSeconds") == retry
    assert at((await send("GET", f"{PODS}/a"))[1], "metadata", "deletionTimestamp") is None


@pytest.mark.parametrize(
    ("policy", "healthy", "status"),
    [(None, 1, 201), (None, 0, 429), ("AlwaysAllow", 0, 201), ("IfHealthyBudget", 0, 429)],
)
async def test_a_pod_that_is_not_ready_counts_for_nothing(
    send: Send, policy: str | None, healthy: int, status: int
) -> None:
    await a_running_pod(send, is_ready=False)
    budget: JSONObject = {"disruptionsAllowed": 0, "currentHealthy": healthy, "desiredHealthy": 1}
    await a_budget(send, budget, unhealthyPodEvictionPolicy=policy)

    assert (await evict(send))[0] == status
