"""Custom resource definitions from their creation to their end, and what their versions make of stored objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from tests.conformance.asking import Answer, Ask

from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import JSONValue
from kubewright.client import Client
from kubewright.controlplane.embedded.document import JSONObject, at, inside, items, mapping, text
from kubewright.testing.namespaces import unique_name

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
ANYTHING: JSONObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
FREE: JSONObject = {"type": "object", "properties": {"spec": ANYTHING, "status": ANYTHING}}
SECONDS = 20


def version(name: str = "v1", *, storage: bool = True, schema: JSONObject = FREE, **more: JSONValue) -> JSONObject:
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def typed(**properties: JSONValue) -> JSONObject:
    return {"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": properties}}}


class Kind:
    """A custom kind of the test's own."""

    def __init__(self, ask: Ask, group: str) -> None:
        self.ask = ask
        self.group = group
        self.name = f"things.{group}"

    async def define(self, *versions: JSONObject) -> JSONObject:
        """Create the definition, and wait until objects of every version that is served can be listed."""
        names: JSONValue = {"plural": "things", "kind": "Thing"}
        spec: JSONValue = {"group": self.group, "scope": "Namespaced", "names": names, "versions": [*versions]}
        answer = await self.ask("POST", DEFINITIONS, {"metadata": {"name": self.name}, "spec": spec})
        assert answer.code == 201, answer.body
        for one in versions:
            await self.eventually("GET", self.path(version=text(one, "name")), lambda answer: answer.code == 200)
        return answer.body

    async def change(self, *versions: JSONObject) -> Answer:
        return await self.ask("PATCH", f"{DEFINITIONS}/{self.name}", {"spec": {"versions": [*versions]}}, MERGE)

    async def read(self) -> JSONObject:
        return (await self.ask("GET", f"{DEFINITIONS}/{self.name}")).body

    def path(self, name: str = "", *, version: str = "v1") -> str:
        collection = f"/apis/{self.group}/{version}/namespaces/NAMESPACE/things"
        return f"{collection}/{name}" if name else collection

    async def create(self, name: str, *, version: str = "v1", **content: JSONValue) -> Answer:
        """Create an object; `metadata` in the content is added to its own."""
        obj: JSONObject = {"apiVersion": f"{self.group}/{version}", "kind": "Thing", **content}
        inside(obj, "metadata")["name"] = name
        return await self.ask("POST", self.path(version=version), obj)

    async def eventually(self, method: str, path: str, expected: Callable[[Answer], bool]) -> Answer:
        """The first answer that is as expected: the server takes up a definition in its own time."""
        async with asyncio.timeout(SECONDS):
            while not expected(answer := await self.ask(method, path)):
                await asyncio.sleep(0.01)
            return answer


@pytest.fixture
async def kind(ask: Ask, request: pytest.FixtureRequest) -> AsyncIterator[Kind]:
    kind = Kind(ask, f"{unique_name(request.node.name)}.example.com")
    yield kind
    await ask("DELETE", f"{DEFINITIONS}/{kind.name}")


def conditions(definition: JSONObject) -> dict[str, tuple[str, str, str]]:
    return {
        text(one, "type"): (text(one, "status"), text(one, "reason"), text(one, "message"))
        for one in items(definition, "status", "conditions")
    }


def managers(obj: JSONObject) -> list[tuple[str, str]]:
    return [(text(one, "manager"), text(one, "subresource")) for one in items(obj, "metadata", "managedFields")]


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


