"""Custom resource definitions from their creation to their end, and the endpoints of their objects."""

from __future__ import annotations

import asyncio

from tests.conformance.custom_kinds import DEFINITIONS, MERGE, SECONDS, Kind, version

from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.client import Client
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


def conditions(definition: JSONObject) -> dict[str, tuple[str, str, str]]:
    return {
        text(one, "type"): (text(one, "status"), text(one, "reason"), text(one, "message"))
        for one in items(definition, "status", "conditions")
    }


def managers(obj: JSONObject) -> list[tuple[str, str]]:
    """By name: the server orders them by the second of their last write, and one may have begun in between."""
    return sorted((text(one, "manager"), text(one, "subresource")) for one in items(obj, "metadata", "managedFields"))


# Life


async def test_a_definition_is_filled_in_accepted_and_established(kind: Kind) -> None:
    created = await kind.define(version())
    definition = await kind.read()

    assert at(created, "spec", "conversion") == {"strategy": "None"}
    assert at(definition, "status", "acceptedNames") == {
        "plural": "things",
        "singular": "thing",
        "kind": "Thing",
        "listKind": "ThingList",
    }
    assert at(definition, "status", "storedVersions") == ["v1"]
    assert conditions(definition) == {
        "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
        "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
    }
    assert managers(definition) == [("kube-apiserver", "status"), ("tester", "")]
    # Only what is being deleted is kept for its objects.
    assert items(definition, "metadata", "finalizers") == []


async def test_a_definition_is_deleted_after_its_objects(kind: Kind) -> None:
    await kind.define(version())
    await kind.create("plain")
    await kind.create("held", metadata={"finalizers": ["example.com/hold"]})
    deleted = (await kind.ask("DELETE", f"{DEFINITIONS}/{kind.name}")).body

    assert items(deleted, "metadata", "finalizers") == [CLEANUP]
    assert at(deleted, "metadata", "generation") == 1
    assert at(deleted, "metadata", "deletionGracePeriodSeconds") is None
    assert conditions(deleted)["Terminating"] == (
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    )
    await kind.eventually("GET", kind.path("plain"), lambda answer: answer.code == 404)
    marked = at(
        (
            await kind.eventually(
                "GET", kind.path("held"), lambda answer: bool(text(answer.body, "metadata", "deletionTimestamp"))
            )
        ).body,
        "metadata",
    )
    assert (at(marked, "generation"), at(marked, "deletionGracePeriodSeconds")) == (2, 0)
    # Only now is it sure that the part of the server which creates objects has heard of the deletion.
    late = await kind.create("late")
    assert late.refusal == (
        403,
        "Forbidden",
        f'{kind.name} "late" is forbidden: create not allowed while custom resource definition is terminating',
    )
    progress = conditions(await kind.read())["Terminating"]
    assert progress == ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
    await kind.ask("PATCH", kind.path("held"), {"metadata": {"finalizers": None}}, MERGE)
    await kind.eventually("GET", f"{DEFINITIONS}/{kind.name}", lambda answer: answer.code == 404)


async def test_a_watch_ends_with_its_definition(kind: Kind, client: Client) -> None:
    await kind.define(version())
    await kind.create("a")
    thing = Dynamic.of(f"{kind.group}/v1", "Thing", plural="things", namespaced=True)
    seen: list[str] = []

    async def follow() -> None:
        async for event in client.watch(thing):
            seen.append(event.type)

    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as tasks:
        following = tasks.create_task(follow())
        while not seen:
            await asyncio.sleep(0.01)
        await kind.ask("DELETE", f"{DEFINITIONS}/{kind.name}")
        await following

    assert [event for event in seen if event != "BOOKMARK"] == ["ADDED", "DELETED"]


async def test_the_identity_of_a_definition_is_immutable(kind: Kind) -> None:
    await kind.define(version())
    path = f"{DEFINITIONS}/{kind.name}"
    scope = await kind.ask("PATCH", path, {"spec": {"scope": "Cluster"}}, MERGE)
    unknown = await kind.ask("PATCH", path, {"spec": {"preserveUnknownFields": True}}, MERGE)
    without = await kind.ask("PUT", path, {"metadata": {"name": kind.name}, "spec": at(await kind.read(), "spec")})

    name = f'CustomResourceDefinition.apiextensions.k8s.io "{kind.name}" is invalid'
    assert scope.refusal == (422, "Invalid", f'{name}: spec.scope: Invalid value: "Cluster": field is immutable')
    assert unknown.refusal == (
        422,
        "Invalid",
        f"{name}: spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
        "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
    )
    assert without.refusal == (
        422,
        "Invalid",
        f'customresourcedefinitions.apiextensions.k8s.io "{kind.name}" is invalid: metadata.resourceVersion: '
        "Invalid value: 0: must be specified for an update",
    )


# Parts


