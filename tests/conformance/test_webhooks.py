"""Admission webhooks: what they are asked, what their answers do to a write, and what comes of their failures."""

from __future__ import annotations

import asyncio
from base64 import b64encode

from tests.conformance.asking import Ask
from tests.conformance.webhooks import CONFIG_MAPS, Webhooks, allowed, config_map, patched, rule, webhooks

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.certificates import CertificateAuthority
from kubewright.controlplane.embedded.apimachinery.document import at, mapping, text

__all__ = ["webhooks"]

EVERY: JSONObject = {"operations": ["*"]}


def note(value: str) -> JSONObject:
    return {"op": "add", "path": "/metadata/annotations", "value": {"a": value}}


async def test_a_webhook_is_asked_about_every_operation_with_the_object_before_and_after(
    ask: Ask, webhooks: Webhooks
) -> None:
    rules: JSONValue = [{**rule("configmaps"), **EVERY}]
    await webhooks.add("validating", "a", webhooks.webhook("/seen", allowed, rules=rules))

    assert (await ask("POST", f"{CONFIG_MAPS}?fieldManager=me", config_map("a", x="1"))).code == 201
    merge = "application/merge-patch+json"
    assert (await ask("PATCH", f"{CONFIG_MAPS}/a", {"data": {"x": "2"}}, merge)).code == 200
    options: JSONObject = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
    assert (await ask("DELETE", f"{CONFIG_MAPS}/a", options)).code == 200

    created, updated, deleted = webhooks.requests("/seen")
    reference: JSONObject = {"group": "", "version": "v1", "kind": "ConfigMap"}
    resource: JSONObject = {"group": "", "version": "v1", "resource": "configmaps"}
    for request in (created, updated, deleted):
        assert (request["kind"], request["requestKind"]) == (reference, reference)
        assert (request["resource"], request["requestResource"]) == (resource, resource)
        assert (request["name"], request["dryRun"]) == ("a", False)
        assert text(request, "userInfo", "username")
        assert "subResource" not in request
    assert [request["operation"] for request in (created, updated, deleted)] == ["CREATE", "UPDATE", "DELETE"]
    assert (at(created, "object", "data", "x"), created["oldObject"]) == ("1", None)
    assert text(created, "object", "kind") == "ConfigMap"
    assert text(created, "object", "metadata", "uid")
    assert (at(updated, "object", "data", "x"), at(updated, "oldObject", "data", "x")) == ("2", "1")
    assert (deleted["object"], at(deleted, "oldObject", "data", "x")) == (None, "2")
    version: JSONObject = {"apiVersion": "meta.k8s.io/v1"}
    assert created["options"] == {**version, "kind": "CreateOptions", "fieldManager": "me"}
    assert updated["options"] == {**version, "kind": "UpdateOptions"}
    assert mapping(deleted, "options") == {**version, "kind": "DeleteOptions", "propagationPolicy": "Background"}


async def test_patches_are_applied_in_the_order_of_the_configurations_and_are_judged_afterwards(
    ask: Ask, webhooks: Webhooks
) -> None:
    def second(review: JSONObject) -> JSONObject:
        seen = text(review, "request", "object", "metadata", "annotations", "a")
        assert "uid" not in mapping(review, "request", "object", "metadata")
        return patched(review, note(seen + "-second"))

    def reinvoked(review: JSONObject) -> JSONObject:
        seen = text(review, "request", "object", "metadata", "annotations", "a")
        return patched(review, note(seen + "-first"))

    def judged(review: JSONObject) -> JSONObject:
        return allowed(review, warnings=[text(review, "request", "object", "metadata", "annotations", "a")])

    await webhooks.add("mutating", "b", webhooks.webhook("/second", second))
    await webhooks.add("mutating", "a", webhooks.webhook("/first", reinvoked, reinvocationPolicy="IfNeeded"))
    await webhooks.add("validating", "a", webhooks.webhook("/judged", judged))

    created = await ask("POST", CONFIG_MAPS, config_map("a", x="1"))
    assert created.code == 201, created.body
    assert at(created.body, "metadata", "annotations") == {"a": "-first-second-first"}
    assert created.warnings == ['299 - "-first-second-first"']
    stored = await ask("GET", f"{CONFIG_MAPS}/a")
    judged_object = mapping(webhooks.requests("/judged")[0], "object")
    assert text(judged_object, "metadata", "uid") == text(stored.body, "metadata", "uid")
    assert at(stored.body, "metadata", "annotations") == {"a": "-first-second-first"}
    assert [len(webhooks.requests(path)) for path in ("/first", "/second", "/judged")] == [2, 1, 1]


