"""MutatingAdmissionPolicy: what patches and configurations make of a write, in which order, and what they refuse."""

from __future__ import annotations

from tests.conformance.asking import Ask
from tests.conformance.policies import CONFIG_MAPS, Policies, causes, config_map, policies, rule

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text

__all__ = ["policies"]

DRY = f"{CONFIG_MAPS}?dryRun=All"
PODS = "/api/v1/namespaces/NAMESPACE/pods?dryRun=All"


def patch(expression: str) -> JSONObject:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def apply(expression: str) -> JSONObject:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def only(*names: JSONValue) -> JSONObject:
    return {"resourceRules": [{**rule(), "resourceNames": list(names)}]}


async def test_a_policy_changes_what_is_created_and_updated(ask: Ask, policies: Policies) -> None:
    annotation = "'/metadata/annotations/' + jsonpatch.escapeKey(variables.key)"
    await policies.add(
        "mutating",
        "patch",
        {
            "variables": [{"name": "key", "expression": "'example.com/a'"}],
            "mutations": [
                patch(
                    "has(object.metadata.annotations) ? [] : "
                    "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'first': 'x'}}]"
                ),
                patch(f"[JSONPatch{{op: 'add', path: {annotation}, value: request.operation}}]"),
                patch("[JSONPatch{op: 'test', path: '/data/a', value: 'x'}, JSONPatch{op: 'remove', path: '/data'}]"),
                patch("[JSONPatch{op: 'add', path: '/data/object', value: has(object.metadata.uid) ? 'uid' : 'none'}]"),
                patch("[JSONPatch{op: 'copy', from: '/data/object', path: '/data/copied'}]"),
            ],
        },
        match=only("patched"),
    )
    sidecar = (
        "Object.spec.containers{name: 'side', image: 'busybox:' + params.metadata.labels.tag, "
        "env: [Object.spec.containers.env{name: 'A', value: 'b'}]}"
    )
    metadata = "metadata: Object.metadata{labels: {'n': string(size(object.spec.containers))}}"
    spec = f"spec: Object.spec{{containers: [{sidecar}], terminationGracePeriodSeconds: 7}}"
    await policies.add(
        "mutating",
        "sidecar",
        {
            # A kind that is the parameter of no other test: the real server stops reading one with its last policy.
            "paramKind": {"apiVersion": "v1", "kind": "PodTemplate"},
            "mutations": [apply(f"Object{{{metadata}, {spec}}}")],
        },
        match={"resourceRules": [rule("pods", operations=["CREATE"])]},
        paramRef={"name": "params", "parameterNotFoundAction": "Deny"},
    )
    template: JSONObject = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    parameter: JSONObject = {"metadata": {"name": "params", "labels": {"tag": "1"}}, "template": template}
    assert (await ask("POST", "/api/v1/namespaces/NAMESPACE/podtemplates", parameter)).code == 201
    await policies.settled("mutating")

    created = await ask("POST", CONFIG_MAPS, config_map("patched", a="b"))
    assert created.code == 201, created.body
    assert created.body["data"] == {"a": "b", "copied": "none", "object": "none"}
    assert at(created.body, "metadata", "annotations") == {"example.com/a": "CREATE", "first": "x"}
    # What a policy sets belongs to no manager.
    managers = items(created.body, "metadata", "managedFields")
    assert [mapping(each, "fieldsV1") for each in managers] == [{"f:data": {".": {}, "f:a": {}}}]
    updated = await ask("PUT", f"{CONFIG_MAPS}/patched", config_map("patched", a="c"))
    assert text(updated.body, "data", "a") == "c"
    assert at(updated.body, "metadata", "annotations") == {"example.com/a": "UPDATE", "first": "x"}

    container: JSONObject = {"name": "main", "image": "busybox"}
    wanted: JSONObject = {"metadata": {"name": "a"}, "spec": {"containers": [container]}}
    pod = await policies.with_parameters(PODS, wanted)
    assert pod.code == 201, pod.body
    assert [text(each, "image") for each in items(pod.body, "spec", "containers")] == ["busybox", "busybox:1"]
    side = mapping(items(pod.body, "spec", "containers")[1])
    # Defaulted, and completed by the other plugins, which run once more.
    assert (side["env"], side["imagePullPolicy"]) == ([{"name": "A", "value": "b"}], "IfNotPresent")
    assert [text(mount, "mountPath") for mount in items(side, "volumeMounts")] == [
        "/var/run/secrets/kubernetes.io/serviceaccount"
    ]
    assert (at(pod.body, "metadata", "labels", "n"), at(pod.body, "spec", "terminationGracePeriodSeconds")) == ("1", 7)