async def test_the_status_of_a_custom_resource_is_its_own_endpoint(kind: Kind) -> None:
    await kind.define(version(subresources={"status": {}}))
    created = await kind.create("a", spec={"n": 1}, status={"n": 1}, metadata={"generation": 7})
    status: JSONValue = {"spec": {"n": 9}, "status": {"n": 2}, "metadata": {"labels": {"a": "b"}}}
    judged = await kind.ask("PATCH", f"{kind.path('a')}/status", status, MERGE)
    changed = await kind.ask("PATCH", kind.path("a"), {"spec": {"n": 3}, "status": {"n": 3}}, MERGE)

    assert (created.body.get("status"), at(created.body, "metadata", "generation")) == (None, 1)
    assert (judged.body["spec"], judged.body["status"]) == ({"n": 1}, {"n": 2})
    assert (at(judged.body, "metadata", "labels"), at(judged.body, "metadata", "generation")) == (None, 1)
    assert (changed.body["spec"], changed.body["status"]) == ({"n": 3}, {"n": 2})
    assert at(changed.body, "metadata", "generation") == 2


async def test_without_a_status_endpoint_the_status_counts_like_the_rest(kind: Kind) -> None:
    await kind.define(version())
    await kind.create("a", status={"n": 1})
    changed = await kind.ask("PATCH", kind.path("a"), {"status": {"n": 2}}, MERGE)
    endpoint = await kind.ask("GET", f"{kind.path('a')}/status")

    assert (changed.body["status"], at(changed.body, "metadata", "generation")) == ({"n": 2}, 2)
    assert endpoint.code == 404


async def test_a_custom_resource_scales_where_its_definition_says(kind: Kind) -> None:
    paths: JSONValue = {
        "specReplicasPath": ".spec.n",
        "statusReplicasPath": ".status.n",
        "labelSelectorPath": ".status.selector",
    }
    await kind.define(version(subresources={"status": {}, "scale": paths}))
    created = (await kind.create("a", spec={"n": 1})).body
    await kind.create("none")
    await kind.ask("PATCH", f"{kind.path('a')}/status", {"status": {"n": 1, "selector": "a=b"}}, MERGE)
    path = f"{kind.path('a')}/scale"
    scale: JSONObject = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}}
    scaled = await kind.ask("PUT", path, {**scale, "spec": {"replicas": 4}})
    negative = await kind.ask("PUT", path, {"metadata": {"name": "a"}, "spec": {"replicas": -4}})
    stale = await kind.ask("PUT", path, {"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"replicas": 5}})
    other = await kind.ask("PUT", path, {"metadata": {"name": "a", "uid": "x"}, "spec": {"replicas": 5}})
    absent = await kind.ask("GET", f"{kind.path('none')}/scale")
    after = (await kind.ask("GET", kind.path("a"))).body

    assert (scaled.body["spec"], scaled.body["status"]) == ({"replicas": 4}, {"replicas": 1, "selector": "a=b"})
    assert (after["spec"], at(after, "metadata", "generation")) == ({"n": 4}, 2)
    assert ("tester", "scale") in managers(after)
    assert negative.refusal == (
        422,
        "Invalid",
        f'Thing.{kind.group} "a" is invalid: .spec.n: Invalid value: -4: should be a non-negative integer',
    )
    assert stale.code == 409
    assert text(other.body, "message").endswith(
        f"UID in precondition: x, UID in object meta: {mapping(created, 'metadata')['uid']}"
    )
    assert absent.refusal == (
        500,
        "InternalError",
        'Internal error occurred: the spec replicas field ".spec.n" does not exist',
    )


async def test_a_custom_resource_has_its_api_version_and_kind(kind: Kind) -> None:
    await kind.define(version())
    await kind.create("a")
    other = await kind.ask(
        "POST", kind.path(), {"apiVersion": f"{kind.group}/v1", "kind": "Other", "metadata": {"name": "b"}}
    )
    nothing = await kind.ask("POST", kind.path(), b'{"metadata": {"name": "b"}}')
    patched = await kind.ask("PATCH", kind.path("a"), {"kind": "Other"}, MERGE)

    wrong = 'is invalid: kind: Invalid value: "Other": must be Thing'
    assert other.refusal == (422, "Invalid", f'Other.{kind.group} "b" {wrong}')
    assert patched.refusal == (422, "Invalid", f'Other.{kind.group} "a" {wrong}')
    assert nothing.refusal == (
        400,
        "BadRequest",
        "the object provided is unrecognized (must be of type Thing): Object 'Kind' is missing in "
        '\'{"metadata": {"name": "b"}}\' ({"metadata": {"name": "b"}})',
    )


async def test_an_object_that_etcd_does_not_take_is_not_stored(kind: Kind) -> None:
    await kind.define(version())
    small = await kind.create("small", spec={"a": "x" * 1_400_000})
    large = await kind.create("large", spec={"a": "x" * 1_700_000})
    larger = await kind.create("larger", spec={"a": "x" * 2_500_000})
    grown = await kind.ask("PATCH", kind.path("small"), {"spec": {"b": "x" * 300_000}}, MERGE)

    assert small.code == 201
    assert large.refusal == grown.refusal == (500, "", "etcdserver: request is too large")
    assert (larger.code, text(larger.body, "message").partition(" (")[0]) == (
        500,
        "rpc error: code = ResourceExhausted desc = trying to send message larger than max",
    )
    assert (await kind.ask("GET", kind.path("large"))).code == 404