async def test_a_denied_request_gets_the_status_of_the_webhook(ask: Ask, webhooks: Webhooks) -> None:
    statuses: dict[str, JSONValue] = {
        "plain": {},
        "reason": {"reason": "Because"},
        "whole": {
            "code": 422,
            "reason": "Invalid",
            "message": "no",
            "details": {"causes": [{"reason": "FieldValueInvalid", "message": "wrong", "field": "data.x"}]},
        },
        "success": {"code": 200, "message": "fine"},
    }

    def denied(review: JSONObject) -> JSONObject:
        return allowed(review, allowed=False, status=statuses[text(review, "request", "name")], warnings=["careful"])

    await webhooks.add("validating", "a", webhooks.webhook("/deny", denied))

    by = f'admission webhook "{webhooks.name("/deny")}" denied the request'
    expected: dict[str, tuple[int, str, str]] = {
        "plain": (400, "", f"{by} without explanation"),
        "reason": (400, "Because", f"{by}: Because"),
        "whole": (422, "Invalid", f"{by}: no"),
        "success": (400, "", f"{by}: fine"),
    }
    for name, (code, reason, message) in expected.items():
        answer = await ask("POST", CONFIG_MAPS, config_map(name))
        assert (answer.code, text(answer.body, "reason"), text(answer.body, "message")) == (code, reason, message)
        assert answer.body["status"] == "Failure"
        assert at(answer.body, "details") == at(statuses[name], "details")
        assert answer.warnings == ['299 - "careful"']
        assert (await ask("GET", f"{CONFIG_MAPS}/{name}")).code == 404