async def test_policies_see_what_others_changed_and_run_again_only_if_needed(ask: Ask, policies: Policies) -> None:
    def append(letter: str) -> JSONObject:
        return apply(f"Object{{data: Object.data{{trace: object.data.trace + '{letter}'}}}}")

    # In any order: each adds its letter once, and once more when it is reinvoked.
    await policies.add("mutating", "a", {"mutations": [append("a")], "reinvocationPolicy": "IfNeeded"}, match=only("t"))
    await policies.add("mutating", "b", {"mutations": [append("b")]}, match=only("t"))
    later: list[JSONValue] = [{"name": "seen", "expression": "object.data.trace.contains('b')"}]
    spec: JSONObject = {"mutations": [append("c")], "matchConditions": later, "reinvocationPolicy": "IfNeeded"}
    await policies.add("mutating", "c", spec, match=only("none"))
    await policies.settled("mutating")

    created = await ask("POST", DRY, config_map("t", trace="-"))

    assert sorted(text(created.body, "data", "trace")) == ["-", "a", "a", "b"]


async def test_what_cannot_be_applied_is_refused_unless_failures_are_ignored(ask: Ask, policies: Policies) -> None:
    broken: list[tuple[str, JSONObject, JSONObject]] = [
        ("key", patch("[JSONPatch{op: 'add', path: '/data/a', value: object.data.nope}]"), {}),
        ("path", patch("[JSONPatch{op: 'add', path: '/nope/a', value: 'x'}]"), {}),
        ("remove", patch("[JSONPatch{op: 'remove', path: '/nope/a'}]"), {}),
        ("field", apply("Object{nope: 'x'}"), {}),
        ("type", apply("Object{metadata: Object.spec{name: 'x'}}"), {}),
        ("ignored", apply("Object{nope: 'x'}"), {"failurePolicy": "Ignore"}),
        ("unknown", patch("[JSONPatch{op: 'add', path: '/nope', value: 'x'}]"), {}),
        ("wrong", patch("[JSONPatch{op: 'add', path: '/data/a', value: 1}]"), {}),
    ]
    for name, mutation, more in broken:
        await policies.add("mutating", name, {"mutations": [mutation], **more}, match=only(name))
    await policies.settled("mutating")

    async def answer(name: str) -> tuple[int, JSONValue, JSONValue]:
        found = await ask("POST", DRY, config_map(name, a="b"))
        return found.code, found.body.get("reason"), found.body.get("message")

    def refused(name: str, why: str) -> tuple[int, JSONValue, JSONValue]:
        return 403, "Invalid", policies.by_mutation(name, why)

    source = "[JSONPatch{op: 'add', path: '/data/a', value: object.data.nope}]"
    assert await answer("key") == refused("key", f"expression '{source}' resulted in error: no such key: nope")
    missing = 'operation does not apply: doc is missing path: "/nope/a": missing value'
    assert await answer("path") == refused("path", f"JSON Patch: add {missing}")
    assert await answer("remove") == refused("remove", f"JSON Patch: remove {missing}")
    why = "error applying patch: failed to convert patch object to typed object: .nope: field not declared in schema"
    assert await answer("field") == refused("field", why)
    found = await ask("POST", DRY, config_map("field", a="b"))
    assert causes(found) == [{"message": policies.by_mutation("field", why)}]
    expected = 'expected "Object.metadata", which matches field name path from root Object type'
    assert await answer("type") == refused("type", f'type mismatch: unexpected type name "Object.spec", {expected}')
    assert (await answer("ignored"))[0] == 201
    strict = 'Internal error occurred: strict decoding error: unknown field "nope"'
    assert await answer("unknown") == (500, "InternalError", strict)
    assert (await answer("wrong"))[:2] == (500, "InternalError")


