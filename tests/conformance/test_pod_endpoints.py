"""What is done to pods through endpoints of their own: binding, eviction, debug containers, resources, grace."""

from __future__ import annotations

import pytest
from tests.conformance.asking import Answer, Ask

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text

PODS = "/api/v1/namespaces/NAMESPACE/pods"
BUDGETS = "/apis/policy/v1/namespaces/NAMESPACE/poddisruptionbudgets"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
SUCCESS: JSONObject = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def create_pod(ask: Ask, name: str, *, node: str = "", **resources: JSONValue) -> JSONObject:
    container: JSONObject = {"name": "main", "image": "web:1", "resources": resources}
    spec: JSONObject = {"containers": [container], "nodeName": node}
    answer = await ask("POST", PODS, {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec})
    assert answer.code == 201, answer.body
    return answer.body


def conditions(pod: JSONObject) -> list[tuple[str, str, str, str]]:
    return [
        (text(one, "type"), text(one, "status"), text(one, "reason"), text(one, "message"))
        for one in items(pod, "status", "conditions")
    ]


# Binding


async def test_a_binding_assigns_a_pod_once(ask: Ask) -> None:
    await create_pod(ask, "a")
    binding: JSONObject = {
        "metadata": {"name": "a", "annotations": {"note": "x"}, "labels": {"zone": "y"}},
        "target": {"kind": "Node", "name": "first"},
    }
    dry = await ask("POST", f"{PODS}/a/binding?dryRun=All", binding)
    bound = await ask("POST", f"{PODS}/a/binding", binding)
    again = await ask("POST", f"{PODS}/a/binding", binding)
    pod = (await ask("GET", f"{PODS}/a")).body

    assert dry.body == bound.body == SUCCESS
    assert again.refusal == (
        409,
        "Conflict",
        'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "first"',
    )
    assert (at(pod, "spec", "nodeName"), at(pod, "metadata", "generation")) == ("first", 1)
    assert at(pod, "metadata", "annotations") == {"note": "x"}
    assert at(pod, "metadata", "labels") == {"app": "a", "zone": "y"}
    assert conditions(pod) == [("PodScheduled", "True", "", "")]


async def test_a_binding_of_the_older_kind_does_the_same(ask: Ask) -> None:
    await create_pod(ask, "a")
    bound = await ask(
        "POST",
        "/api/v1/namespaces/NAMESPACE/bindings",
        {"metadata": {"name": "a"}, "target": {"name": "first"}},
    )

    assert bound.body == SUCCESS
    assert at((await ask("GET", f"{PODS}/a")).body, "spec", "nodeName") == "first"


@pytest.mark.parametrize(
    ("binding", "code", "message"),
    [
        ({"target": {"name": "n"}}, 400, "name in URL does not match name in Binding object"),
        ({"metadata": {"name": "a"}, "target": {"name": ""}}, 500, "target.name: Required value"),
        (
            {"metadata": {"name": "a"}, "target": {"kind": "Pod"}},
            500,
            '[target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>", target.name: Required value]',
        ),
    ],
)
async def test_a_binding_makes_sense(ask: Ask, binding: JSONObject, code: int, message: str) -> None:
    await create_pod(ask, "a")
    refused = await ask("POST", f"{PODS}/a/binding", binding)

    assert (refused.code, text(refused.body, "message")) == (code, message)


async def test_a_binding_is_for_the_pod_it_was_made_for(ask: Ask, namespace: str) -> None:
    pod = await create_pod(ask, "a")
    refused = await ask(
        "POST", f"{PODS}/a/binding", {"metadata": {"name": "a", "uid": "other"}, "target": {"name": "n"}}
    )

    assert refused.refusal == (
        409,
        "Conflict",
        'Operation cannot be fulfilled on pods "a": StorageError: invalid object, Code: 4, '
        f"Key: /registry/pods/{namespace}/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
        f"UID in precondition: other, UID in object meta: {at(pod, 'metadata', 'uid')}",
    )


# Eviction


async def evict(ask: Ask, pod: str, **more: JSONValue) -> Answer:
    body: JSONObject = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}, **more}
    return await ask("POST", f"{PODS}/{pod}/eviction", body)