async def test_a_webhook_that_fails_refuses_the_request_unless_that_is_ignored(ask: Ask, webhooks: Webhooks) -> None:
    answers: dict[str, JSONValue | bytes] = {
        "absent": {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"},
        "uid": {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": {"uid": "x"}},
        "refused": b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nwrong",
        "lost": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "empty": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    }

    def failing(review: JSONObject) -> JSONValue | bytes:
        name = text(review, "request", "name")
        if name == "kind":
            return {**allowed(review), "apiVersion": "admission.k8s.io/v2", "kind": ""}
        if name == "patch":
            return allowed(review, patch=b64encode(b"[]").decode())
        return answers[name]

    await webhooks.add(
        "validating",
        "a",
        webhooks.webhook("/fail", failing, objectSelector={"matchLabels": {"fails": "closed"}}),
        webhooks.webhook("/open", failing, failurePolicy="Ignore"),
    )
    called = f'failed calling webhook "{webhooks.name("/fail")}"'
    expected = {
        "absent": f"{called}: received invalid webhook response: webhook response was absent",
        "refused": f'{called}: failed to call webhook: an error on the server ("wrong") has prevented the request '
        "from succeeding",
        "lost": f"{called}: failed to call webhook: the server could not find the requested resource",
        "patch": f"{called}: received invalid webhook response: validating webhook may not return response.patch",
    }
    for name in (*expected, "uid", "empty"):
        opened = await ask("POST", CONFIG_MAPS, config_map(name))
        assert opened.code == 201, opened.body
        closed: JSONObject = {"metadata": {"name": name, "labels": {"fails": "closed"}}}
        answer = await ask("PUT", f"{CONFIG_MAPS}/{name}", closed)
        assert (answer.code, text(answer.body, "reason")) == (500, "InternalError")
        message = text(answer.body, "message").removeprefix("Internal error occurred: ")
        assert at(answer.body, "details") == {"causes": [{"message": message}]}
        if name in expected:
            assert message == expected[name]
    stored = await ask("GET", f"{CONFIG_MAPS}/uid")
    assert "labels" not in mapping(stored.body, "metadata")


async def test_answers_of_other_types_are_failures_and_no_decisions(ask: Ask, webhooks: Webhooks) -> None:
    """A webhook that a server written in Go cannot understand is not to pass here."""
    response, status = "AdmissionResponse.response", "Status.response.status"
    details = "StatusDetails.response.status.details"
    wrong: list[tuple[JSONObject, str]] = [
        ({"warnings": "x"}, f"string into Go struct field {response}.warnings of type []string"),
        ({"warnings": [1]}, f"number into Go struct field {response}.warnings of type string"),
        (
            {"auditAnnotations": [1]},
            f"array into Go struct field {response}.auditAnnotations of type map[string]string",
        ),
        ({"auditAnnotations": {"a": 1}}, f"number into Go struct field {response}.auditAnnotations of type string"),
        ({"patch": 1}, f"number into Go struct field {response}.patch of type []uint8"),
        ({"patchType": 1}, f"number into Go struct field {response}.patchType of type v1.PatchType"),
        ({"status": "x"}, f"string into Go struct field {response}.status of type v1.Status"),
        ({"status": {"code": "404"}}, f"string into Go struct field {status}.code of type int32"),
        ({"status": {"code": 404.5}}, f"number 404.5 into Go struct field {status}.code of type int32"),
        ({"status": {"message": 1}}, f"number into Go struct field {status}.message of type string"),
        ({"status": {"details": "x"}}, f"string into Go struct field {status}.details of type v1.StatusDetails"),
        (
            {"status": {"details": {"causes": "x"}}},
            f"string into Go struct field {details}.causes of type []v1.StatusCause",
        ),
    ]
    answers: dict[str, JSONObject] = {f"a{index}": fields for index, (fields, _) in enumerate(wrong)}
    answers["break"] = {"patchType": "JSONPatch", "patch": "W1\n0="}
    answers["null"] = {"warnings": [None, "shown"]}
    answers["status"] = {"allowed": False, "status": {"code": 422, "details": {"foo": 1, "retryAfterSeconds": 5}}}
    answers["code"] = {"allowed": False, "status": {"code": 999, "message": "m"}}
    undecodable = {"object": b"{}", "number": b"[1]"}
    answers |= {
        name: {"patchType": "JSONPatch", "patch": b64encode(patch).decode()} for name, patch in undecodable.items()
    }
    answers["kind"] = mapping(patched({}, {"op": "replace", "path": "/apiVersion", "value": "v2"}), "response")

    def answer(review: JSONObject) -> JSONObject:
        given = answers[text(review, "request", "name")]
        return allowed(review, **{name: value for name, value in given.items() if name != "uid"})

    await webhooks.add("mutating", "a", webhooks.webhook("/fail", answer))
    prefix = f'Internal error occurred: failed calling webhook "{webhooks.name("/fail")}": '
    found = {name: await ask("POST", CONFIG_MAPS, config_map(name)) for name in answers}
    messages = [text(found[f"a{index}"].body, "message").removeprefix(prefix) for index in range(len(wrong))]
    assert messages == [f"failed to call webhook: json: cannot unmarshal {message}" for _, message in wrong]
    received = f"{prefix}received undecodable patch in webhook response: json: cannot unmarshal"
    assert [text(found[name].body, "message") for name in ("object", "number", "kind")] == [
        f"{received} object into Go value of type jsonpatch.Patch",
        f"{received} number into Go value of type jsonpatch.Operation",
        'Internal error occurred: no kind "ConfigMap" is registered for version "v2" in scheme '
        '"pkg/runtime/scheme.go:111"',
    ]
    assert {found[name].code for name in (*undecodable, "kind")} == {500}
    assert (found["break"].code, found["null"].code, found["null"].warnings) == (201, 201, ['299 - "shown"'])
    # The embedded server has status lines up to 599.
    assert (found["code"].code in (599, 999), at(found["code"].body, "code")) == (True, 999)
    assert (found["status"].code, at(found["status"].body, "details")) == (422, {"retryAfterSeconds": 5})


async def test_a_webhook_that_cannot_be_reached_is_named_with_the_reason(ask: Ask, webhooks: Webhooks) -> None:
    def only(value: str) -> JSONObject:
        return {"matchLabels": {"only": value}}

    other = webhooks.bundle(CertificateAuthority())
    url = f"https://127.0.0.1:{webhooks.port}"
    missing: JSONObject = {"name": "missing", "namespace": "NAMESPACE", "path": "/x", "port": 8443}
    await webhooks.add(
        "validating",
        "a",
        webhooks.webhook(
            "/closed", allowed, objectSelector=only("closed"), clientConfig={"url": "https://127.0.0.1:1/x"}
        ),
        webhooks.webhook(
            "/other", allowed, objectSelector=only("other"), clientConfig={"url": f"{url}/other", "caBundle": other}
        ),
        webhooks.webhook(
            "/service", allowed, objectSelector=only("service"), clientConfig={"service": missing}, timeoutSeconds=3
        ),
        webhooks.webhook("/slow", lambda review: None, objectSelector=only("slow"), timeoutSeconds=1),
    )
    reasons = {
        "closed": 'Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused',
        "other": f'Post "{url}/other?timeout=10s": tls: failed to verify certificate: x509: certificate signed by '
        "unknown authority",
        "service": 'Post "https://missing.NAMESPACE.svc:8443/x?timeout=3s": service "missing" not found',
        "slow": f'Post "{url}/slow?timeout=1s": context deadline exceeded',
    }
    for name, reason in reasons.items():
        answer = await ask("POST", CONFIG_MAPS, {"metadata": {"name": name, "labels": {"only": name}}})
        assert answer.code == 500, name
        message = text(answer.body, "message")
        expected = f'failed calling webhook "{webhooks.name(f"/{name}")}": failed to call webhook: {reason}'
        if name != "service":
            # Go adds a guess about authorities of the same name.
            assert message.partition(" (possibly")[0] == f"Internal error occurred: {expected}"
        else:
            assert message.endswith('.svc:8443/x?timeout=3s": service "missing" not found')


async def test_conditions_dry_runs_and_collections_decide_whether_a_webhook_is_called(
    ask: Ask, webhooks: Webhooks
) -> None:
    def guarded(review: JSONObject) -> JSONObject:
        return allowed(review, allowed=text(review, "request", "oldObject", "metadata", "name") != "b")

    await webhooks.add(
        "validating",
        "a",
        webhooks.webhook(
            "/condition",
            allowed,
            matchConditions=[{"name": "some", "expression": "object.metadata.name.startsWith('some')"}],
        ),
        webhooks.webhook(
            "/error",
            allowed,
            matchConditions=[{"name": "wrong", "expression": "object.data.missing == 'x'"}],
            objectSelector={"matchLabels": {"errs": "true"}},
        ),
        webhooks.webhook("/guard", guarded, rules=[rule(operations=["DELETE"])]),
        webhooks.webhook(
            "/effects",
            allowed,
            sideEffects="NoneOnDryRun",
            objectSelector={"matchLabels": {"effects": "true"}},
        ),
    )
    assert (await ask("POST", CONFIG_MAPS, config_map("other"))).code == 201
    assert (await ask("POST", f"{CONFIG_MAPS}?dryRun=All", config_map("some"))).code == 201
    generated: JSONObject = {"metadata": {"generateName": "some-", "labels": {"effects": "true"}}}
    assert (await ask("POST", f"{CONFIG_MAPS}?dryRun=All", generated)).code == 201
    plain, prefixed = (text(each, "name") for each in webhooks.requests("/condition"))
    assert plain == "some"
    assert prefixed.startswith("some-")
    assert [each["dryRun"] for each in webhooks.requests("/effects")] == [True]

    answer = await ask("POST", CONFIG_MAPS, {"metadata": {"name": "e", "labels": {"errs": "true"}}})
    assert (answer.code, text(answer.body, "reason")) == (403, "Forbidden")
    assert text(answer.body, "message").startswith('configmaps "e" is forbidden: ')
    assert webhooks.requests("/error") == []

    for name in ("a", "b", "c"):
        labelled: JSONObject = {"metadata": {"name": name, "labels": {"of": "collection"}}}
        assert (await ask("POST", CONFIG_MAPS, labelled)).code == 201
    collection = f"{CONFIG_MAPS}?labelSelector=of%3Dcollection"
    assert (await ask("DELETE", collection)).code == 400
    assert (await ask("GET", f"{CONFIG_MAPS}/a")).code == 404
    assert (await ask("GET", f"{CONFIG_MAPS}/b")).code == 200


async def test_patches_that_do_not_apply_are_internal_errors(ask: Ask, webhooks: Webhooks) -> None:
    patches: dict[str, JSONValue] = {
        "missing": {"op": "remove", "path": "/data/missing"},
        "type": {"op": "add", "path": "/data", "value": {"x": 1}},
        "unknown": {"op": "add", "path": "/unknown", "value": 1},
        "default": {"op": "test", "path": "/data/x", "value": "1"},
    }
    await webhooks.add(
        "mutating",
        "a",
        webhooks.webhook("/patch", lambda review: patched(review, patches[text(review, "request", "name")])),
    )
    answers = {name: await ask("POST", CONFIG_MAPS, config_map(name, x="1")) for name in patches}
    assert {name: answer.code for name, answer in answers.items()} == {
        "missing": 500,
        "type": 500,
        "unknown": 201,
        "default": 201,
    }
    assert text(answers["missing"].body, "message").startswith("Internal error occurred: ")
    assert "unknown" not in answers["unknown"].body
    assert text(answers["type"].body, "reason") == "InternalError"


async def test_new_objects_have_no_identity_before_they_are_validated(ask: Ask, webhooks: Webhooks) -> None:
    def renamed(review: JSONObject) -> JSONObject:
        if at(review, "request", "object", "metadata", "labels", "named"):
            return patched(review, {"op": "add", "path": "/metadata/name", "value": "by-webhook"})
        return allowed(review, auditAnnotations={"seen": "yes"})

    await webhooks.add("mutating", "a", webhooks.webhook("/change", renamed))
    await webhooks.add("validating", "b", webhooks.webhook("/check", allowed))
    generated = await ask("POST", CONFIG_MAPS, {"metadata": {"generateName": "gen-"}})
    named = await ask("POST", CONFIG_MAPS, {"metadata": {"generateName": "gen-", "labels": {"named": "yes"}}})

    first, _ = webhooks.requests("/change")
    checked, _ = webhooks.requests("/check")
    assert "name" not in first
    assert mapping(first, "object", "metadata").keys().isdisjoint(("name", "uid", "creationTimestamp"))
    assert checked["name"] == at(checked, "object", "metadata", "name") == at(generated.body, "metadata", "name")
    assert text(checked, "object", "metadata", "uid")
    assert at(named.body, "metadata", "name") == "by-webhook"


async def test_what_is_sent_to_subresources_is_seen_and_changed(ask: Ask, webhooks: Webhooks) -> None:
    pods, accounts = "/api/v1/namespaces/NAMESPACE/pods", "/api/v1/namespaces/NAMESPACE/serviceaccounts"
    sets = "/apis/apps/v1/namespaces/NAMESPACE/replicasets"
    spec: JSONObject = {"containers": [{"name": "c", "image": "i"}]}
    labels: JSONObject = {"app": "a"}
    template: JSONObject = {"metadata": {"labels": labels}, "spec": spec}
    replicas: JSONObject = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    assert (await ask("POST", accounts, {"metadata": {"name": "own"}})).code == 201
    pod: JSONObject = {"metadata": {"name": "p"}, "spec": {**spec, "serviceAccountName": "own"}}
    assert (await ask("POST", pods, pod)).code == 201
    assert (await ask("POST", sets, {"metadata": {"name": "s"}, "spec": replicas})).code == 201

    def changed(review: JSONObject) -> JSONObject:
        match text(review, "request", "subResource"):
            case "token":
                return patched(review, {"op": "replace", "path": "/spec/expirationSeconds", "value": 1234})
            case "exec":
                return patched(review, {"op": "add", "path": "/container", "value": "other"})
            case "scale":
                return patched(review, {"op": "add", "path": "/spec/replicas", "value": 3})
        return allowed(review)

    def judged(review: JSONObject) -> JSONObject:
        is_refused = text(review, "request", "subResource") == "eviction"
        return allowed(review, allowed=not is_refused, status={"message": "stays", "code": 418})

    rules: JSONValue = [
        {**rule("pods/exec", "pods/eviction", "serviceaccounts/token"), **EVERY},
        {**rule("replicasets/scale", group="apps"), **EVERY},
    ]
    # The first is called for objects that are not created here, so that the others are known to be called, too.
    await webhooks.add(
        "mutating", "a", webhooks.webhook("/none", allowed), webhooks.webhook("/c", changed, rules=rules)
    )
    await webhooks.add(
        "validating", "b", webhooks.webhook("/none", allowed), webhooks.webhook("/j", judged, rules=rules)
    )

    eviction: JSONObject = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    refused = await ask("POST", f"{pods}/p/eviction", eviction)
    executed = await ask("POST", f"{pods}/p/exec?command=ls&command=-l&stdout=true")
    token = await ask("POST", f"{accounts}/own/token", {"spec": {"audiences": ["a"], "expirationSeconds": 700}})
    scaled = await ask("PATCH", f"{sets}/s/scale", {"spec": {"replicas": 1}}, "application/merge-patch+json")

    assert refused.refusal == (418, "", f'admission webhook "{webhooks.name("/j")}" denied the request: stays')
    assert executed.refusal == (400, "BadRequest", "container other is not valid for pod p")
    assert (at(token.body, "spec", "expirationSeconds"), at(token.body, "spec", "audiences")) == (1234, ["a"])
    assert at(scaled.body, "spec", "replicas") == 3
    # The real server asks again when its cache was behind, and it tries a second time.
    seen = {
        text(request, "subResource"): (request["operation"], text(request, "kind", "kind"), request["name"])
        for request in webhooks.requests("/c")
    }
    assert seen == {
        "eviction": ("CREATE", "Eviction", "p"),
        "exec": ("CONNECT", "PodExecOptions", "p"),
        "token": ("CREATE", "TokenRequest", "own"),
        "scale": ("UPDATE", "Scale", "s"),
    }
    asked = {text(request, "subResource"): request for request in webhooks.requests("/j")}
    assert at(asked["eviction"], "object", "metadata", "namespace") == asked["eviction"]["namespace"]
    options = mapping(asked["exec"], "object")
    assert (options["stdout"], options["command"], options["container"]) == (True, ["ls", "-l"], "other")
    assert (asked["exec"]["options"], at(asked["token"], "object", "spec", "expirationSeconds")) == (None, 1234)
    scale = asked["scale"]
    assert (at(scale, "object", "spec", "replicas"), at(scale, "oldObject", "spec")) == (3, {})


async def test_a_webhook_may_be_a_service_and_speak_the_former_version(ask: Ask, webhooks: Webhooks) -> None:
    def only(value: str) -> JSONObject:
        return {"matchLabels": {"only": value}}

    services = "/api/v1/namespaces/NAMESPACE/services"
    for name in ("hooks", "others"):
        external: JSONObject = {"type": "ExternalName", "externalName": "localhost"}
        assert (await ask("POST", services, {"metadata": {"name": name}, "spec": external})).code == 201
    headless: JSONObject = {"clusterIP": "None", "ports": [{"port": 443}]}
    assert (await ask("POST", services, {"metadata": {"name": "headless"}, "spec": headless})).code == 201

    def service(name: str) -> JSONObject:
        reference: JSONObject = {"name": name, "namespace": "NAMESPACE", "path": f"/{name}", "port": webhooks.port}
        return {"service": reference, "caBundle": webhooks.bundle()}

    def former(review: JSONObject) -> JSONValue:
        match text(review, "request", "name"):
            case "newer":
                return allowed(review)
            case "another":
                return {**allowed(review), "kind": "Other", "apiVersion": "admission.k8s.io/v1beta1"}
        patch = b64encode(b'[{"op": "add", "path": "/data", "value": {"former": "yes"}}]').decode()
        return {"response": {"uid": "any", "allowed": True, "patch": patch}}

    beta: JSONValue = ["v1beta1"]
    await webhooks.add(
        "mutating",
        "a",
        webhooks.webhook("/former", former, objectSelector=only("former"), admissionReviewVersions=beta),
    )
    await webhooks.add(
        "validating",
        "b",
        *(
            webhooks.webhook(f"/{name}", allowed, objectSelector=only(name), clientConfig=service(name))
            for name in ("hooks", "others", "headless")
        ),
        webhooks.webhook(
            "/local",
            allowed,
            objectSelector=only("local"),
            clientConfig={"url": f"https://localhost:{webhooks.port}/local", "caBundle": webhooks.bundle()},
        ),
    )

    async def create(name: str, label: str) -> tuple[int, str]:
        answer = await ask("POST", CONFIG_MAPS, {"metadata": {"name": name, "labels": {"only": label}}})
        message = text(answer.body, "message").partition(": failed to call webhook: ")[2]
        return answer.code, message.partition('": ')[2] if message.startswith("Post") else message

    async with asyncio.timeout(60):
        # The server sees a new Service in its own time.
        while (await create("a", "hooks"))[0] != 201:
            await asyncio.sleep(0.05)
    namespace = at((await ask("GET", f"{CONFIG_MAPS}/a")).body, "metadata", "namespace")
    valid = f"tls: failed to verify certificate: x509: certificate is valid for hooks.{namespace}.svc, not "
    assert await create("b", "others") == (500, f"{valid}others.{namespace}.svc")
    assert await create("b", "local") == (500, f"{valid}localhost")
    assert await create("b", "headless") == (500, 'cannot route to service with ClusterIP "None"')
    assert [text(request, "name") for request in webhooks.requests("/hooks")] == ["a"]

    assert await create("c", "former") == (201, "")
    converting = "converting (v1.AdmissionReview) to (v1beta1.AdmissionReview): unknown conversion"
    assert await create("newer", "former") == (500, converting)
    kind = 'no kind "Other" is registered for version "admission.k8s.io/v1beta1" in scheme "pkg/runtime/scheme.go:111"'
    assert await create("another", "former") == (500, kind)
    assert at((await ask("GET", f"{CONFIG_MAPS}/c")).body, "data") == {"former": "yes"}
    assert {text(review, "apiVersion") for review in webhooks.reviews if review["path"] == "/former"} == {
        "admission.k8s.io/v1beta1"
    }
