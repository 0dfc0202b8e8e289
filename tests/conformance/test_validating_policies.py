"""ValidatingAdmissionPolicy: which requests it judges, what it sees of them, and how it refuses and warns."""

from __future__ import annotations

from tests.conformance.asking import Answer, Ask, AskAs, Grant
from tests.conformance.policies import CONFIG_MAPS, Policies, causes, config_map, policies, rule

from kubewright.api.markers import JSONObject, JSONValue

__all__ = ["policies"]

DRY = f"{CONFIG_MAPS}?dryRun=All"


def check(expression: str, **more: JSONValue) -> JSONObject:
    return {"expression": expression, **more}


def named(name: str, otherwise: str) -> str:
    """Fails for the configmap of this name unless the rest holds."""
    return f"object.metadata.name != '{name}' || ({otherwise})"


def heading(answer: Answer) -> tuple[int, JSONValue, JSONValue]:
    return answer.code, answer.body.get("reason"), answer.body.get("message")


async def test_a_policy_refuses_with_the_message_and_reason_of_what_failed(ask: Ask, policies: Policies) -> None:
    await policies.add(
        "validating",
        "a",
        {
            "variables": [
                {"name": "data", "expression": "has(object.data) ? object.data : {}"},
                {"name": "size", "expression": "size(variables.data)"},
            ],
            "validations": [
                check(" object.metadata.name != 'plain' "),
                check("!('worded' in variables.data)", message=" say no ", reason="Forbidden"),
                check("!('large' in variables.data)", reason="RequestEntityTooLarge"),
                check(
                    "!('loud' in variables.data)",
                    message="fallback",
                    messageExpression="'loud is ' + variables.data.loud + ' of ' + string(variables.size)",
                ),
                check(
                    "!('broken' in variables.data)", message="fallback", messageExpression="string(variables.data.nope)"
                ),
                check("!('lines' in variables.data)", messageExpression="string(variables.data.lines)"),
                check("!('error' in variables.data) || variables.data.nope == 'x'"),
                check("!('null' in variables.data) || oldObject.metadata.name == 'x'"),
                check("!('deep' in variables.data) || variables.data.all(k, k.size() > size(variables.data.nope))"),
            ],
        },
    )
    await policies.settled("validating")

    async def answer(name: str, **data: JSONValue) -> tuple[int, JSONValue, JSONValue]:
        return heading(await ask("POST", DRY, config_map(name, **data)))

    assert (await ask("POST", DRY, config_map("a", fine="1"))).code == 201
    plain = await ask("POST", DRY, config_map("plain"))
    why = policies.refused("a", "failed expression: object.metadata.name != 'plain'", name="plain")
    assert heading(plain) == (422, "Invalid", why)
    assert plain.body["details"] == {
        "name": "plain",
        "kind": "configmaps",
        "causes": [{"message": why.partition("forbidden: ")[2]}],
    }
    assert await answer("a", worded="1") == (403, "Forbidden", policies.refused("a", "say no"))
    failed = "failed expression: !('large' in variables.data)"
    assert await answer("a", large="1") == (413, "RequestEntityTooLarge", policies.refused("a", failed))
    assert await answer("a", loud="2") == (422, "Invalid", policies.refused("a", "loud is 2 of 1"))
    assert await answer("a", broken="1") == (422, "Invalid", policies.refused("a", "fallback"))
    failed = "failed expression: !('lines' in variables.data)"
    assert await answer("a", lines="a\nb") == (422, "Invalid", policies.refused("a", failed))
    error = "expression '!('error' in variables.data) || variables.data.nope == 'x'' resulted in error: "
    assert await answer("a", error="1") == (422, "Invalid", policies.refused("a", f"{error}no such key: nope"))
    error = "expression '!('null' in variables.data) || oldObject.metadata.name == 'x'' resulted in error: "
    assert await answer("a", null="1") == (422, "Invalid", policies.refused("a", f"{error}no such key: metadata"))
    deep = await ask("POST", DRY, config_map("a", deep="1"))
    assert (deep.code, str(deep.body["message"]).endswith("resulted in error: no such key: nope")) == (422, True)