async def test_what_is_atomic_cannot_be_merged(ask: Ask, policies: Policies) -> None:
    args = "Object.spec.containers{name: 'main', args: ['x']}"
    await policies.add(
        "mutating",
        "a",
        {"mutations": [apply(f"Object{{spec: Object.spec{{containers: [{args}]}}}}")]},
        match={"resourceRules": [rule("pods")]},
    )
    await policies.settled("mutating")

    container: JSONObject = {"name": "main", "image": "busybox"}
    found = await ask("POST", PODS, {"metadata": {"name": "a"}, "spec": {"containers": [container]}})

    why = "may not mutate atomic arrays, maps or structs: .spec.containers[0].args"
    assert found.body["message"] == policies.by_mutation(
        "a", f"error applying patch: invalid ApplyConfiguration: {why}"
    )


async def test_what_the_server_decides_is_not_changed_by_a_policy(ask: Ask, policies: Policies) -> None:
    """A policy must not move an object to a namespace where its user may write nothing."""
    for name, expression in (
        ("namespace", "[JSONPatch{op: 'replace', path: '/metadata/namespace', value: 'default'}]"),
        ("version", "[JSONPatch{op: 'add', path: '/metadata/resourceVersion', value: '1'}]"),
        ("number", "[JSONPatch{op: 'add', path: '/metadata/resourceVersion', value: 'x'}]"),
        ("name", "[JSONPatch{op: 'replace', path: '/metadata/name', value: 'other'}]"),
        ("without", "[JSONPatch{op: 'remove', path: '/metadata/namespace'}]"),
        ("count", "[JSONPatch{op: 'add', path: '/metadata/generation', value: 7}]"),
        ("time", "[JSONPatch{op: 'add', path: '/metadata/creationTimestamp', value: '2020-01-01T00:00:00Z'}]"),
    ):
        condition: JSONObject = {"name": "named", "expression": f"object.metadata.name == '{name}'"}
        sent: JSONObject = {"name": "sent", "expression": "has(object.data)"}
        spec: JSONObject = {"matchConditions": [condition, sent], "mutations": [patch(expression)]}
        await policies.add("mutating", name, spec)
        # Without data, so that its policy does not apply yet.
        if name != "number":
            assert (await ask("POST", CONFIG_MAPS, config_map(name))).code == 201
    await policies.settled("mutating")
    moved = (400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request")

    async def created(name: str) -> tuple[int, str, str]:
        assert (await ask("DELETE", f"{CONFIG_MAPS}/{name}")).code == 200
        return (await ask("POST", CONFIG_MAPS, config_map(name, a="b"))).refusal

    async def updated(name: str) -> tuple[int, str, str]:
        return (await ask("PUT", f"{CONFIG_MAPS}/{name}", config_map(name, a="b"))).refusal

    assert await updated("namespace") == moved
    assert await created("namespace") == moved
    code, reason, message = await updated("version")
    assert (code, reason) == (409, "Conflict")
    assert message.startswith('Operation cannot be fulfilled on configmaps "version": the object has been modified')
    assert await created("version") == (500, "", "resourceVersion should not be set on objects to be created")
    assert (await ask("POST", CONFIG_MAPS, config_map("number", a="b"))).code == 201
    assert await updated("number") == (500, "", 'strconv.ParseUint: parsing "x": invalid syntax')
    immutable = 'metadata.name: Invalid value: "other": field is immutable'
    assert await updated("name") == (422, "Invalid", f'ConfigMap "other" is invalid: {immutable}')
    for name in ("without", "count", "time"):
        before = mapping((await ask("GET", f"{CONFIG_MAPS}/{name}")).body, "metadata")
        after = await ask("PUT", f"{CONFIG_MAPS}/{name}", config_map(name, a="b"))
        assert after.code == 200, after.body
        for field in ("namespace", "uid", "creationTimestamp", "generation"):
            assert at(after.body, "metadata", field) == before.get(field)
