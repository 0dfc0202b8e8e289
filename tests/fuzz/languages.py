"""Texts of the small languages that the server reads: CEL, JSONPath, selectors, schemas."""

from __future__ import annotations

from random import Random

from tests.fuzz import values

from kubewright.api.markers import JSONObject, JSONValue

_ATOMS = (
    "self",
    "self.spec",
    "self.spec.a",
    "oldSelf",
    "x",
    "1",
    "1u",
    "-1",
    "1.5",
    "9" * 5000,
    "9" * 5000 + "u",
    "0x" + "f" * 5000,
    "1e400",
    "'a'",
    "''",
    "b'\\xff'",
    "'" + "a" * 2000 + "'",
    "'9" + "9" * 5000 + "'",
    "true",
    "null",
    "[]",
    "[1, 2]",
    "{}",
    "{'a': 1}",
    "duration('1h')",
    "timestamp('0001-01-01T00:00:00Z')",
    "quantity('1Gi')",
    "type(self)",
    "optional.none()",
)
_FORMS = (
    "{0} + {1}",
    "{0} * {1}",
    "{0} / {1}",
    "{0} % {1}",
    "{0} == {1}",
    "{0} < {1}",
    "{0} in {1}",
    "{0} && {1}",
    "{0} ? {1} : {0}",
    "!{0}",
    "-{0}",
    "({0})",
    "{0}[{1}]",
    "{0}.a",
    "{0}[?{1}]",
    "has({0}.a)",
    "size({0})",
    "int({0})",
    "uint({0})",
    "double({0})",
    "string({0})",
    "duration({0})",
    "timestamp({0})",
    "quantity({0})",
    "isQuantity({0})",
    "semver({0})",
    "url({0})",
    "ip({0})",
    "cidr({0})",
    "dyn({0})",
    "{0}.matches({1})",
    "{0}.startsWith({1})",
    "{0}.split({1})",
    "{0}.replace({1}, {0})",
    "{0}.substring({1})",
    "{0}.format([{1}])",
    "'%.99999999f'.format([{0}])",
    "{0}.all(x, {1})",
    "{0}.exists(x, {1})",
    "{0}.map(x, {1})",
    "{0}.filter(x, {1})",
    "{0}.exists_one(x, {1})",
    "{0}.sum()",
    "{0}.max()",
    "{0}.isSorted()",
    "{0}.indexOf({1})",
    "{0}.find({1})",
    "{0}.getHours()",
    "{0}.orValue({1})",
    "sets.contains({0}, {1})",
    "{{{0}: {1}}}",
    "[{0}, {1}]",
    "a.b.C{{d: {0}}}",
)
_STEPS = (
    ".a",
    ".spec",
    ".status.replicas",
    "..a",
    "..",
    "[0]",
    "[-1]",
    "[*]",
    ".*",
    "[0:9]",
    "[::0]",
    "['a']",
    "['a','b']",
    "[?(@.a==1)]",
    "[?(@.a)]",
    "[?(@..a..a>'x')]",
    "[" + "9" * 5000 + "]",
    "[",
    "]",
    "{",
    "}",
    "$",
    "@",
    '"',
    "\\",
    "\\.",
)
_SELECTORS = (
    "a",
    "!a",
    "a=b",
    "a!=b",
    "a==b",
    "a in (b,c)",
    "a notin (b)",
    "a>1",
    "a<" + "9" * 5000,
    "metadata.name=a",
)
_TYPES = ("object", "object", "string", "integer", "number", "boolean", "array", "", "x")
_FORMATS = ("duration", "date-time", "date", "ipv4", "cidr", "uri", "byte", "int64", "uuid", "email", "x", "password")
_PATTERNS = ("^a+$", "(a+)+$", "(?i)x", "[[:alpha:]]", "\\p{Greek}", "(", "a{1000}", "(?P<n>a)", "\\Q", "a{9999}", "[")


def expression(random: Random, depth: int = 3) -> str:
    """A CEL expression, or what is left of one."""
    if depth == 0 or random.random() < 0.2:
        return random.choice(_ATOMS)
    made = random.choice(_FORMS).format(expression(random, depth - 1), expression(random, depth - 1))
    if random.random() < 0.03:
        position = random.randrange(len(made) + 1)
        return made[:position] + random.choice("()[]{}.,:?'\"\\\0é") + made[position:]
    return made


def json_path(random: Random) -> str:
    """A JSONPath."""
    return "".join(random.choice(_STEPS) for _ in range(random.randrange(1, 7)))


def selector(random: Random) -> str:
    """A label or field selector."""
    parts = [random.choice(_SELECTORS) if random.random() < 0.8 else values.text(random) for _ in range(3)]
    return ",".join(parts[: random.randrange(4)])


def schema(random: Random, depth: int = 3) -> JSONObject:
    """A structural schema, or nearly one."""
    made: JSONObject = {"type": random.choice(_TYPES[:2] if depth == 3 else _TYPES)}
    if made["type"] == "object" and depth:
        made["properties"] = {name: schema(random, depth - 1) for name in ("a", "b", "spec")[: random.randrange(4)]}
    if made["type"] == "array" and depth:
        made["items"] = schema(random, depth - 1)
    options: JSONObject = {
        "default": values.value(random),
        "enum": [values.value(random) for _ in range(2)],
        "format": random.choice(_FORMATS),
        "pattern": random.choice(_PATTERNS),
        "nullable": True,
        "maximum": random.choice(values.NUMBERS),
        "maxLength": random.choice(values.NUMBERS),
        "maxItems": random.choice(values.NUMBERS),
        "multipleOf": random.choice(values.NUMBERS),
        "required": ["a", values.text(random)],
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-int-or-string": True,
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-list-type": random.choice(("map", "set", "atomic", "x")),
        "x-kubernetes-list-map-keys": ["a"],
        "x-kubernetes-validations": [
            {"rule": expression(random), "messageExpression": expression(random, 1), "fieldPath": json_path(random)}
        ],
        "additionalProperties": {"type": "string"},
        "anyOf": [{"required": ["a"]}],
        "not": {"enum": [1]},
        values.text(random): values.value(random),
    }
    for name in random.sample(sorted(options), random.choice((0, 1, 1, 2))):
        made[name] = options[name]
    return made


def definition(random: Random, number: int) -> JSONObject:
    """A CustomResourceDefinition."""
    plural, group = f"fuzzes{number}", "fuzz.example.com"
    columns: list[JSONValue] = [
        {"name": "A", "type": random.choice(("string", "integer", "date", "x")), "jsonPath": json_path(random)}
        for _ in range(random.randrange(3))
    ]
    version: JSONObject = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema(random)},
        "additionalPrinterColumns": columns,
    }
    if random.random() < 0.3:
        version["subresources"] = {
            "status": {},
            "scale": {"specReplicasPath": json_path(random), "statusReplicasPath": ".status.replicas"},
        }
    if random.random() < 0.2:
        version["selectableFields"] = [{"jsonPath": json_path(random)}]
    made: JSONObject = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": f"Fuzz{number}"},
            "versions": [version],
        },
    }
    return made