async def test_an_expression_sees_the_request_its_namespace_and_both_objects(
    ask: Ask, policies: Policies, namespace: str
) -> None:
    shown = [
        "request.operation",
        "has(request.name) ? request.name : '-'",
        "request.namespace",
        "request.kind.group + '/' + request.kind.version + '/' + request.kind.kind",
        "request.resource.resource + ' ' + request.requestResource.version",
        "has(request.subResource) ? request.subResource : '-'",
        "string(request.dryRun)",
        "string(has(request.options) ? request.options.kind : '-')",
        "namespaceObject.metadata.name",
        "namespaceObject.metadata.labels['kubernetes.io/metadata.name']",
        "namespaceObject.status.phase",
        "string(object == null ? 'null' : (object.apiVersion + ' ' + object.kind))",
        "string(oldObject == null ? 'null' : oldObject.metadata.name)",
        "object != null && has(object.metadata.uid) ? 'uid' : 'none'",
        "string('system:masters' in request.userInfo.groups)",
    ]
    expression = f"[{', '.join(shown)}].join('|')"
    await policies.add(
        "validating",
        "a",
        {
            "variables": [{"name": "shown", "expression": expression}],
            "validations": [check("false", messageExpression="variables.shown")],
            "matchConditions": [
                {"name": "show", "expression": "(object == null ? oldObject : object).metadata.name.startsWith('show')"}
            ],
        },
        match={"resourceRules": [rule(operations=["*"])]},
        validationActions=["Warn"],
    )
    await policies.settled("validating")

    async def seen(method: str, path: str, body: JSONValue = None) -> list[str]:
        answer = await ask(method, path, body)
        assert answer.code < 300, answer.body
        binding = policies.name("a")
        start = f"299 - \"Validation failed for ValidatingAdmissionPolicy '{binding}' with binding '{binding}': "
        assert [warning[: len(start)] for warning in answer.warnings] == [start]
        return answer.warnings[0][len(start) :].rstrip('"').split("|")

    where = [namespace, "/v1/ConfigMap", "configmaps v1", "-"]
    space = [namespace, namespace, "Active"]
    assert await seen("POST", DRY, config_map("show")) == [
        *("CREATE", "show", *where, "true", "CreateOptions", *space, "v1 ConfigMap", "null", "uid", "true")
    ]
    generated = await seen("POST", DRY, {"metadata": {"generateName": "show"}})
    assert (generated[1][:4], len(generated[1])) == ("show", 9)
    await seen("POST", CONFIG_MAPS, config_map("show"))
    assert await seen("PUT", f"{CONFIG_MAPS}/show", config_map("show", a="1")) == [
        *("UPDATE", "show", *where, "false", "UpdateOptions", *space, "v1 ConfigMap", "show", "uid", "true")
    ]
    assert await seen("DELETE", f"{CONFIG_MAPS}/show") == [
        *("DELETE", "show", *where, "false", "DeleteOptions", *space, "null", "show", "none", "true")
    ]


async def test_an_expression_asks_what_the_user_may_do(
    ask_as: AskAs, ask: Ask, policies: Policies, grant: Grant
) -> None:
    secrets = "authorizer.group('').resource('secrets').namespace('NAMESPACE')"
    account = "authorizer.serviceAccount('NAMESPACE', 'default')"
    await policies.add(
        "validating",
        "a",
        {
            "validations": [
                check(named("a", f"{secrets}.check('get').allowed()"), message="no secrets"),
                check(named("b", "authorizer.requestResource.check('deletecollection').allowed()"), message="request"),
                check(named("c", "authorizer.path('/healthz').check('get').allowed()"), message="path"),
                check(named("d", f"{account}.group('').resource('pods').check('get').allowed()"), message="account"),
                check(named("e", "authorizer.requestResource.check('create').reason() == ''"), message="reason"),
                check(named("f", "authorizer.group('').resource('').check('get').allowed()")),
                check(named("g", "!authorizer.requestResource.check('get').errored()"), message="errored"),
            ]
        },
    )
    user = policies.name("user")
    await grant(
        user,
        {"verbs": ["create"], "apiGroups": [""], "resources": ["configmaps"]},
        {"verbs": ["get"], "nonResourceURLs": ["/healthz"]},
    )
    await policies.settled("validating")
    as_user = ask_as(user)

    async def answers(asking: Ask) -> list[str]:
        found = [await asking("POST", DRY, config_map(name)) for name in "abcdefg"]
        return [str(answer.body.get("message", answer.code)).rpartition("request: ")[2] for answer in found]

    empty = "object.metadata.name != 'f' || (authorizer.group('').resource('').check('get').allowed())"
    error = f"expression '{empty}' resulted in error: resource must not be empty"
    assert await answers(ask) == ["201", "201", "201", "account", "201", error, "201"]
    assert await answers(as_user) == ["no secrets", "request", "201", "account", "reason", error, "201"]


