from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from kubewright.api.apps.v1 import Deployment
from kubewright.api.codec import decode
from kubewright.api.core.v1 import Node, Pod
from kubewright.api.kinds import ObjectKey
from kubewright.api.markers import JSONValue
from kubewright.client.client import Client
from kubewright.client.errors import ConnectionLost, DecodeError, Forbidden, KubernetesError, NotFound
from kubewright.client.wait import (
    Expectation,
    Field,
    WaitTimeout,
    available,
    complete,
    condition,
    deleted,
    established,
    exists,
    ready,
)

if TYPE_CHECKING:
    from tests.client.conftest import ScriptedServer, VirtualTime

YES = Expectation("yes", lambda view: True)
NO = Expectation("no", lambda view: False)


# expectations


@pytest.mark.parametrize(("left", "right"), list(itertools.product([YES, NO], repeat=2)))
def test_expectations_combine_as_truth_values_do(left: Expectation, right: Expectation) -> None:
    one, other = left.holds(None), right.holds(None)

    assert (left & right).holds(None) == (one and other)
    assert (left | right).holds(None) == (one or other)
    assert (~left).holds(None) == (not one)
    assert (~(left & right)).holds(None) == (~left | ~right).holds(None)


def test_combined_expectations_have_combined_descriptions() -> None:
    assert (YES & NO).description == "(yes and no)"
    assert (YES | ~NO).description == "(yes or not no)"
    assert (~(YES & NO) | ready).description == "(not (yes and no) or Ready=True)"
    assert repr(YES & NO) == "Expectation((yes and no))"


VIEW: dict[str, JSONValue] = {
    "metadata": {"labels": {"app.kubernetes.io/name": "web", "7": "seven"}},
    "spec": {"ports": [{"name": "http", "number": 80}, {"name": "grpc"}], "paused": True},
    "status": {"phase": "Running", "nothing": None},
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("status.phase", "Running"),
        (".status.phase", "Running"),
        ("spec.ports[0].name", "http"),
        ("spec.ports[1].name", "grpc"),
        ("spec.ports[2].name", None),
        ("spec.ports.name", None),
        ('metadata.labels["app.kubernetes.io/name"]', "web"),
        ("metadata.labels['app.kubernetes.io/name']", "web"),
        ("metadata.labels.7", "seven"),
        ("status.nothing", None),
        ("status.nothing.deeper", None),
        ("status.phase.deeper", None),
        ("absent.deeper", None),
    ],
)
def test_a_field_is_found_by_its_path(path: str, value: JSONValue) -> None:
    assert Field(path).read(VIEW) == value
    assert Field(path).read(None) is None


@pytest.mark.parametrize("path", ["", ".", "a..b", "a.", "a[", "a[x]", "a]b", "a[0]b", '["x', 'a[""]'])
def test_what_is_no_path_is_refused_at_once(path: str) -> None:
    """Otherwise the wait would end with its timeout, without a reason."""
    with pytest.raises(ValueError, match=r"is not the path of a field, from .* expected something like"):
        Field(path)


def test_a_field_equals_what_json_calls_equal() -> None:
    assert Field("status.phase").equals("Running").holds(VIEW)
    assert not Field("status.phase").equals("Pending").holds(VIEW)
    assert Field("spec.paused").equals(True).holds(VIEW)
    assert not Field("spec.paused").equals(1).holds(VIEW)
    assert Field("spec.ports").equals([{"name": "http", "number": 80}, {"name": "grpc"}]).holds(VIEW)
    assert Field("status.phase").equals(None).holds(None)
    assert Field("status.phase").equals("Running").description == "status.phase = 'Running'"


def test_a_field_can_satisfy_any_test() -> None:
    at_least_80 = Field("spec.ports[0].number").satisfies(lambda value: isinstance(value, int) and value >= 80, "≥ 80")

    assert at_least_80.holds(VIEW)
    assert not at_least_80.holds(None)
    assert at_least_80.description == "spec.ports[0].number ≥ 80"


def conditions(*entries: dict[str, JSONValue], generation: int = 2, **status: JSONValue) -> dict[str, JSONValue]:
    return {"metadata": {"generation": generation}, "status": {"conditions": list(entries), **status}}


READY: dict[str, JSONValue] = {"type": "Ready", "status": "True"}