async def test_a_definition_goes_after_its_objects(kind: Kind) -> None:
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
    assert late.told == (
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


async def test_what_identifies_a_definition_stays(kind: Kind) -> None:
    await kind.define(version())
    place = f"{DEFINITIONS}/{kind.name}"
    scope = await kind.ask("PATCH", place, {"spec": {"scope": "Cluster"}}, MERGE)
    unknown = await kind.ask("PATCH", place, {"spec": {"preserveUnknownFields": True}}, MERGE)
    without = await kind.ask("PUT", place, {"metadata": {"name": kind.name}, "spec": at(await kind.read(), "spec")})

    name = f'CustomResourceDefinition.apiextensions.k8s.io "{kind.name}" is invalid'
    assert scope.told == (422, "Invalid", f'{name}: spec.scope: Invalid value: "Cluster": field is immutable')
    assert unknown.told == (
        422,
        "Invalid",
        f"{name}: spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
        "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
    )
    assert without.told == (
        422,
        "Invalid",
        f'customresourcedefinitions.apiextensions.k8s.io "{kind.name}" is invalid: metadata.resourceVersion: '
        "Invalid value: 0: must be specified for an update",
    )


# Versions


async def test_objects_are_seen_in_every_version(kind: Kind) -> None:
    await kind.define(version(), version("v2", storage=False))
    await kind.create("a", spec={"x": 1})
    other = await kind.ask("GET", kind.path("a", version="v2"))
    patched = await kind.ask("PATCH", kind.path("a", version="v2"), {"spec": {"x": 2}}, MERGE)
    back = await kind.ask("GET", kind.path("a"))
    wrong = await kind.ask("POST", kind.path(), {"apiVersion": f"{kind.group}/v2", "kind": "Thing"})

    assert (other.body["apiVersion"], other.body["spec"]) == (f"{kind.group}/v2", {"x": 1})
    assert patched.body["apiVersion"] == f"{kind.group}/v2"
    assert (back.body["apiVersion"], back.body["spec"]) == (f"{kind.group}/v1", {"x": 2})
    assert [text(one, "apiVersion") for one in items(back.body, "metadata", "managedFields")] == [
        f"{kind.group}/v1",
        f"{kind.group}/v2",
    ]
    assert wrong.told == (
        400,
        "BadRequest",
        f"the API version in the data ({kind.group}/v2) does not match the expected API version ({kind.group}/v1)",
    )


async def test_what_the_stored_version_does_not_know_is_lost(kind: Kind) -> None:
    number: JSONObject = {"type": "integer"}
    await kind.define(
        version(schema=typed(a=number, b={**number, "default": 1})),
        version("v2", storage=False, schema=typed(a=number, c={**number, "default": 2})),
    )
    created = await kind.create("a", version="v2", spec={"a": 5, "c": 6})
    first, second = await kind.ask("GET", kind.path("a")), await kind.ask("GET", kind.path("a", version="v2"))

    assert first.body["spec"] == {"a": 5, "b": 1}
    assert (created.body["spec"], second.body["spec"]) == ({"a": 5}, {"a": 5})


async def test_versions_that_were_stored_once_are_kept_in_mind(kind: Kind) -> None:
    await kind.define(version(), version("v2", storage=False))
    switched = await kind.change(version(storage=False), version("v2"))
    too_early = await kind.change(version("v2"))
    status = f"{DEFINITIONS}/{kind.name}/status"
    emptied = await kind.ask("PATCH", status, {"status": {"storedVersions": []}}, MERGE)
    removed = await kind.change(version("v2"))

    assert at(switched.body, "status", "storedVersions") == ["v1", "v2"]
    assert too_early.told == (
        422,
        "Invalid",
        f'CustomResourceDefinition.apiextensions.k8s.io "{kind.name}" is invalid: status.storedVersions[0]: Invalid '
        'value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in '
        "spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from "
        "status.storedVersions",
    )
    # There is always the version that is stored now.
    assert at(emptied.body, "status", "storedVersions") == ["v2"]
    assert removed.code == 200
    await kind.eventually("GET", kind.path(), lambda answer: answer.code == 404)


async def test_a_deprecated_version_warns(kind: Kind) -> None:
    await kind.define(
        version(),
        version("v1beta1", storage=False, deprecated=True),
        version("v1alpha1", storage=False, deprecated=True, deprecationWarning="please move on"),
    )
    newer = await kind.ask("GET", kind.path())
    older = await kind.ask("GET", kind.path(version="v1beta1"))
    oldest = await kind.ask("GET", kind.path("none", version="v1alpha1"))

    assert newer.warnings == []
    assert older.warnings == [f'299 - "{kind.group}/v1beta1 Thing is deprecated; use {kind.group}/v1 Thing"']
    assert (oldest.code, oldest.warnings) == (404, ['299 - "please move on"'])


# Stored objects


async def test_stored_objects_are_filled_in_and_pruned_when_they_are_read(kind: Kind) -> None:
    text_: JSONObject = {"type": "string"}
    await kind.define(version(schema=typed(a=text_, b={"type": "integer"})))
    await kind.create("a", spec={"a": "x", "b": 5})
    before = (await kind.create("b")).body
    await kind.change(version(schema=typed(a=text_, c={"type": "integer", "default": 7})))

    shown = await kind.eventually("GET", kind.path("b"), lambda answer: at(answer.body, "spec", "c") == 7)
    pruned = await kind.ask("GET", kind.path("a"))
    listed = await kind.ask("GET", kind.path())
    tested = await kind.ask(
        "PATCH", kind.path("b"), [{"op": "test", "path": "/spec/c", "value": 7}], "application/json-patch+json"
    )

    assert at(shown.body, "metadata", "resourceVersion") == at(before, "metadata", "resourceVersion")
    assert pruned.body["spec"] == {"a": "x", "c": 7}
    assert [at(item, "spec") for item in items(listed.body, "items")] == [{"a": "x", "c": 7}, {"c": 7}]
    # A default is nobody's change, but a write stores it.
    assert (tested.code, at(tested.body, "metadata", "generation")) == (200, 1)
    assert at(tested.body, "metadata", "resourceVersion") != at(before, "metadata", "resourceVersion")
    # What was pruned is there still.
    await kind.change(version(schema=typed(a=text_, b={"type": "integer"})))
    await kind.eventually("GET", kind.path("a"), lambda answer: answer.body.get("spec") == {"a": "x", "b": 5})


async def test_what_is_wrong_and_stays_is_let_pass(kind: Kind) -> None:
    text_: JSONObject = {"type": "string"}
    await kind.define(version(schema=typed(a=text_, b=text_, list={"type": "array", "items": text_})))
    await kind.create("a", spec={"a": "long", "list": ["x", "x"]})
    unique: JSONObject = {"type": "array", "items": text_, "x-kubernetes-list-type": "set"}
    await kind.change(version(schema=typed(a={**text_, "maxLength": 2}, b=text_, list=unique)))
    async with asyncio.timeout(SECONDS):
        while (await kind.create("probe", spec={"a": "long"})).code != 422:
            await kind.ask("DELETE", kind.path("probe"))

    other = await kind.ask("PATCH", kind.path("a"), {"spec": {"b": "new"}}, MERGE)
    same = await kind.ask("PATCH", kind.path("a"), {"spec": {"a": "longer"}}, MERGE)

    assert other.code == 200
    assert same.told == (
        422,
        "Invalid",
        f'Thing.{kind.group} "a" is invalid: spec.a: Too long: may not be more than 2 bytes',
    )


async def test_objects_are_selected_by_the_fields_a_version_names(kind: Kind) -> None:
    schema = typed(color={"type": "string"}, size={"type": "integer"}, on={"type": "boolean"})
    fields: JSONValue = [{"jsonPath": f".spec.{name}"} for name in ("color", "size", "on")]
    await kind.define(version(schema=schema, selectableFields=fields))
    await kind.create("red", spec={"color": "red", "size": 1, "on": True})
    await kind.create("blue", spec={"color": "blue"})

    async def selected(selector: str) -> list[str] | tuple[int, str, str]:
        answer = await kind.ask("GET", f"{kind.path()}?fieldSelector={selector}")
        return [text(item, "metadata", "name") for item in items(answer.body, "items")] or answer.told

    assert await selected("spec.color%3Dred") == ["red"]
    assert await selected("spec.color!%3Dred") == ["blue"]
    assert await selected("spec.size%3D1,spec.on%3Dtrue") == ["red"]
    assert await selected("spec.other%3D1") == (400, "BadRequest", "field label not supported: spec.other")


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
    place = f"{kind.path('a')}/scale"
    scale: JSONObject = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}}
    scaled = await kind.ask("PUT", place, {**scale, "spec": {"replicas": 4}})
    negative = await kind.ask("PUT", place, {"metadata": {"name": "a"}, "spec": {"replicas": -4}})
    stale = await kind.ask("PUT", place, {"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"replicas": 5}})
    other = await kind.ask("PUT", place, {"metadata": {"name": "a", "uid": "x"}, "spec": {"replicas": 5}})
    absent = await kind.ask("GET", f"{kind.path('none')}/scale")
    after = (await kind.ask("GET", kind.path("a"))).body

    assert (scaled.body["spec"], scaled.body["status"]) == ({"replicas": 4}, {"replicas": 1, "selector": "a=b"})
    assert (after["spec"], at(after, "metadata", "generation")) == ({"n": 4}, 2)
    assert ("tester", "scale") in managers(after)
    assert negative.told == (
        422,
        "Invalid",
        f'Thing.{kind.group} "a" is invalid: .spec.n: Invalid value: -4: should be a non-negative integer',
    )
    assert stale.code == 409
    assert text(other.body, "message").endswith(
        f"UID in precondition: x, UID in object meta: {mapping(created, 'metadata')['uid']}"
    )
    assert absent.told == (
        500,
        "InternalError",
        'Internal error occurred: the spec replicas field ".spec.n" does not exist',
    )


async def test_a_custom_resource_says_what_it_is(kind: Kind) -> None:
    await kind.define(version())
    await kind.create("a")
    other = await kind.ask(
        "POST", kind.path(), {"apiVersion": f"{kind.group}/v1", "kind": "Other", "metadata": {"name": "b"}}
    )
    nothing = await kind.ask("POST", kind.path(), b'{"metadata": {"name": "b"}}')
    patched = await kind.ask("PATCH", kind.path("a"), {"kind": "Other"}, MERGE)

    wrong = 'is invalid: kind: Invalid value: "Other": must be Thing'
    assert other.told == (422, "Invalid", f'Other.{kind.group} "b" {wrong}')
    assert patched.told == (422, "Invalid", f'Other.{kind.group} "a" {wrong}')
    assert nothing.told == (
        400,
        "BadRequest",
        "the object provided is unrecognized (must be of type Thing): Object 'Kind' is missing in "
        '\'{"metadata": {"name": "b"}}\' ({"metadata": {"name": "b"}})',
    )