async def test_an_evicted_pod_gets_the_reason(ask: Ask) -> None:
    await create_pod(ask, "a", node="n")
    other = await ask("POST", f"{PODS}/a/eviction", {"metadata": {"name": "b"}})
    evicted = await evict(ask, "a")
    pod = (await ask("GET", f"{PODS}/a")).body
    again = await evict(ask, "a")

    assert other.refusal == (400, "BadRequest", "name in URL does not match name in Eviction object")
    assert evicted.body == again.body == SUCCESS
    assert at(pod, "metadata", "deletionGracePeriodSeconds") == 30
    assert conditions(pod) == [("DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting")]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (
            {"deleteOptions": {"gracePeriodSeconds": "5"}},
            "json: cannot unmarshal string into Go struct field DeleteOptions.deleteOptions.gracePeriodSeconds"
            " of type int64",
        ),
        (
            {"deleteOptions": []},
            "json: cannot unmarshal array into Go struct field Eviction.deleteOptions of type v1.DeleteOptions",
        ),
        ({"novelty": 1}, 'strict decoding error: unknown field "novelty"'),
    ],
)
async def test_an_eviction_is_read_as_any_other_object(ask: Ask, content: JSONObject, why: str) -> None:
    eviction: JSONObject = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}, **content}
    answer = await ask("POST", f"{PODS}/a/eviction?fieldValidation=Strict", eviction)

    message = f'Eviction in version "v1" cannot be handled as a Eviction: {why}'
    assert answer.refusal == (400, "BadRequest", message)


async def test_a_pod_with_two_budgets_is_not_evicted(ask: Ask) -> None:
    await create_pod(ask, "a", node="n")
    await ask("PATCH", f"{PODS}/a/status", {"status": {"phase": "Running"}}, MERGE)
    by_name: JSONObject = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]}
    for name, selector in {"one": by_name, "all": {}, "none": None}.items():
        await ask("POST", BUDGETS, {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": selector}})
    refused = await evict(ask, "a")

    assert refused.refusal == (
        500,
        "",
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    )


# Parts of a pod


async def test_debug_containers_are_added_and_stay(ask: Ask) -> None:
    await create_pod(ask, "a")
    path = f"{PODS}/a/ephemeralcontainers"

    async def debug(**container: JSONValue) -> Answer:
        body: JSONObject = {
            "metadata": {"labels": {"ignored": "x"}},
            "spec": {"ephemeralContainers": [{"image": "web:1", **container}], "activeDeadlineSeconds": 5},
        }
        return await ask("PATCH", path, body, STRATEGIC)

    added = await debug(name="debug")
    taken = await debug(name="main")
    ports = await debug(name="more", ports=[{"containerPort": 80}])
    removed = await ask("PATCH", path, {"spec": {"ephemeralContainers": []}}, MERGE)
    shown = await ask("GET", path)

    assert [text(one, "name") for one in items(added.body, "spec", "ephemeralContainers")] == ["debug"]
    assert (at(added.body, "metadata", "generation"), at(added.body, "spec", "activeDeadlineSeconds")) == (2, None)
    assert at(added.body, "metadata", "labels") == {"app": "a"}
    assert '.name: Duplicate value: "main"' in text(taken.body, "message")
    assert "cannot be set for an Ephemeral Container" in text(ports.body, "message")
    assert removed.refusal == (
        422,
        "Invalid",
        'Pod "a" is invalid: spec.ephemeralContainers: Forbidden: '
        'existing ephemeral containers "debug" may not be removed\n',
    )
    assert shown.body == added.body


async def test_a_pod_is_resized_within_its_class(ask: Ask) -> None:
    await create_pod(ask, "a", requests={"cpu": "1"})
    await create_pod(ask, "none")
    path = f"{PODS}/a/resize"

    def resources(**given: JSONValue) -> JSONObject:
        return {"spec": {"containers": [{"name": "main", "image": "other", "resources": given}]}}

    resized = await ask("PATCH", path, resources(requests={"cpu": "2"}), STRATEGIC)
    better = await ask("PATCH", f"{PODS}/none/resize", resources(requests={"cpu": "2"}), STRATEGIC)

    container = mapping(items(resized.body, "spec", "containers")[0])
    assert (container["image"], container["resources"]) == ("web:1", {"requests": {"cpu": "2"}})
    assert at(resized.body, "metadata", "generation") == 2
    assert better.refusal == (
        422,
        "Invalid",
        'Pod "none" is invalid: spec: Invalid value: "BestEffort": '
        "Pod QOS Class may not change as a result of resizing",
    )


# Grace


async def test_the_time_that_a_pod_is_given_can_only_be_made_shorter(ask: Ask) -> None:
    await create_pod(ask, "a", node="n")

    async def delete(seconds: int | None = None) -> JSONValue:
        body: JSONValue = None if seconds is None else {"gracePeriodSeconds": seconds}
        return at((await ask("DELETE", f"{PODS}/a", body)).body, "metadata", "deletionGracePeriodSeconds")

    given = [await delete(), await delete(60), await delete(5)]
    await ask("PATCH", f"{PODS}/a/status", {"status": {"phase": "Failed"}}, MERGE)
    # Once its time is running, nothing but a shorter time ends it.
    given += [await delete(), await delete(5)]
    assert (await ask("GET", f"{PODS}/a")).code == 200
    given.append(await delete(0))

    assert given == [30, 30, 5, 5, 5, 0]
    assert (await ask("GET", f"{PODS}/a")).code == 404