@pytest.mark.parametrize(
    ("view", "holds"),
    [
        (conditions(READY), True),
        (conditions({"type": "Other", "status": "True"}, READY), True),
        (conditions({"type": "Ready", "status": "False"}), False),
        (conditions({"type": "Ready", "status": "Unknown"}), False),
        (conditions({**READY, "observedGeneration": 2}), True),
        (conditions({**READY, "observedGeneration": 3}), True),
        (conditions({**READY, "observedGeneration": 1}), False),
        ({"status": {"conditions": [{**READY, "observedGeneration": 1}]}}, True),
        ({"status": {"conditions": None}}, False),
        ({"status": {"conditions": "rubbish"}}, False),
        ({"status": {"conditions": ["rubbish"]}}, False),
        ({"status": {}}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_condition_holds_when_it_is_about_the_current_generation(
    view: dict[str, JSONValue] | None, holds: bool
) -> None:
    assert ready.holds(view) == holds


def test_a_condition_may_be_wanted_false() -> None:
    assert condition("Ready", "False").holds(conditions({"type": "Ready", "status": "False"}))
    assert condition("Ready", "False").description == "Ready=False"


@pytest.mark.parametrize(("type_", "expectation"), [("Established", established), ("Complete", complete)])
def test_well_known_conditions_have_names(type_: str, expectation: Expectation) -> None:
    assert expectation.holds(conditions({"type": type_, "status": "True"}))
    assert not expectation.holds(conditions(READY))


@pytest.mark.parametrize(("observed", "holds"), [(2, True), (1, False), (None, True)])
def test_a_deployment_is_available_when_its_controller_has_seen_the_newest_generation(
    observed: JSONValue, holds: bool
) -> None:
    entry: dict[str, JSONValue] = {"type": "Available", "status": "True"}

    assert available.holds(conditions(entry, observedGeneration=observed)) == holds
    assert not available.holds(conditions(observedGeneration=2))


def test_existence_and_deletion_are_opposites() -> None:
    assert exists.holds({})
    assert not deleted.holds({})
    assert deleted.holds(None)
    assert not exists.holds(None)


# waiting


def pod(phase: str = "Pending", uid: str = "u-1", **metadata: JSONValue) -> dict[str, JSONValue]:
    entry: dict[str, JSONValue] = {
        "type": "Ready",
        "status": "True" if phase == "Running" else "False",
        "reason": "ContainersNotReady" if phase == "Pending" else "",
    }
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "web-1", "namespace": "shop", "uid": uid, "resourceVersion": "5", **metadata},
        "spec": {"containers": []},
        "status": {"phase": phase, "conditions": [entry]},
    }


def listed(*pods: dict[str, JSONValue], revision: str = "7") -> dict[str, JSONValue]:
    return {"kind": "PodList", "metadata": {"resourceVersion": revision}, "items": list(pods)}


def event(type_: str, content: JSONValue) -> bytes:
    return json.dumps({"type": type_, "object": content}).encode() + b"\n"


def known(content: dict[str, JSONValue]) -> Pod:
    return decode(Pod, json.dumps(content).encode())


async def test_an_expectation_that_holds_already_needs_no_watch(client: Client, server: ScriptedServer) -> None:
    server.answers(listed(pod("Running")))
    found = await client.wait_for(Pod, "web-1", ready)

    assert found is not None
    assert found.metadata.name == "web-1"
    (sent,) = server.sent
    assert sent.path == "/api/v1/namespaces/shop/pods"
    assert sent.query["fieldSelector"] == "metadata.name=web-1"


async def test_a_wait_watches_on_from_what_it_has_read(client: Client, server: ScriptedServer) -> None:
    server.answers(listed(pod(), revision="7"))
    body = server.streams(
        event("MODIFIED", pod()),
        event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "8"}}),
        event("MODIFIED", pod("Running")),
        ends=False,
    )
    found = await client.wait_for(Pod, ObjectKey("shop", "web-1"), ready)

    assert found is not None
    assert found.status is not None
    assert found.status.phase == "Running"
    assert server.sent[1].query["resourceVersion"] == "7"
    assert server.sent[1].query["fieldSelector"] == "metadata.name=web-1"
    assert body.is_closed


async def test_an_object_that_does_not_exist_yet_can_be_waited_for(client: Client, server: ScriptedServer) -> None:
    server.answers(listed())
    server.streams(event("ADDED", pod()), ends=False)

    assert await client.wait_for(Pod, "web-1", exists, namespace="shop") is not None


async def test_cluster_scoped_objects_can_be_waited_for(client: Client, server: ScriptedServer) -> None:
    server.answers(listed({"kind": "Node", "metadata": {"name": "n"}}))
    await client.in_namespace("shop").wait_for(Node, "n", exists)

    assert server.sent[0].path == "/api/v1/nodes"


async def test_a_deletion_ends_the_wait_without_an_object(client: Client, server: ScriptedServer) -> None:
    server.answers(listed(pod()))
    server.streams(event("DELETED", pod()), ends=False)

    assert await client.wait_for(known(pod()), deleted) is None


async def test_a_recreated_object_is_another_one(client: Client, server: ScriptedServer) -> None:
    server.answers(listed(pod(uid="u-2")))
    assert await client.wait_for(known(pod(uid="u-1")), deleted) is None

    server.answers(listed(pod(uid="u-1")))
    server.streams(event("MODIFIED", pod(uid="u-2")), ends=False)
    assert await client.wait_for(known(pod(uid="u-1")), deleted) is None


def test_by_name_a_recreated_object_is_the_same(
    client: Client, server: ScriptedServer, virtual_time: VirtualTime
) -> None:
    server.answers(listed(pod(uid="u-2")))
    server.streams(ends=False)
    with pytest.raises(WaitTimeout):
        virtual_time.run(client.wait_for(Pod, "web-1", deleted))


