"""What makes a policy or its binding invalid: each expression that does not compile, and every field around it."""

from __future__ import annotations

from tests.conformance.asking import Ask, AskAs, Grant
from tests.conformance.policies import GROUP, WITHIN, rule

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text

VALIDATING = f"{GROUP}/validatingadmissionpolicies"
MUTATING = f"{GROUP}/mutatingadmissionpolicies"
MATCH: JSONObject = {"resourceRules": [rule()], "namespaceSelector": WITHIN}
KIND: JSONObject = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
REFERENCE: JSONObject = {"name": "a", "parameterNotFoundAction": "Deny"}


async def faults(ask: Ask, path: str, spec: JSONObject) -> list[tuple[str, str]]:
    """Field and message of each cause; nothing for what is accepted."""
    answer = await ask("POST", f"{path}?dryRun=All", {"metadata": {"name": "a"}, "spec": spec})
    assert answer.code in (201, 422), answer.body
    causes = items(mapping(answer.body, "details"), "causes")
    return [(text(cause, "field"), text(cause, "message")) for cause in causes]


def validating(*validations: JSONValue, **more: JSONValue) -> JSONObject:
    return {"matchConstraints": MATCH, "validations": list(validations), **more}


def mutating(*mutations: JSONValue, **more: JSONValue) -> JSONObject:
    return {"matchConstraints": MATCH, "mutations": list(mutations), "reinvocationPolicy": "Never", **more}


def undeclared(source: str, name: str, column: int) -> str:
    shown = source.replace('"', '\\"')
    mark = "." * (column - 1) + "^"
    error = f"ERROR: <input>:1:{column}: undeclared reference to '{name}' (in container '')"
    return f'Invalid value: "{shown}": compilation failed: {error}\n | {source}\n | {mark}'