async def test_parameters_are_found_by_name_or_by_labels(ask: Ask, policies: Policies, namespace: str) -> None:
    # A kind that is the parameter of no other test: the real server stops reading one with its last policy.
    kind: JSONObject = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
    limit: JSONObject = {
        **kind,
        "validations": [
            check(
                "params == null || size(object.data) <= int(params.data.limit)",
                messageExpression="params.kind + ' ' + params.metadata.name + ' allows ' + params.data.limit",
            )
        ],
        "matchConditions": [{"name": "limited", "expression": "has(object.data)"}],
    }

    def by(name: str) -> JSONObject:
        return {"resourceRules": [{**rule(), "resourceNames": [name]}]}

    for name, limits in (("p1", "1"), ("p2", "2")):
        made = {"metadata": {"name": name, "labels": {"limit": "yes"}}, "data": {"limit": limits}}
        assert (await ask("POST", CONFIG_MAPS, made)).code == 201
    deny, allow = {"parameterNotFoundAction": "Deny"}, {"parameterNotFoundAction": "Allow"}
    labels: JSONObject = {"matchLabels": {"limit": "yes"}}
    await policies.add("validating", "name", limit, match=by("name"), paramRef={"name": "p1", **deny})
    await policies.add("validating", "last", limit, match=by("last"), paramRef={"name": "p2", **deny})
    await policies.add("validating", "labels", limit, match=by("labels"), paramRef={"selector": labels, **deny})
    await policies.add("validating", "deny", limit, match=by("deny"), paramRef={"name": "nope", **deny})
    await policies.add("validating", "allow", limit, match=by("allow"), paramRef={"name": "nope", **allow})
    await policies.add("validating", "none", limit, match=by("none"))
    ignoring: JSONObject = {**limit, "failurePolicy": "Ignore"}
    await policies.add("validating", "ignore", ignoring, match=by("ignore"), paramRef={"name": "nope", **deny})
    elsewhere: JSONObject = {"name": "p1", "namespace": "kube-public", **deny}
    await policies.add("validating", "far", limit, match=by("far"), paramRef=elsewhere)
    unknown: JSONObject = {**limit, "paramKind": {"apiVersion": "example.com/v1", "kind": "Nothing"}}
    await policies.add("validating", "unknown", unknown, match=by("unknown"), paramRef={"name": "p1", **deny})
    await policies.settled("validating")

    async def message(name: str, **data: JSONValue) -> str:
        answer = await ask("POST", DRY, config_map(name, **data))
        return str(answer.body.get("message", answer.code))

    # All are seen once the last one is.
    assert (await policies.with_parameters(DRY, config_map("last", a="1"))).code == 201
    assert await message("name", a="1") == "201"
    assert await message("name", a="1", b="2") == policies.refused("name", "ConfigMap p1 allows 1", name="name")
    assert await message("labels", a="1", b="2") == policies.refused("labels", "ConfigMap p1 allows 1", name="labels")
    assert await message("labels", a="1") == "201"
    missing = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    assert await message("deny", a="1") == policies.refused("deny", missing, name="deny")
    assert await message("allow", a="1") == "201"
    assert await message("none", a="1") == "201"
    assert await message("ignore", a="1") == "201"
    assert await message("far", a="1") == policies.refused("far", missing, name="far")
    policy = policies.name("unknown")
    why = "failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v1, Kind=Nothing'"
    refusal = f"ValidatingAdmissionPolicy '{policy}' denied request: {why}"
    assert await message("unknown", a="1") == f'configmaps "unknown" is forbidden: {refusal}'
    assert causes(await ask("POST", DRY, config_map("unknown", a="1"))) == [{"message": refusal}]


