"""What the versions of a custom resource definition make of stored objects."""

from __future__ import annotations

import asyncio

from tests.conformance.custom_kinds import DEFINITIONS, MERGE, SECONDS, Kind, typed, version

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, items, text

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
    assert wrong.refusal == (
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
    assert too_early.refusal == (
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
    # A default has no manager, but a write stores it.
    assert (tested.code, at(tested.body, "metadata", "generation")) == (200, 1)
    assert at(tested.body, "metadata", "resourceVersion") != at(before, "metadata", "resourceVersion")
    # What was pruned is there still.
    await kind.change(version(schema=typed(a=text_, b={"type": "integer"})))
    await kind.eventually("GET", kind.path("a"), lambda answer: answer.body.get("spec") == {"a": "x", "b": 5})


async def test_errors_that_an_update_does_not_touch_are_tolerated(kind: Kind) -> None:
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
    assert same.refusal == (
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
        return [text(item, "metadata", "name") for item in items(answer.body, "items")] or answer.refusal

    assert await selected("spec.color%3Dred") == ["red"]
    assert await selected("spec.color!%3Dred") == ["blue"]
    assert await selected("spec.size%3D1,spec.on%3Dtrue") == ["red"]
    assert await selected("spec.other%3D1") == (400, "BadRequest", "field label not supported: spec.other")


async def test_an_object_of_another_stored_version_is_rewritten_by_a_write_that_changes_nothing(kind: Kind) -> None:
    """How objects are migrated: they are read and written as they are."""
    await kind.define(version(), version("v2", storage=False))
    before = (await kind.create("a", spec={"n": 1})).body
    again = (await kind.ask("PATCH", kind.path("a"), {"spec": {"n": 1}}, MERGE)).body
    await kind.change(version(storage=False), version("v2"))
    async with asyncio.timeout(SECONDS):
        while (migrated := await kind.ask("PATCH", kind.path("a"), {"spec": {"n": 1}}, MERGE)).body == before:
            pass
    settled = await kind.ask("PATCH", kind.path("a", version="v2"), {"spec": {"n": 1}}, MERGE)

    assert again == before
    assert at(migrated.body, "metadata", "generation") == 1
    assert at(settled.body, "metadata", "resourceVersion") == at(migrated.body, "metadata", "resourceVersion")


async def test_objects_of_a_stored_version_that_is_gone_cannot_be_read(kind: Kind) -> None:
    await kind.define(version(), version("v2", storage=False))
    await kind.create("z", spec={"n": 1})
    before = (await kind.create("a", spec={"n": 1})).body
    await kind.change(version(storage=False), version("v2"))
    v2 = kind.path(version="v2")
    async with asyncio.timeout(SECONDS):
        while (await kind.ask("PATCH", kind.path("a"), {"spec": {"n": 1}}, MERGE)).body == before:
            pass  # now it is stored in v2
    await kind.ask("PATCH", f"{DEFINITIONS}/{kind.name}/status", {"status": {"storedVersions": ["v2"]}}, MERGE)
    await kind.change(version("v2"))
    await kind.eventually("GET", f"{v2}/z", lambda answer: answer.code == 500)

    why = f"request to convert CR from an invalid group/version: {kind.group}/v1"
    unlistable = f"storage is (re)initializing: failed to list {kind.group}/v2, Kind=Thing: {why}"
    listed = await kind.eventually("GET", v2, lambda answer: text(answer.body, "message") == unlistable)
    watched = await kind.ask("GET", f"{v2}?watch=1&timeoutSeconds=1")
    answers = {
        "get": await kind.ask("GET", f"{v2}/z"),
        "pages": await kind.ask("GET", f"{v2}?limit=5"),
        "patch": await kind.ask("PATCH", f"{v2}/z", {"metadata": {"labels": {"a": "b"}}}, MERGE),
        "delete": await kind.ask("DELETE", f"{v2}/z"),
    }

    assert {requested: answer.refusal for requested, answer in answers.items()} == dict.fromkeys(
        answers, (500, "", why)
    )
    assert listed.refusal == watched.refusal == (429, "TooManyRequests", unlistable)
    assert [(await kind.ask("GET", f"{v2}/a")).code, (await kind.ask("GET", f"{v2}?limit=1")).code] == [200, 200]
    assert (await kind.create("z", version="v2")).refusal[:2] == (409, "AlreadyExists")

    await kind.ask("DELETE", f"{DEFINITIONS}/{kind.name}")
    terminating = await kind.eventually(
        "GET", f"{DEFINITIONS}/{kind.name}", lambda answer: "could not list" in str(answer.body)
    )
    condition = next(
        one for one in items(terminating.body, "status", "conditions") if text(one, "type") == "Terminating"
    )
    assert text(condition, "reason") == "InstanceDeletionFailed"
    assert text(condition, "message") == f"could not list instances: {unlistable}"
    # Once the version is there again, so are its objects, and can go.
    await kind.change(version(storage=False), version("v2"))
    await kind.eventually("GET", f"{DEFINITIONS}/{kind.name}", lambda answer: answer.code == 404)


async def test_a_rule_that_stored_values_do_not_keep_is_reported_as_a_warning(kind: Kind) -> None:
    """Ratcheting: what an update leaves alone does not stop it, and what is changed does."""
    text_: JSONObject = {"type": "string", "maxLength": 10}
    await kind.define(version(schema=typed(a=text_, b=text_, map={"type": "object", "additionalProperties": text_})))
    await kind.create("a", spec={"a": "bad", "map": {"x": "bad", "y": "fine"}})
    ruled: JSONObject = {**text_, "x-kubernetes-validations": [{"rule": "self != 'bad'", "message": "must be good"}]}
    entries: JSONObject = {"type": "object", "maxProperties": 5, "additionalProperties": ruled}
    await kind.change(version(schema=typed(a=ruled, b=text_, map=entries)))
    async with asyncio.timeout(SECONDS):
        while (await kind.create("probe", spec={"a": "bad"})).code != 422:
            await kind.ask("DELETE", kind.path("probe"))

    other = await kind.ask("PATCH", kind.path("a"), {"spec": {"b": "new"}}, MERGE)
    labels = await kind.ask("PATCH", kind.path("a"), {"metadata": {"labels": {"a": "b"}}}, MERGE)
    refused = await kind.ask("PATCH", kind.path("a"), {"spec": {"map": {"y": "bad"}}}, MERGE)

    warnings = [f'299 - "spec.{path}: Invalid value: \\"bad\\": must be good"' for path in ("a", "map[x]")]
    assert (other.code, sorted(other.warnings)) == (200, warnings)
    assert (labels.code, sorted(labels.warnings)) == (200, warnings)
    assert (refused.code, sorted(refused.warnings)) == (422, warnings)
    assert text(refused.body, "message").endswith('is invalid: spec.map[y]: Invalid value: "bad": must be good')
