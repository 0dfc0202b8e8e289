"""Conversion webhooks of custom resources: when they are asked, what their answers do, and what their failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from tests.conformance.converters import NO_WAY, Converter, converter, served_version
from tests.conformance.custom_kinds import DEFINITIONS, MERGE
from tests.conformance.policies import Policies, policies, rule
from tests.conformance.webhooks import Webhooks, allowed, patched, webhooks

from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.client import Client, WatchEvent
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text

__all__ = ["converter", "policies", "webhooks"]

APPLY = "application/apply-patch+yaml"
BETA = "v1beta1"


def managed(obj: JSONObject) -> dict[tuple[str, str], JSONValue]:
    """Who manages what of an object, in which version."""
    return {
        (text(entry, "manager"), text(entry, "apiVersion").rpartition("/")[2]): at(entry, "fieldsV1", "f:spec")
        for entry in items(obj, "metadata", "managedFields")
    }


async def test_objects_are_stored_in_one_version_and_converted_to_what_is_requested(converter: Converter) -> None:
    kind, ask = converter.kind, converter.ask
    created = await kind.create("a", version=BETA, spec={"size": 3, "unknown": 1})
    to_storage = converter.requests[0]
    stored, read = await ask("GET", kind.path("a")), await ask("GET", kind.path("a", version=BETA))

    assert (created.code, created.body["spec"]) == (201, {"size": 3, "mode": "of-size"})
    assert stored.body["spec"] == {"replicas": 3, "mode": "of-size"}
    assert {**read.body, "metadata": None} == {**created.body, "metadata": None}
    assert at(read.body, "metadata", "resourceVersion") == at(stored.body, "metadata", "resourceVersion")
    assert to_storage["desiredAPIVersion"] == f"{kind.group}/v1"
    (sent,) = items(to_storage, "objects")
    assert (text(sent, "apiVersion"), text(sent, "kind")) == (f"{kind.group}/{BETA}", "Thing")
    assert (at(sent, "spec"), text(sent, "metadata", "name")) == ({"size": 3, "mode": "of-size"}, "a")
    assert at(sent, "metadata", "resourceVersion") is None

    await kind.create("b", spec={"replicas": 5})
    listed = await ask("GET", kind.path(version=BETA))
    page = await ask("GET", f"{kind.path(version=BETA)}?limit=1")
    assert [at(item, "spec") for item in items(listed.body, "items")] == [
        {"size": 3, "mode": "of-size"},
        {"size": 5, "mode": "of-replicas"},
    ]
    assert {text(item, "apiVersion") for item in items(listed.body, "items")} == {f"{kind.group}/{BETA}"}
    assert [text(item, "metadata", "name") for item in items(page.body, "items")] == ["a"]

    patched = await ask("PATCH", kind.path("a", version=BETA), {"spec": {"size": 4}}, MERGE)
    same = await ask("PATCH", kind.path("a", version=BETA), {"spec": {"size": 4}}, MERGE)
    body: JSONObject = {**patched.body, "spec": {"size": 6, "note": "put"}}
    put = await ask("PUT", kind.path("a", version=BETA), body)
    assert (patched.body["spec"], at(patched.body, "metadata", "generation")) == ({"size": 4, "mode": "of-size"}, 2)
    assert at(same.body, "metadata", "resourceVersion") == at(patched.body, "metadata", "resourceVersion")
    assert put.body["spec"] == {"size": 6, "note": "put", "mode": "of-size"}
    assert (await ask("GET", kind.path("a"))).body["spec"] == {"replicas": 6, "note": "put", "mode": "of-size"}

    scale = await ask("GET", f"{kind.path('a', version=BETA)}/scale")
    scaled = await ask("PATCH", f"{kind.path('a', version=BETA)}/scale", {"spec": {"replicas": 7}}, MERGE)
    ready = await ask("PATCH", f"{kind.path('a', version=BETA)}/status", {"status": {"ready": 2}}, MERGE)
    assert (at(scale.body, "spec", "replicas"), at(scaled.body, "spec", "replicas")) == (6, 7)
    assert (at(ready.body, "spec", "size"), at(ready.body, "status", "ready")) == (7, 2)
    assert at((await ask("GET", kind.path("a"))).body, "status", "ready") == 2

    nameless: JSONObject = {"metadata": {"generateName": "gen-"}, "spec": {"size": 1}}
    whole: JSONObject = {"apiVersion": f"{kind.group}/{BETA}", "kind": "Thing", **nameless}
    generated = await ask("POST", kind.path(version=BETA), whole)
    dry = await ask("POST", f"{kind.path(version=BETA)}?dryRun=All", whole)
    assert text(generated.body, "metadata", "name").startswith("gen-")
    assert (dry.code, dry.body["spec"]) == (201, {"size": 1, "mode": "of-size"})
    kept: JSONObject = {"metadata": {"finalizers": ["example.com/kept"]}}
    await ask("PATCH", kind.path("a", version=BETA), kept, MERGE)
    marked = await ask("DELETE", kind.path("a", version=BETA))
    deleted = await ask("DELETE", kind.path(version=BETA))
    assert text(marked.body, "metadata", "deletionTimestamp")
    assert (marked.body["spec"], at(marked.body, "metadata", "generation")) == (ready.body["spec"], 5)
    assert {text(item, "apiVersion") for item in items(deleted.body, "items")} == {f"{kind.group}/{BETA}"}
    freed = await ask("PATCH", kind.path("a", version=BETA), {"metadata": {"finalizers": None}}, MERGE)
    assert freed.code == 200
    assert items((await ask("GET", kind.path())).body, "items") == []


async def test_managers_of_fields_are_followed_through_the_versions(converter: Converter) -> None:
    kind, ask = converter.kind, converter.ask

    def applied(manager: str, name: str, of: str, *, force: bool = False, **spec: JSONValue) -> tuple[object, ...]:
        metadata: JSONObject = {"name": name}
        body: JSONObject = {"apiVersion": f"{kind.group}/{of}", "kind": "Thing", "metadata": metadata, "spec": spec}
        return "PATCH", f"{kind.path(name, version=of)}?fieldManager={manager}&force={str(force).lower()}", body, APPLY

    await kind.create("a", version=BETA, spec={"size": 3})
    taken = await ask("PATCH", kind.path("a"), {"spec": {"replicas": 6}}, MERGE)
    assert managed(taken.body) == {("tester", "v1"): {"f:replicas": {}}, ("tester", BETA): {".": {}, "f:mode": {}}}

    await ask(*applied("one", "b", BETA, size=2, note="n"))
    shared = await ask(*applied("two", "b", "v1", replicas=2))
    refused = await ask(*applied("two", "b", "v1", replicas=3))
    forced = await ask(*applied("two", "b", "v1", force=True, replicas=3))
    assert managed(shared.body) == {("one", BETA): {"f:note": {}, "f:size": {}}, ("two", "v1"): {"f:replicas": {}}}
    assert refused.refusal == (409, "Conflict", 'Apply failed with 1 conflict: conflict with "one": .spec.size')
    assert managed(forced.body) == {("one", BETA): {"f:note": {}}, ("two", "v1"): {"f:replicas": {}}}
    # What a manager applied in another version and applies no longer goes, unless another has it, too.
    moved = await ask(*applied("one", "b", "v1", mode="mine"))
    gone = await ask(*applied("two", "b", BETA, mode="mine"))
    assert moved.body["spec"] == {"replicas": 3, "mode": "mine"}
    assert gone.body["spec"] == {"mode": "mine"}


def response(answer: JSONObject, **fields: JSONValue) -> JSONObject:
    return {**answer, "response": {**mapping(answer, "response"), **fields}}


def of_objects(answer: JSONObject, *remove: str, metadata: JSONObject | None = None, **fields: JSONValue) -> JSONObject:
    """The answer with other objects."""
    made: list[JSONValue] = []
    for obj in items(answer, "response", "convertedObjects"):
        changed = {**mapping(obj), **fields, "metadata": {**mapping(obj, "metadata"), **(metadata or {})}}
        made.append({name: value for name, value in changed.items() if name not in remove})
    return response(answer, convertedObjects=made)


def http(status: int, body: bytes, content_type: str = "application/json") -> bytes:
    head = f"HTTP/1.1 {status} Any\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


async def test_answers_that_are_no_conversion_are_refused(converter: Converter) -> None:
    kind, ask = converter.kind, converter.ask
    await kind.create("a", spec={"replicas": 5})
    named = f"conversion webhook for {kind.group}/v1, Kind=Thing"
    review = "apiextensions.k8s.io/v1, Kind=ConversionReview"
    scheme = 'in scheme "pkg/runtime/scheme.go:111"'
    decoding = "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct"
    answers: list[tuple[object, str]] = [
        (lambda _: response(_, result=NO_WAY), f"{named} failed: no way"),
        (
            lambda _: response(_, result={"status": "Failure"}),
            f"{named} failed: response.result.status was 'Failure', not 'Success'",
        ),
        (lambda _: response(_, result=None), f"{named} failed: response.result.status was '', not 'Success'"),
        (lambda _: response(_, uid="wrong"), f'{named} failed: expected response.uid="UID", got "wrong"'),
        (lambda _: {**_, "response": None}, f"{named} failed: no response provided"),
        (
            lambda _: {**_, "kind": "Other"},
            f'{named} failed: no kind "Other" is registered for version "apiextensions.k8s.io/v1" {scheme}',
        ),
        (
            lambda _: {**_, "apiVersion": "apiextensions.k8s.io/v1beta1"},
            f"{named} failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion",
        ),
        (lambda _: {}, f"{named} failed: expected webhook response of {review}, got /, Kind="),
        (lambda _: response(_, convertedObjects=[]), f"{named} returned 0 objects, expected 1"),
        (
            lambda _: response(_, convertedObjects=items(_, "response", "convertedObjects") * 2),
            f"{named} returned 2 objects, expected 1",
        ),
        (
            lambda _: response(_, convertedObjects="x"),
            f"{named} failed: json: cannot unmarshal string into Go struct field "
            "ConversionResponse.response.convertedObjects of type []runtime.RawExtension",
        ),
        (
            lambda _: of_objects(_, apiVersion="x/v3"),
            f"{named} returned invalid object at index 0: invalid groupVersion (expected {kind.group}/v1beta1, "
            "received x/v3)",
        ),
        (
            lambda _: of_objects(_, kind="Foo"),
            f"{named} returned invalid object at index 0: invalid kind (expected Thing, received Foo)",
        ),
        (
            lambda _: of_objects(_, metadata={"name": "b"}),
            f"{named} returned invalid object: must have the same name: a != b",
        ),
        (
            lambda _: of_objects(_, metadata={"namespace": "b"}),
            f"{named} returned invalid object: must have the same namespace: NAMESPACE != b",
        ),
        (
            lambda _: of_objects(_, metadata={"uid": "b"}),
            f"{named} returned invalid object: must have the same UID: UID != b",
        ),
        (lambda _: of_objects(_, "metadata"), f"{named} returned invalid object: must have the same name: a != "),
        (
            lambda _: of_objects(_, metadata={"labels": [1]}),
            f"{named} returned invalid metadata: invalid metadata.labels of type []interface {{}} in converted object",
        ),
        (
            lambda _: of_objects(_, metadata={"labels": {"a": 1}}),
            f"{named} returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
        ),
        (
            lambda _: of_objects(_, metadata={"annotations": {"a b": "c"}}),
            f'{named} returned invalid metadata: metadata.annotation: Invalid value: "a b": {NAME_PART}',
        ),
        (
            lambda _: response(_, convertedObjects=["x"]),
            "json: cannot unmarshal string into Go value of type map[string]interface {}",
        ),
        (lambda _: response(_, convertedObjects=[None]), "unexpected end of JSON input"),
        (lambda _: response(_, convertedObjects=[{}]), "Object 'Kind' is missing in '{}'"),
        (lambda _: http(200, b"[]"), f"{named} failed: {decoding}"),
        (
            lambda _: http(200, b""),
            f"{named} failed: 0-length response with status code: 200 and content type: application/json",
        ),
        (
            lambda _: http(500, b"bang", "text/plain"),
            f'{named} failed: an error on the server ("bang") has prevented the request from succeeding',
        ),
        (
            lambda _: http(404, b"bang", "text/plain"),
            f"{named} failed: the server could not find the requested resource",
        ),
    ]
    stored = mapping((await ask("GET", kind.path("a"))).body, "metadata")
    uid, namespace = text(stored, "uid"), text(stored, "namespace")
    found, expected = [], []
    for answer, message in answers:
        with converter.answering(answer):  # type: ignore[arg-type]
            failed = await ask("GET", kind.path("a", version=BETA))
        asked = text(converter.requests[-1], "uid")
        shown = text(failed.body, "message").partition(" { APIVersion")[0]
        found.append((failed.code, text(failed.body, "reason"), shown.replace(asked, "UID").replace(uid, "UID")))
        expected.append((500, "", message.replace("NAMESPACE", namespace)))
    assert found == expected

    def changed(answer: JSONObject) -> JSONObject:
        metadata: JSONObject = {"labels": {"b": "c"}, "annotations": None, "generation": 7, "finalizers": ["a/b"]}
        return of_objects(answer, metadata=metadata, spec={"size": "text", "unknown": 1}, top=1)

    with converter.answering(changed):
        other = (await ask("GET", kind.path("a", version=BETA))).body
    # Labels and annotations may be changed; what the schema does not have is dropped, and nothing is checked.
    assert (other["spec"], "top" in other) == ({"size": "text"}, False)
    metadata = mapping(other, "metadata")
    assert (metadata["labels"], "annotations" in metadata, metadata["generation"]) == ({"b": "c"}, False, 1)
    assert "finalizers" not in metadata


async def test_what_needs_a_failing_webhook_fails_and_the_rest_does_not(converter: Converter) -> None:
    kind, ask = converter.kind, converter.ask
    await kind.create("a", spec={"replicas": 5})
    await ask("GET", kind.path(version=BETA))
    named = "conversion webhook for {}/{}, Kind=Thing failed: no way"
    reading, writing = ((500, "", named.format(kind.group, of)) for of in ("v1", BETA))
    one = kind.path("a", version=BETA)
    apply: JSONObject = {"apiVersion": f"{kind.group}/{BETA}", "kind": "Thing", "metadata": {"name": "c"}}
    with converter.failing():
        assert (await ask("GET", one)).refusal == reading
        assert (await ask("GET", f"{one}/scale")).refusal == reading
        assert (await ask("DELETE", one)).refusal == reading
        assert (await ask("DELETE", kind.path(version=BETA))).refusal == reading
        assert (await kind.create("b", version=BETA, spec={"size": 1})).refusal == writing
        assert (await ask("PATCH", one, {"spec": {"size": 1}}, MERGE)).refusal == writing
        assert (await ask("PATCH", f"{one}/status", {"status": {"ready": 1}}, MERGE)).refusal == writing
        assert (await ask("PATCH", f"{kind.path('c', version=BETA)}?fieldManager=m", apply, APPLY)).refusal == writing
        assert (await ask("GET", kind.path("none", version=BETA))).code == 404
        assert (await ask("PATCH", kind.path("a"), {"spec": {"replicas": 6}}, MERGE)).code == 200
        assert (await ask("GET", kind.path("a"))).code == 200
        # Changed since it was last converted.
        assert (await ask("GET", kind.path(version=BETA))).refusal == reading
    recovered = await kind.eventually("GET", kind.path(version=BETA), lambda answer: answer.code == 200)
    assert [at(item, "spec", "size") for item in items(recovered.body, "items")] == [6]

    def back(answer: JSONObject) -> JSONObject:
        desired = text(items(answer, "response", "convertedObjects")[0], "apiVersion")
        return response(answer, result=NO_WAY) if desired.endswith(BETA) else answer

    with converter.answering(back):
        assert (await kind.create("d", version=BETA, spec={"size": 1})).refusal == reading
    # What could not be shown is stored.
    assert (await ask("GET", kind.path("d"))).body["spec"] == {"replicas": 1, "mode": "of-size"}
    with converter.failing():
        assert (await ask("DELETE", kind.path("a"))).code == 200
        assert (await ask("DELETE", f"{DEFINITIONS}/{kind.name}")).code == 200
        await kind.eventually("GET", f"{DEFINITIONS}/{kind.name}", lambda answer: answer.code == 404)


async def test_a_list_of_a_revision_that_comes_meanwhile_is_converted(converter: Converter) -> None:
    kind = converter.kind
    created = await kind.create("a", spec={"replicas": 1})
    revision = int(text(created.body, "metadata", "resourceVersion"))
    future = f"{kind.path(version=BETA)}?resourceVersion={revision + 3}"

    async def write() -> None:
        for name in ("b", "c", "d"):
            await kind.create(name, spec={"replicas": 2})

    # A slow machine may let it wait in vain at first.
    listed, _ = await asyncio.gather(kind.eventually("GET", future, lambda answer: answer.code != 504), write())
    assert listed.code == 200, listed.body
    assert at(items(listed.body, "items")[0], "spec", "size") == 1


async def test_the_events_of_a_watch_are_converted_and_wait_for_the_webhook(
    converter: Converter, client: Client
) -> None:
    kind, ask = converter.kind, converter.ask
    await kind.create("a", spec={"replicas": 1})
    things = Dynamic.of(f"{kind.group}/{BETA}", "Thing", plural="things", namespaced=True)
    seen: list[tuple[str, JSONValue]] = []
    async with client.watch(things, initial_events=True) as watch:
        events = aiter(watch)
        while not (event := await anext(events)).ends_initial_list:
            seen.append((event.type, event.object.get("spec", "size")))
        with converter.failing():
            await ask("PATCH", kind.path("a"), {"spec": {"replicas": 2}}, MERGE)
            asked = len(converter.requests)
            async with asyncio.timeout(60):
                while len(converter.requests) < asked + 2:
                    await asyncio.sleep(0.01)
        held = await next_change(events)
        await ask("PATCH", kind.path("a", version=BETA), {"spec": {"size": 3}}, MERGE)
        await ask("DELETE", kind.path("a"))
        for event in (held, await next_change(events), await next_change(events)):
            assert event.object.api_version == f"{kind.group}/{BETA}"
            seen.append((event.type, event.object.get("spec", "size")))
    assert seen == [("ADDED", 1), ("MODIFIED", 2), ("MODIFIED", 3), ("DELETED", 3)]


async def next_change(events: AsyncIterator[WatchEvent[Dynamic]]) -> WatchEvent[Dynamic]:
    """The next event that is no bookmark: these come when the server likes."""
    async for event in events:
        if event.type != "BOOKMARK":
            return event
    raise AssertionError("the watch has ended")


async def test_a_change_of_the_definition_takes_effect(converter: Converter) -> None:
    kind, ask = converter.kind, converter.ask
    await kind.create("a", spec={"replicas": 1})
    await kind.create("b", spec={"replicas": 1}, metadata={"finalizers": ["example.com/kept"]})
    await kind.create("c", spec={"replicas": 1})
    switched = await kind.change(served_version("v1", storage=False), served_version(BETA, storage=True))
    assert at(switched.body, "status", "storedVersions") == ["v1", BETA]
    # What is stored in the former version is converted, and stored in the new one with the next write.
    shown = await kind.eventually(
        "GET", kind.path("a", version=BETA), lambda answer: at(answer.body, "spec", "size") == 1
    )

    async def is_switched() -> bool:
        """Whether a write in the new storage version needs no webhook."""
        with converter.failing():
            return (await kind.create("probe", version=BETA, spec={"size": 1})).code == 201

    async with asyncio.timeout(60):
        while not await is_switched():
            await asyncio.sleep(0.05)
    touched = await ask("PATCH", kind.path("a", version=BETA), {"spec": {"size": 1}}, MERGE)
    assert at(touched.body, "metadata", "resourceVersion") != at(shown.body, "metadata", "resourceVersion")
    with converter.failing():
        read = await ask("GET", kind.path("a", version=BETA))
        failed = await ask("GET", kind.path("a"))
        held = [await ask("DELETE", kind.path(name)) for name in ("b", "c")]
    assert read.body["spec"] == {"size": 1, "mode": "of-replicas"}
    assert failed.refusal == (500, "", f"conversion webhook for {kind.group}/{BETA}, Kind=Thing failed: no way")
    # What goes is compared in the form that it would be stored in now.
    former = (500, "", f"conversion webhook for {kind.group}/v1, Kind=Thing failed: no way")
    assert [answer.refusal for answer in held] == [former, former]
    assert text((await ask("DELETE", kind.path("b"))).body, "metadata", "deletionTimestamp")
    with converter.failing():
        marked = await ask("GET", kind.path("b", version=BETA))
    assert marked.body["spec"] == {"size": 1, "mode": "of-replicas"}
    none: JSONObject = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
    assert (await ask("PATCH", f"{DEFINITIONS}/{kind.name}", none, MERGE)).code == 200
    bare: JSONObject = {"mode": "of-replicas"}
    await kind.eventually("GET", kind.path("a"), lambda answer: at(answer.body, "spec") == bare)


async def test_webhooks_and_policies_for_one_version_see_all_in_that_version(
    converter: Converter, webhooks: Webhooks, policies: Policies
) -> None:
    kind, ask = converter.kind, converter.ask
    rules: JSONValue = [rule("things", "things/status", "things/scale", group=kind.group, operations=["*"])]

    def noted(review: JSONObject) -> JSONObject:
        if text(review, "request", "operation") != "CREATE":
            return allowed(review)
        return patched(review, {"op": "add", "path": "/spec/note", "value": "seen"})

    few: JSONObject = {"expression": "object.spec.replicas < 5", "messageExpression": "string(object.spec.replicas)"}
    constraints: JSONObject = {"resourceRules": [rule("things", group=kind.group)]}
    await policies.add("validating", "few", {"validations": [few]}, match=constraints)
    await policies.settled("validating")
    change = webhooks.webhook("/change", noted, rules=rules)
    await webhooks.add("mutating", "a", change, webhooks.webhook("/exact", allowed, rules=rules, matchPolicy="Exact"))
    await webhooks.add("validating", "b", webhooks.webhook("/check", allowed, rules=rules))

    created = await kind.create("a", version=BETA, spec={"size": 2})
    await ask("PATCH", f"{kind.path('a', version=BETA)}/scale", {"spec": {"replicas": 3}}, MERGE)
    await ask("PATCH", f"{kind.path('a', version=BETA)}/status", {"status": {"ready": 1}}, MERGE)
    many = await ask("PATCH", kind.path("a", version=BETA), {"spec": {"size": 8}}, MERGE)
    deleted = await ask("DELETE", kind.path("a", version=BETA))

    assert created.body["spec"] == {"size": 2, "note": "seen", "mode": "of-size"}
    assert many.refusal[:2] == (422, "Invalid")
    assert many.refusal[2].endswith(" denied request: 8")
    assert deleted.code == 200
    # The real server asks again when its cache was behind, and it tries a second time.
    asked = {(text(one, "operation"), text(one, "subResource")): one for one in webhooks.requests("/change")}
    assert list(asked) == [
        ("CREATE", ""),
        ("UPDATE", "scale"),
        ("UPDATE", "status"),
        ("UPDATE", ""),
        ("DELETE", ""),
    ]
    for one in asked.values():
        assert (text(one, "resource", "version"), text(one, "requestResource", "version")) == ("v1", BETA)
    (new, _, status, patch, gone), checked = asked.values(), webhooks.requests("/check")
    version: JSONObject = {"group": kind.group, "version": "v1", "kind": "Thing"}
    assert (new["kind"], new["requestKind"]) == (version, {**version, "version": BETA})
    assert at(new, "object", "spec") == {"replicas": 2, "mode": "of-size"}
    assert at(checked[0], "object", "spec") == {"replicas": 2, "mode": "of-size", "note": "seen"}
    assert (at(status, "object", "status"), at(status, "object", "spec", "replicas")) == ({"ready": 1}, 3)
    assert (at(patch, "oldObject", "spec", "replicas"), at(patch, "object", "spec", "replicas")) == (3, 8)
    assert (gone["object"], at(gone, "oldObject", "spec", "replicas")) == (None, 3)
    assert webhooks.requests("/exact") == []
    with converter.failing():
        failed = await kind.create("b", version=BETA, spec={"size": 2})
    internal = "Internal error occurred: "
    named = f"conversion webhook for {kind.group}/{BETA}, Kind=Thing failed: no way"
    assert failed.refusal == (500, "InternalError", f"{internal}{internal}{named}")