async def test_expressions_of_a_validating_policy_must_compile(ask: Ask) -> None:
    good: JSONObject = {"expression": "true"}
    cases: list[tuple[JSONObject, list[tuple[str, str]]]] = [
        (validating(good), []),
        (
            validating({"expression": "nope"}),
            [("spec.validations[0].expression", undeclared("nope", "nope", 1))],
        ),
        (
            validating({"expression": "object.x"}),
            [
                (
                    "spec.validations[0].expression",
                    'Invalid value: "object.x": must evaluate to bool but got dyn',
                )
            ],
        ),
        (
            validating({"expression": "params.x == 1"}),
            [("spec.validations[0].expression", undeclared("params.x == 1", "params", 1))],
        ),
        (validating({"expression": "params.x == 1"}, **KIND), []),
        (
            validating({"expression": "variables.x == 1"}),
            [("spec.validations[0].expression", undeclared("variables.x == 1", "variables", 1))],
        ),
        (
            validating(
                {"expression": "variables.x == variables.y"}, variables=[{"name": "x", "expression": "object.x"}]
            ),
            [
                (
                    "spec.validations[0].expression",
                    'Invalid value: "variables.x == variables.y": compilation failed: ERROR: <input>:1:25: undefined '
                    "field 'y'\n | variables.x == variables.y\n | ........................^",
                )
            ],
        ),
        (
            validating(good, variables=[{"name": "in", "expression": "1"}, {"name": " ", "expression": " "}]),
            [
                ("spec.variables[0].name", 'Invalid value: "in": must be a valid CEL identifier'),
                ("spec.variables[1].name", "Required value: name is not specified"),
                ("spec.variables[1].expression", "Required value: expression is not specified"),
            ],
        ),
        (
            validating({"expression": "true", "messageExpression": "authorizer.path('/x').check('get').reason()"}),
            [
                (
                    "spec.validations[0].messageExpression",
                    undeclared("authorizer.path('/x').check('get').reason()", "authorizer", 1),
                )
            ],
        ),
        (
            validating({"expression": " ", "messageExpression": "1", "message": "a\nb", "reason": "Nope"}),
            [
                ("spec.validations[0].expression", "Required value: expression is not specified"),
                (
                    "spec.validations[0].messageExpression",
                    'Invalid value: "1": must evaluate to string but got int',
                ),
                ("spec.validations[0].message", 'Invalid value: "a\\nb": must not contain line breaks'),
                (
                    "spec.validations[0].reason",
                    'Unsupported value: "Nope": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"',
                ),
            ],
        ),
        (
            validating(good, matchConditions=[{"name": "a/b/c", "expression": "variables.x"}]),
            [
                ("spec.matchConditions[0].expression", undeclared("variables.x", "variables", 1)),
                (
                    "spec.matchConditions[0].name",
                    "Invalid value: \"a/b/c\": a valid label key must consist of alphanumeric characters, '-', '_' or "
                    "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
                    "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an "
                    "optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                ),
            ],
        ),
        (
            validating(
                good,
                matchConditions=[
                    {"name": "a", "expression": "1"},
                    {"name": "a", "expression": "true"},
                    {"name": "", "expression": ""},
                ],
            ),
            [
                ("spec.matchConditions[0].expression", 'Invalid value: "1": must evaluate to bool but got int'),
                ("spec.matchConditions[1].name", 'Duplicate value: "a"'),
                ("spec.matchConditions[2].expression", "Required value"),
                ("spec.matchConditions[2].name", "Required value"),
            ],
        ),
        (
            validating(
                auditAnnotations=[{"key": "a", "valueExpression": "1"}, {"key": "a", "valueExpression": "null"}]
            ),
            [
                (
                    "spec.auditAnnotations[0].valueExpression",
                    'Invalid value: "1": must evaluate to one of [string null_type] but got int',
                ),
                ("spec.auditAnnotations[1].key", 'Duplicate value: "a"'),
            ],
        ),
        (
            validating(good, paramKind={"apiVersion": "a/b/c", "kind": "A b"}),
            [
                ("spec.paramKind.apiVersion", 'Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'),
                (
                    "spec.paramKind.kind",
                    'Invalid value: "A b": may have mixed case, but should otherwise match: a DNS-1035 label must '
                    "consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end "
                    "with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
                    "'[a-z]([-a-z0-9]*[a-z0-9])?')",
                ),
            ],
        ),
        (
            {
                "validations": [good],
                "matchConstraints": {
                    "matchPolicy": "Nope",
                    "resourceRules": [
                        {**rule("pods/*", "pods/status"), "operations": ["*", "CREATE"], "resourceNames": ["a", "a"]}
                    ],
                    "excludeResourceRules": [{**rule("*", "pods"), "operations": []}],
                },
            },
            [
                (
                    "spec.matchConstraints.matchPolicy",
                    'Unsupported value: "Nope": supported values: "Equivalent", "Exact"',
                ),
                ("spec.matchConstraints.resourceRules[0].resourceNames[1]", 'Duplicate value: "a"'),
                (
                    "spec.matchConstraints.resourceRules[0].operations",
                    'Invalid value: ["*","CREATE"]: if \'*\' is present, must not specify other operations',
                ),
                (
                    "spec.matchConstraints.resourceRules[0].resources[1]",
                    "Invalid value: \"pods/status\": if 'pods/*' is present, must not specify pods/status",
                ),
                ("spec.matchConstraints.excludeResourceRules[0].operations", "Required value"),
                (
                    "spec.matchConstraints.excludeResourceRules[0].resources",
                    'Invalid value: ["*","pods"]: if \'*\' is present, must not specify other resources without '
                    "subresources",
                ),
            ],
        ),
    ]
    for spec, expected in cases:
        assert await faults(ask, VALIDATING, spec) == expected


async def test_expressions_of_a_mutating_policy_must_make_patches(ask: Ask) -> None:
    def patch(expression: str) -> JSONObject:
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}

    def apply(expression: str) -> JSONObject:
        return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}

    where = "spec.mutations[0].jsonPatch.expression"
    cases: list[tuple[JSONObject, list[tuple[str, str]]]] = [
        (mutating(patch("[JSONPatch{op: 'remove', path: '/a'}]"), apply("Object{a: Object.a{b: 1}}")), []),
        (
            mutating(patch("[]")),
            [(where, 'Invalid value: "[]": must evaluate to list(JSONPatch) but got list(dyn)')],
        ),
        (
            mutating(patch("[JSONPatch{op: 1}]")),
            [
                (
                    where,
                    'Invalid value: "[JSONPatch{op: 1}]": compilation failed: ERROR: <input>:1:14: expected type of '
                    "field 'op' is 'string' but provided type is 'int'\n | [JSONPatch{op: 1}]\n | .............^",
                )
            ],
        ),
        (
            mutating(apply("Other{a: 1}")),
            [("spec.mutations[0].applyConfiguration.expression", undeclared("Other{a: 1}", "Other", 6))],
        ),
        (
            mutating(apply("Object.spec{}")),
            [
                (
                    "spec.mutations[0].applyConfiguration.expression",
                    'Invalid value: "Object.spec{}": must evaluate to Object but got Object.spec',
                )
            ],
        ),
        (
            mutating({"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}}),
            [
                ("spec.mutations[0].jsonPatch", "Required value: must be specified when patchType is JSONPatch"),
                (
                    "spec.mutations[0].applyConfiguration",
                    'Invalid value: "{applyConfiguration}": must not be specified when patchType is JSONPatch',
                ),
            ],
        ),
        (
            mutating({"patchType": "Nope"}, reinvocationPolicy="Nope"),
            [
                (
                    "spec.mutations[0].patchType",
                    'Unsupported value: "Nope": supported values: "ApplyConfiguration", "JSONPatch"',
                ),
                ("spec.reinvocationPolicy", 'Unsupported value: "Nope": supported values: "IfNeeded", "Never"'),
            ],
        ),
        (
            mutating(matchConstraints={"resourceRules": [rule(operations=["DELETE"])]}),
            [
                (
                    "spec.matchConstraints.resourceRules.operations",
                    'Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"',
                ),
                ("spec.mutations", "Required value: mutations must contain at least one item"),
            ],
        ),
        # Patches can be made by mutations only.
        (
            mutating(apply("Object{}"), variables=[{"name": "a", "expression": "Object{}"}]),
            [("spec.variables[0].expression", undeclared("Object{}", "Object", 7))],
        ),
    ]
    for spec, expected in cases:
        assert await faults(ask, MUTATING, spec) == expected


async def test_a_binding_refers_to_parameters_by_name_or_by_labels(ask: Ask) -> None:
    path = f"{GROUP}/mutatingadmissionpolicybindings"
    both: JSONObject = {**REFERENCE, "selector": {}}

    assert await faults(ask, path, {"policyName": "a", "paramRef": REFERENCE}) == []
    assert await faults(ask, path, {"policyName": "a", "paramRef": both}) == [
        ("spec.paramRef.name", "Forbidden: name and selector are mutually exclusive"),
        ("spec.paramRef.selector", "Forbidden: name and selector are mutually exclusive"),
    ]
    assert await faults(ask, path, {"policyName": "a", "paramRef": {}}) == [
        ("spec.paramRef", "Required value: one of name or selector must be specified"),
        ("spec.paramRef.parameterNotFoundAction", "Required value"),
    ]
    assert await faults(ask, path, {"policyName": "a", "matchResources": {"matchPolicy": "Nope"}}) == [
        ("spec.matchResources.matchPolicy", 'Unsupported value: "Nope": supported values: "Equivalent", "Exact"')
    ]


async def test_who_refers_to_parameters_must_be_allowed_to_read_them(
    ask: Ask, ask_as: AskAs, grant: Grant, namespace: str
) -> None:
    await grant(namespace, {"verbs": ["create"], "apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"]})
    as_user = ask_as(namespace)
    policy = validating({"expression": "true"}, **KIND)

    found = await faults(as_user, VALIDATING, policy)
    assert [(field, message.partition("user &{")[0], message.rpartition("} ")[2]) for field, message in found] == [
        (
            "spec.paramKind",
            "Forbidden: ",
            'must have "get" permission on all objects of the referenced paramKind (kind=ConfigMap, apiVersion=v1)',
        )
    ]
    assert await faults(ask, VALIDATING, policy) == []
    assert await faults(as_user, VALIDATING, validating({"expression": "true"})) == []
    binding: JSONObject = {"policyName": f"{namespace}-nope", "paramRef": REFERENCE, "validationActions": ["Deny"]}
    found = await faults(as_user, f"{GROUP}/validatingadmissionpolicybindings", binding)
    assert [field for field, _ in found] == ["spec.paramRef"]
    assert found[0][1].endswith('does not have "get" permission for all groups, versions and resources')
    assert found[0][1].startswith(f"Forbidden: unable to get policy {namespace}-nope to determine minimum required")
