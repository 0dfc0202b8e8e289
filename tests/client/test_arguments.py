"""What a newcomer tries, from other clients or by guessing, is answered by a sentence that names the fix."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from kubewright.api.core.v1 import ConfigMap, Node, Pod
from kubewright.api.dynamic import Dynamic
from kubewright.api.meta import ObjectMeta, OwnerReference
from kubewright.client import Client, MergePatch
from kubewright.client.wait import Field, condition, ready

if TYPE_CHECKING:
    from tests.client.conftest import ScriptedServer

MAP = ConfigMap(metadata=ObjectMeta(name="settings", namespace="shop"))
OWNER = OwnerReference(api_version="v1", kind="Pod", name="web", uid="u-1")


async def _async(obj: object) -> bool:
    return True


# Calls that no type checker lets pass, hence Any.
GUESSES: dict[str, tuple[Callable[[Any], Awaitable[object]], type[Exception], str]] = {
    "create a dict": (
        lambda client: client.create({"kind": "ConfigMap", "metadata": {"name": "a"}}),
        TypeError,
        "expected an object, not a dict: make one with from_json(ConfigMap, {...})",
    ),
    "create a text": (lambda client: client.create("kind: Pod"), TypeError, 'not the text "kind: Pod"'),
    "create a class": (
        lambda client: client.create(ConfigMap),
        TypeError,
        "not just the kind ConfigMap: make one with ConfigMap(...)",
    ),
    "create several": (lambda client: client.create([MAP]), TypeError, "not a list: give them one by one"),
    "update a dict": (lambda client: client.update({}), TypeError, "not a dict: make one with from_json"),
    "apply a dict": (lambda client: client.apply({"kind": "Pod"}), TypeError, "from_json(Pod, {...})"),
    "apply without a name": (lambda client: client.apply(ConfigMap()), ValueError, "the ConfigMap has no name"),
    "status of a dict": (lambda client: client.status.update({}), TypeError, "not a dict"),
    "get by kind name": (
        lambda client: client.get("Pod", "web"),
        TypeError,
        'a kind is given by its class, not by its name "Pod": import it',
    ),
    "list by plural": (
        lambda client: client.list("pods"),
        TypeError,
        'a kind is given by its class, not by its name "pods"',
    ),
    "watch by plural": (lambda client: client.watch("pods"), TypeError, 'not by its name "pods"'),
    "serves by name": (lambda client: client.serves("Widget"), TypeError, 'Dynamic.of("v1", "Widget")'),
    "list an object": (lambda client: client.list(MAP), TypeError, "not the ConfigMap shop/settings: give its class"),
    "get without a name": (
        lambda client: client.get(Pod),
        TypeError,
        "which Pod? Give an object, or a kind and a name",
    ),
    "get with an empty name": (lambda client: client.get(Pod, ""), ValueError, "the Pod has no name"),
    "get namespace/name": (
        lambda client: client.get(Pod, "shop/web"),
        ValueError,
        '"shop/web" cannot be the name of a Pod: give "web", namespace="shop"',
    ),
    "get by a number": (
        lambda client: client.get(Pod, 7),
        TypeError,
        "the name of a Pod is a string, a key or an object, not 7",
    ),
    "get by an owner": (lambda client: client.get(Pod, OWNER), TypeError, "is a string, a key or an object, not a"),
    "object and name": (
        lambda client: client.delete(MAP, "other"),
        TypeError,
        "the ConfigMap shop/settings names itself: leave out 'other', or give the kind ConfigMap",
    ),
    "namespace of a node": (
        lambda client: client.get(Node, "n", namespace="shop"),
        ValueError,
        'Node is cluster-scoped and in no namespace: leave out namespace="shop"',
    ),
    "nodes of a namespace": (lambda client: client.table(Node, namespace="shop"), ValueError, "Node is cluster-scoped"),
    "delete by name alone": (
        lambda client: client.delete("web"),
        TypeError,
        'give the kind first, as in (Pod, "name")',
    ),
    "delete a kind": (lambda client: client.delete(Pod), TypeError, "which Pod?"),
    "delete all everywhere": (lambda client: client.delete_all(Pod), ValueError, "delete_all(Pod) needs namespace="),
    "patch with a dict": (
        lambda client: client.patch(MAP, {"data": {}}),
        TypeError,
        "expected a patch, not a dict: use MergePatch({...})",
    ),
    "patch by name with a list": (
        lambda client: client.patch(Pod, "web", []),
        TypeError,
        "expected a patch, not a list: use JSONPatch([...])",
    ),
    "patch without a name": (
        lambda client: client.patch(Pod, MergePatch({})),
        TypeError,
        "which Pod? Give a kind, a name and a patch",
    ),
    "patch what was never read": (
        lambda client: client.patch(MAP),
        ValueError,
        "was not read from a server, so there is nothing to compare it with: use patch_from(base), or apply",
    ),
    "patch by name without a patch": (
        lambda client: client.patch(Pod, "web"),
        TypeError,
        "a difference needs an object, not just the kind Pod",
    ),
    "labels as a list": (
        lambda client: client.list(Pod, labels=["app=web"]),
        TypeError,
        'labels= expects {"app": "web"} or "app=web", not a list',
    ),
    "labels with a number": (
        lambda client: client.list(Pod, labels={"tier": 3}),
        TypeError,
        "labels={'tier': 3}: names and values are strings",
    ),
    "fields as a list": (lambda client: client.list(Pod, fields=["a"]), TypeError, "fields= expects"),
    "fields in snake_case": (
        lambda client: client.list(Pod, fields={"spec.node_name": "n"}),
        ValueError,
        'Pod has no field "spec.node_name": did you mean "spec.nodeName"?',
    ),
    "fields in the wrong case": (
        lambda client: client.watch(Pod, fields={"spec.nodename": "n"}),
        ValueError,
        'did you mean "spec.nodeName"?',
    ),
    "wait for a word": (
        lambda client: client.wait_for(MAP, "Ready"),
        TypeError,
        'expected an expectation, not the text "Ready": use condition("Ready")',
    ),
    "wait for nothing": (lambda client: client.wait_for(MAP, None), TypeError, "or a function of the object, not None"),
    "wait for a kind": (lambda client: client.wait_for(Pod, ready), TypeError, "which Pod?"),
    "wait with an async function": (
        lambda client: client.wait_for(MAP, _async),
        TypeError,
        "_async is async: expected a plain function",
    ),
    "wait for a field": (
        lambda client: client.wait_for(MAP, Field("data.key")),
        TypeError,
        'write Field("status.phase").equals("Running")',
    ),
    "wait for a condition": (lambda client: client.wait_for(MAP, condition), TypeError, 'Write condition("Ready")'),
    "wait for a misspelt field": (
        lambda client: client.wait_for(Pod, "web", ready & ~Field("status.fase").equals("Running")),
        ValueError,
        'Field("status.fase"): PodStatus has no field "fase": did you mean "phase"?',
    ),
    "wait for a misspelt field of an item": (
        lambda client: client.wait_for(Pod, "web", Field("spec.containers[0].img").satisfies(bool, "is set")),
        ValueError,
        'Container has no field "img": did you mean "image"?',
    ),
    "wait in the wrong part": (
        lambda client: client.wait_for(MAP, Field("phase").equals("Running")),
        ValueError,
        'ConfigMap has no field "phase": it has apiVersion, kind, metadata, binaryData, data, immutable',
    ),
    "no namespace": (lambda client: client.in_namespace(None), TypeError, "the name of one namespace, not None"),
    "a list of kinds": (lambda client: client.list([Pod]), TypeError, "not a list: give them one by one"),
    "a class that is no kind": (lambda client: client.list(str), TypeError, "derive it from Resource and decorate it"),
    "dynamic": (lambda client: client.get(Dynamic, "web"), TypeError, 'write Dynamic.of("example.com/v1", "Widget")'),
    "evict a number": (lambda client: client.evict(3), TypeError, "the name of a Pod is a string"),
    "list in all namespaces by a star": (
        lambda client: client.list(Pod, namespace="*"),
        ValueError,
        'namespace="*" cannot be the name of a namespace: leave it out for all namespaces',
    ),
    "list in two namespaces": (
        lambda client: client.list(Pod, namespace=["shop", "bank"]),
        TypeError,
        "namespace= expects the name of one namespace, not a list: leave it out for all namespaces",
    ),
    "watch in two namespaces": (
        lambda client: client.watch(Pod, namespace="shop,bank"),
        ValueError,
        'namespace="shop,bank" cannot be the name of a namespace: give one name',
    ),
    "delete all in two namespaces": (
        lambda client: client.delete_all(Pod, namespace="shop,bank"),
        ValueError,
        'namespace="shop,bank" cannot be the name of a namespace: give one name',
    ),
    "wait for a timedelta": (
        lambda client: client.wait_for(Pod, "web", ready, timeout=timedelta(seconds=5)),
        TypeError,
        "timeout=datetime.timedelta(seconds=5): expected a number of seconds",
    ),
    "logs since a text": (
        lambda client: anext(client.logs("web", since="1h")),
        TypeError,
        "since='1h': expected a number of seconds, a timedelta or a datetime",
    ),
    "logs since no time zone": (
        lambda client: anext(client.logs("web", since=datetime(2026, 1, 1))),
        ValueError,
        "has no time zone",
    ),
}


@pytest.mark.parametrize("guess", GUESSES)
async def test_a_wrong_guess_is_answered_with_the_fix(client: Client, server: ScriptedServer, guess: str) -> None:
    call, kind, sentence = GUESSES[guess]
    with pytest.raises(kind, match=re.escape(sentence)) as raised:
        await call(client)

    assert type(raised.value) is kind
    assert not server.sent, "nothing is sent"


def test_a_field_has_its_json_name() -> None:
    with pytest.raises(ValueError, match=r"write readyReplicas instead of ready_replicas, or \[\"ready_replicas\"\]"):
        Field("status.ready_replicas")
    assert Field('data["some_key"]').read({"data": {"some_key": "x"}}) == "x"


@pytest.mark.parametrize(
    "use", [list, len, lambda found: found[0], lambda found: found.items, lambda found: 1 in found]
)
def test_a_list_that_was_not_awaited_says_so(client: Client, use: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError, match=r"write `await client\.list\(\.\.\.\)` for all objects, or `async for"):
        use(client.list(Pod))


def test_a_client_is_made_of_a_configuration() -> None:
    make: Any = Client
    with pytest.raises(TypeError, match=r'use Client\(Config\.load\(kubeconfig="prod\.yaml"\)\)'):
        make("prod.yaml")


async def test_a_closed_client_says_so(client: Client) -> None:
    await client.aclose()
    with pytest.raises(RuntimeError, match=r"^get Pod shop/web: the client is closed: use it within its `async with`"):
        await client.get(Pod, "web")


async def test_selectors_by_names_that_are_no_fields_are_left_to_the_server(
    client: Client, server: ScriptedServer
) -> None:
    server.answers({"items": []})
    assert await client.list(Pod, fields={"status.podIP": "10.0.0.1", "spec.unknown": "x"}) == []


@pytest.mark.parametrize("status", [True, "true", None])
def test_a_condition_is_the_text_that_kubernetes_has_for_it(status: Any) -> None:
    with pytest.raises(ValueError, match='the status is the text "True", "False" or "Unknown"'):
        condition("Ready", status)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (Dynamic.of("example.com/v1", "Widget", plural="widgets", namespaced=True), "status.anything"),
        (ConfigMap, 'metadata.labels["any.label/name"]'),
        (ConfigMap, "data.key"),
        (Pod, "spec.containers[0].image"),
    ],
)
async def test_fields_that_may_be_there_are_waited_for(
    client: Client, server: ScriptedServer, kind: Any, path: str
) -> None:
    server.answers({"metadata": {"resourceVersion": "1"}, "items": []})
    assert await client.wait_for(kind, "web", ~Field(path).equals(1)) is None