@pytest.mark.parametrize(
    "script",
    [
        lambda server: server.streams(),
        lambda server: server.streams(ConnectionLost("gone")),
        lambda server: server.refuses(410, "Expired"),
        lambda server: server.streams(event("ERROR", {"status": "Failure", "reason": "Expired", "code": 410})),
        lambda server: server.refuses(500, "InternalError"),
    ],
    ids=["orderly end", "cut", "410", "ERROR 410", "500"],
)
def test_a_watch_that_ended_is_restarted_with_the_current_state(
    client: Client, server: ScriptedServer, virtual_time: VirtualTime, script: Callable[[ScriptedServer], object]
) -> None:
    server.answers(listed(pod()))
    script(server)
    server.answers(listed(pod("Running")))
    found = virtual_time.run(client.wait_for(Pod, "web-1", ready))

    assert found is not None
    assert virtual_time.elapsed == pytest.approx(0.1)


def test_a_server_that_ends_every_watch_at_once_is_retried_with_backoff(
    client: Client, server: ScriptedServer, virtual_time: VirtualTime
) -> None:
    for _ in range(8):
        server.answers(listed(pod()))
        server.streams()
    server.answers(listed(pod("Running")))
    virtual_time.run(client.wait_for(Pod, "web-1", ready))

    assert virtual_time.elapsed == pytest.approx(0.1 + 0.2 + 0.4 + 0.8 + 1.6 + 3.2 + 5 + 5)


def test_a_watch_that_brought_an_event_is_restarted_quickly(
    client: Client, server: ScriptedServer, virtual_time: VirtualTime
) -> None:
    for _ in range(3):
        server.answers(listed(pod()))
        server.streams(event("MODIFIED", pod()))
    server.answers(listed(pod("Running")))
    virtual_time.run(client.wait_for(Pod, "web-1", ready))

    assert virtual_time.elapsed == pytest.approx(0.3)


@pytest.mark.parametrize(("code", "error"), [(403, Forbidden), (404, NotFound)])
async def test_a_refusal_is_raised_at_once(
    client: Client, server: ScriptedServer, code: int, error: type[KubernetesError]
) -> None:
    server.refuses(code, error.__name__, "not yours", name="shop")
    with pytest.raises(error, match=r"^list Pod in shop: not yours$"):
        await client.wait_for(Pod, "web-1", ready)


async def test_a_refused_watch_is_raised_at_once(client: Client, server: ScriptedServer) -> None:
    server.answers(listed(pod()))
    server.refuses(403, "Forbidden", "not yours")
    with pytest.raises(Forbidden, match=r"^watch Pod in shop: not yours$"):
        await client.wait_for(Pod, "web-1", ready)


async def test_an_object_that_does_not_fit_its_type_is_raised_at_once(client: Client, server: ScriptedServer) -> None:
    server.answers(listed(pod()))
    body = server.streams(event("MODIFIED", {**pod(), "spec": 7}), ends=False)
    with pytest.raises(DecodeError, match='Pod "shop/web-1"'):
        await client.wait_for(Pod, "web-1", ready)

    assert body.is_closed


@pytest.mark.parametrize(
    ("content", "summary"),
    [
        (listed(), "there is no such object"),
        (listed(pod()), "last seen: phase=Pending, Ready=False (ContainersNotReady)"),
        (
            listed(pod("Failed", deletionTimestamp="2024-01-01T00:00:00Z", finalizers=["example.com/f"])),
            "last seen: being deleted, finalizers ['example.com/f'], phase=Failed, Ready=False",
        ),
        (listed({"metadata": {"name": "web-1"}, "spec": {"containers": []}}), "last seen: no conditions"),
    ],
)
def test_a_timeout_reports_the_expectation_and_the_last_state(
    client: Client, server: ScriptedServer, virtual_time: VirtualTime, content: dict[str, JSONValue], summary: str
) -> None:
    server.answers(content)
    body = server.streams(ends=False)
    with pytest.raises(WaitTimeout) as caught:
        virtual_time.run(client.wait_for(Pod, "web-1", ready & ~deleted, timeout=90))

    assert str(caught.value) == (
        "wait for Pod shop/web-1: expected (Ready=True and not deleted), which did not come within 90 s; " + summary
    )
    assert isinstance(caught.value, TimeoutError)
    assert virtual_time.elapsed == pytest.approx(90)
    assert body.is_closed


def test_a_timeout_ends_the_pauses_too(client: Client, server: ScriptedServer, virtual_time: VirtualTime) -> None:
    server.refuses(503, "ServiceUnavailable")
    with pytest.raises(WaitTimeout, match="there is no such object"):
        virtual_time.run(client.wait_for(Pod, "web-1", ready, timeout=0.05))


async def test_a_wait_needs_to_know_for_which_object(client: Client) -> None:
    with pytest.raises(TypeError, match=r"^which Deployment\? "):
        await client.wait_for(Deployment, available)  # type: ignore[call-overload]  # that is the mistake