async def test_rules_selectors_and_conditions_say_which_requests_are_judged(ask: Ask, policies: Policies) -> None:
    no: JSONObject = {"validations": [check("false", message="no")]}
    labelled: JSONObject = {"objectSelector": {"matchLabels": {"judge": "me"}}}
    await policies.add("validating", "object", no, match=labelled)
    exempt: JSONObject = {
        "resourceRules": [{**rule(), "resourceNames": ["b", "c"]}],
        "excludeResourceRules": [{**rule(), "resourceNames": ["c"]}],
    }
    await policies.add("validating", "names", no, match=exempt)
    conditions: list[JSONValue] = [
        {"name": "d", "expression": "object.metadata.name.startsWith('d')"},
        {"name": "missing", "expression": "object.data.match == 'yes'"},
    ]
    await policies.add("validating", "conditions", {**no, "matchConditions": conditions})
    ignoring: JSONObject = {**no, "matchConditions": [conditions[1]], "failurePolicy": "Ignore"}
    await policies.add("validating", "ignored", ignoring, match={"resourceRules": [{**rule(), "resourceNames": ["e"]}]})
    await policies.add(
        "validating", "bound", no, matchResources={"resourceRules": [{**rule(), "resourceNames": ["f"]}]}
    )
    await policies.add(
        "validating", "elsewhere", no, match={"namespaceSelector": {"matchLabels": {"nobody": "has-this"}}}
    )
    await policies.add("validating", "cluster", no, match={"resourceRules": [{**rule(), "scope": "Cluster"}]})
    await policies.settled("validating")

    async def refuser(name: str, labels: JSONValue = None, **data: JSONValue) -> str:
        body = {"metadata": {"name": name, "labels": labels or {}}, "data": data}
        message = str((await ask("POST", DRY, body)).body.get("message", ""))
        return message.partition("Policy '")[2].partition("'")[0].removeprefix(policies.name(""))

    assert await refuser("a") == ""
    assert await refuser("a", {"judge": "me"}) == "object"
    assert [await refuser("b"), await refuser("c")] == ["names", ""]
    assert [await refuser("d", match="yes"), await refuser("d", match="no")] == ["conditions", ""]
    assert [await refuser("e"), await refuser("e", match="yes")] == ["", "ignored"]
    assert await refuser("f") == "bound"
    error = "expression 'object.data.match == 'yes'' resulted in error: no such key: data"
    answer = await ask("POST", DRY, config_map("d"))
    assert heading(answer) == (422, "Invalid", policies.refused("conditions", error, name="d"))


async def test_another_version_of_a_kind_is_judged_in_the_version_of_the_rule(ask: Ask, policies: Policies) -> None:
    scalers = rule("horizontalpodautoscalers", group="autoscaling", version="v1")
    shown = [
        "request.kind.version + ' ' + request.requestKind.version + ' ' + object.apiVersion",
        "string(has(object.spec.targetCPUUtilizationPercentage))",
    ]
    spec: JSONObject = {"validations": [check("false", messageExpression=f"[{', '.join(shown)}].join('|')")]}
    await policies.add("validating", "a", spec, match={"resourceRules": [scalers]})
    exact: JSONObject = {"resourceRules": [scalers], "matchPolicy": "Exact"}
    await policies.add("validating", "b", {"validations": [check("false", message="exact")]}, match=exact)
    await policies.settled("validating")
    body: JSONObject = {
        "metadata": {"name": "a"},
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
                }
            ],
        },
    }
    path = "/apis/autoscaling/{}/namespaces/NAMESPACE/horizontalpodautoscalers?dryRun=All"
    answer = await ask("POST", path.format("v2"), body)

    resource = "horizontalpodautoscalers.autoscaling"
    why = policies.refused("a", "v1 v2 autoscaling/v1|true", resource=resource)
    assert heading(answer) == (422, "Invalid", why)


async def test_endpoints_below_an_object_are_judged_by_what_is_sent_to_them(ask: Ask, policies: Policies) -> None:
    # With the objects as they are named in the messages of refusals.
    shown = (
        "request.operation + ' ' + request.subResource + ' ' + request.kind.kind + ' ' + "
        "(has(object.kind) ? object.kind : '-')"
    )
    spec: JSONObject = {"validations": [check("false", messageExpression=shown)]}
    rules: list[JSONValue] = [
        rule("pods/exec", "pods/attach", "pods/portforward", operations=["CONNECT"]),
        rule("pods/eviction", "pods/binding", "serviceaccounts/token", operations=["CREATE"]),
        rule("pods/status", operations=["UPDATE"]),
        rule("deployments/scale", group="apps", operations=["UPDATE"]),
    ]
    await policies.add("validating", "a", spec, match={"resourceRules": rules})
    await policies.settled("validating")
    pods = "/api/v1/namespaces/NAMESPACE/pods"
    container: JSONObject = {"name": "main", "image": "busybox"}
    assert (await ask("POST", pods, {"metadata": {"name": "a"}, "spec": {"containers": [container]}})).code == 201
    template: JSONObject = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    deployments = "/apis/apps/v1/namespaces/NAMESPACE/deployments"
    deployment: JSONObject = {
        "metadata": {"name": "a"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    assert (await ask("POST", deployments, deployment)).code == 201
    merge = "application/merge-patch+json"

    async def message(method: str, path: str, body: JSONValue = None, content_type: str = "application/json") -> str:
        return str((await ask(method, path, body, content_type)).body["message"])

    def refused(why: str, resource: str = "pods", name: str = "a") -> str:
        return policies.refused("a", why, resource=resource, name=name)

    assert await message("POST", f"{pods}/a/exec?command=ls&stdout=true") == refused(
        "CONNECT exec PodExecOptions PodExecOptions"
    )
    assert await message("POST", f"{pods}/a/attach") == refused("CONNECT attach PodAttachOptions PodAttachOptions")
    assert await message("POST", f"{pods}/a/portforward") == refused(
        "CONNECT portforward PodPortForwardOptions PodPortForwardOptions"
    )
    eviction: JSONObject = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    assert await message("POST", f"{pods}/a/eviction", eviction) == refused("CREATE eviction Eviction Eviction")
    binding: JSONObject = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    assert await message("POST", f"{pods}/a/binding", binding) == refused("CREATE binding Binding Binding")
    tokens = "/api/v1/namespaces/NAMESPACE/serviceaccounts/default/token"
    assert await message("POST", tokens, {"spec": {}}) == refused(
        "CREATE token TokenRequest TokenRequest", "serviceaccounts", "default"
    )
    status: JSONObject = {"status": {"phase": "Running"}}
    assert await message("PATCH", f"{pods}/a/status", status, merge) == refused("UPDATE status Pod Pod")
    scale: JSONObject = {"spec": {"replicas": 2}}
    assert await message("PATCH", f"{deployments}/a/scale", scale, merge) == refused(
        "UPDATE scale Scale Scale", "deployments.apps"
    )


async def test_an_expensive_expression_is_cancelled(ask: Ask, policies: Policies) -> None:
    loops = "lists.range(999).all(a, lists.range(999).all(b, size(lists.range(999)) > 0))"
    await policies.add("validating", "a", {"validations": [check(named("a", loops))]})
    await policies.settled("validating")

    error = f"expression '{named('a', loops)}' resulted in error: operation cancelled: actual cost limit exceeded"
    expected = 422, "Invalid", policies.refused("a", error)
    assert heading(await ask("POST", DRY, config_map("a"))) == expected
