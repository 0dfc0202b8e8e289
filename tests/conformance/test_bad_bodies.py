"""Bodies that no client should send, to both servers at once: the same Status, word for word, and both keep running."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator

import pytest
from tests.conformance.asking import Ask

from kubewright.api.core.v1 import ConfigMap, Namespace
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.client.http.transport import HTTPTransport
from kubewright.controlplane import ControlPlane
from kubewright.testing.namespaces import unique_name

JSON = "application/json"
YAML = "application/yaml"
MERGE = "application/merge-patch+json"
OPERATIONS = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"


class Pair:
    """Both servers, with a namespace of the same name and a ConfigMap `there` in each."""

    def __init__(self, namespace: str, *transports: HTTPTransport) -> None:
        self.namespace = namespace
        self.transports = transports

    async def answers(self, method: str, path: str, content_type: str, body: bytes) -> list[tuple[int, str]]:
        target = path.replace("NAMESPACE", self.namespace)
        headers = [("Content-Type", content_type), ("Accept", JSON)]
        found = []
        for transport in self.transports:
            answer = await transport.request(method, target, headers, body, timeout=30)
            refusal = re.sub(
                "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID", answer.body.decode()
            )
            is_status = answer.headers.get("Content-Type") == JSON
            # Go writes `<` in JSON as an escape, which means the same.
            shown = json.dumps(json.loads(refusal), ensure_ascii=False) if is_status else refusal
            found.append((answer.status, "" if answer.status < 300 else shown))
            assert (await transport.request("GET", "/version", timeout=30)).status == 200
        return found


@pytest.fixture
async def pair(embedded_control_plane: ControlPlane, real_control_plane: ControlPlane) -> AsyncIterator[Pair]:
    namespace = unique_name("bad")
    planes = (embedded_control_plane, real_control_plane)
    for plane in planes:
        async with plane.client() as admin:
            await admin.create(Namespace(metadata=ObjectMeta(name=namespace)))
            there = ConfigMap(metadata=ObjectMeta(name="there", namespace=namespace), data={"x": "1"})
            await admin.create(there)
    pair = Pair(namespace, *(HTTPTransport(plane.url, tls=plane.admin.ssl_context()) for plane in planes))
    yield pair
    for plane, transport in zip(planes, pair.transports, strict=True):
        await transport.aclose()
        async with plane.client() as admin:
            await admin.delete(Namespace, namespace)


ALL = "/api/v1/namespaces/NAMESPACE/configmaps"
ONE = f"{ALL}/there"
HEAD = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new"},'

BODIES = {
    "empty": b"",
    "blank": b"  \n",
    "null": b"null",
    "truncated": b'{"apiVersion":"v1","kind":"ConfigMap","meta',
    "truncated in a value": b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"',
    "no JSON": b"nonsense",
    "a list": b"[]",
    "a string": b'"text"',
    "a number": b"7",
    "two values": b"{} {}",
    "a comma too many": b'{"apiVersion":"v1",}',
    "single quotes": b"{'apiVersion':'v1'}",
    "NaN": HEAD + b'"data":{"a":NaN}}',
    "infinity": HEAD + b'"data":{"a":Infinity}}',
    "not UTF-8": HEAD + b'"data":{"a":"\xff\xfe"}}',
    "not UTF-8 in a name": b'{"metadata":{"name":"a\xff"}}',
    "a byte order mark": b"\xef\xbb\xbf" + HEAD + b'"data":{}}',
    "half a surrogate": HEAD + b'"data":{"a":"\\ud800"}}',
    "a nul": b'{"metadata":{"name":"a\\u0000"}}',
    "a control character": HEAD + b'"data":{"a":"\x01"}}',
    "a bad escape": HEAD + b'"data":{"a":"\\x"}}',
    "a huge number": HEAD + b'"data":{"a":1e999}}',
    "a huge integer": b'{"metadata":{"name":"new","generation":99999999999999999999}}',
    "a fraction": b'{"metadata":{"name":"new","generation":1.5}}',
    "a whole fraction": b'{"metadata":{"name":"new","generation":1.0}}',
    "another kind": b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}',
    "an unknown kind": b'{"apiVersion":"v1","kind":"Nothing"}',
    "another version": b'{"apiVersion":"v9","kind":"ConfigMap"}',
    "another group": b'{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}',
    "a list of them": b'{"apiVersion":"v1","kind":"ConfigMapList","items":[]}',
    "kind of a wrong type": b'{"apiVersion":"v1","kind":7}',
    "data of a wrong type": HEAD + b'"data":"x"}',
    "data of numbers": HEAD + b'"data":{"a":1}}',
    "metadata of a wrong type": b'{"metadata":"x"}',
    "labels of a wrong type": b'{"metadata":{"name":"new","labels":["a"]}}',
    "a name of a wrong type": b'{"metadata":{"name":7}}',
    "a time that is none": b'{"metadata":{"name":"new","creationTimestamp":"yesterday"}}',
    "no name": b'{"metadata":{}}',
    "a bad name": b'{"metadata":{"name":"UPPER_case"}}',
    "a long name": b'{"metadata":{"name":"' + b"a" * 300 + b'"}}',
    "another namespace": b'{"metadata":{"name":"a","namespace":"elsewhere"}}',
    "a revision": b'{"metadata":{"name":"a","resourceVersion":"1"}}',
    "bad base64": b'{"metadata":{"name":"a"},"binaryData":{"a":"%%%"}}',
    "too large": b'{"metadata":{"name":"' + b"a" * (3 << 20) + b'"}}',
    "deep": HEAD + b'"data":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"}",
    "deeper than Go goes": HEAD + b'"data":' + b'{"a":' * 20_000 + b"1" + b"}" * 20_000 + b"}",
    "deep lists": HEAD + b'"data":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "deep and cut": HEAD + b'"data":' + b'{"a":' * 10_000,
}

ALIASES = b"a0: &a0 [x]\n" + b"".join(
    b"a%d: &a%d [%b]\n" % (level, level, b",".join(9 * [b"*a%d" % (level - 1)])) for level in range(1, 9)
)
YAML_HEAD = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\n"

GREEDY = {
    "brackets": b"[" * 25_000,
    "braces": b"{" * 25_000,
    "dashes": b"- " * 25_000,
    "brackets in a later line": YAML_HEAD + b"data: " + b"[" * 25_000,
    "one level too many for JSON": YAML_HEAD + b"data: " + b"[" * 10_000 + b"]" * 10_000,
    "aliases of aliases": YAML_HEAD + ALIASES,
    "many aliases": YAML_HEAD + b"a: &a [" + b"x," * 400 + b"]\nb: [" + b"*a," * 400 + b"]\n",
    "itself": YAML_HEAD + b"a: &a [*a]\n",
}

STRICT = {
    "a field twice": b'{"metadata":{"name":"a","name":"b"},"data":{"x":"1"}}',
    "a key twice": HEAD + b'"data":{"x":"1","x":"2"}}',
    "unknown fields": HEAD + b'"more":1,"data":{}}',
    "another spelling": b'{"Metadata":{"name":"new"}}',
    "first unknown, then twice": HEAD + b'"more":1,"data":{"a":"1","a":"2"}}',
    "both, and again": HEAD
    + b'"z":1,"data":{"a":"1","a":"2","a":"3"},"b":{"c":1,"c":2},"z":2,"immutable":1,"immutable":2}',
    "both, of the right types": HEAD + b'"z":1,"data":{"a":"1","a":"2"},"b":{"c":1,"c":2},"z":2,"data":{"q":"1"}}',
    "in metadata": b'{"metadata":{"name":"x","foo":1,"name":"y","labels":{"a":"b","a":"c"}},"bar":{"foo":1}}',
    "unknown and of a wrong type": HEAD + b'"more":1,"data":{"a":1}}',
    "twice and of a wrong type": HEAD + b'"data":{"a":1,"a":1}}',
    "very many": HEAD + b",".join(b'"u%d":1' % number for number in range(120)) + b"}",
}

STRICT_DOCUMENTS = {
    "keys twice": b"metadata:\n  name: x\n  labels:\n    a: b\n    a: c\ndata:\n  q: x\nmore: 1\ndata:\n  q: x\n",
    "unknown in order": b"z: 1\nb: 1\nmetadata: {name: x, more: 1}\n",
    "of wrong types": b"metadata: {name: 1}\ndata: {a: 1}\nmore: 1\n",
}

DOCUMENTS = {
    "JSON with an escaped slash": HEAD + b'"data":{"a":"\\/"}}',
    "empty": b"",
    "text": b"just text",
    "a list": b"- a\n- b\n",
    "a broken flow": b"a: [",
    "tabs": b"metadata:\n\tname: a\n",
    "an anchor to nothing": b"metadata: *nothing\n",
    "an anchor to nothing further down": b"metadata:\n  name: a\n  labels: {a: *no-thing}\n",
    "words for truth": b"metadata: {name: new}\ndata: {a: y}\n",
    "a word for truth as a key": b"metadata: {name: new}\ndata: {y: a, on: b}\n",
    "two documents": b"metadata: {name: new}\n---\nmetadata: {name: newer}\n",
    "a key twice": b"metadata: {name: new}\ndata: {a: x, a: y}\n",
    "a number for a string": b"metadata: {name: new}\ndata: {a: 1}\n",
    "a tag": b"metadata: {name: !!python/name:os.system new}\n",
    "not UTF-8": b"metadata: {name: a\xff}\n",
}

PATCHES = {
    "empty merge": (MERGE, b""),
    "merge list": (MERGE, b"[]"),
    "merge text": (MERGE, b"nonsense"),
    "merge null": (MERGE, b"null"),
    "merge number": (MERGE, b"7"),
    "merge of another name": (MERGE, b'{"metadata":{"name":"other"}}'),
    "merge with an old revision": (MERGE, b'{"metadata":{"resourceVersion":"1"}}'),
    "merge with a bad revision": (MERGE, b'{"metadata":{"resourceVersion":"x"}}'),
    "empty operations": (OPERATIONS, b""),
    "operations object": (OPERATIONS, b"{}"),
    "operations text": (OPERATIONS, b"nonsense"),
    "unknown operation": (OPERATIONS, b'[{"op":"grow","path":"/data"}]'),
    "operation without a path": (OPERATIONS, b'[{"op":"add","value":1}]'),
    "remove what is not there": (OPERATIONS, b'[{"op":"remove","path":"/data/nothing"}]'),
    "test that fails": (OPERATIONS, b'[{"op":"test","path":"/data/x","value":"2"}]'),
    "add below nothing": (OPERATIONS, b'[{"op":"add","path":"/a/b/c","value":1}]'),
    "replace the whole": (OPERATIONS, b'[{"op":"replace","path":"","value":7}]'),
    "copy from nowhere": (OPERATIONS, b'[{"op":"copy","from":"/nothing","path":"/data/y"}]'),
    "very many operations": (
        OPERATIONS,
        json.dumps([{"op": "test", "path": "/data/x", "value": "1"}] * 10_001).encode(),
    ),
    "empty strategic": (STRATEGIC, b""),
    "strategic list": (STRATEGIC, b"[]"),
    "strategic text": (STRATEGIC, b"nonsense"),
    "strategic of a wrong type": (STRATEGIC, b'{"data":7}'),
    "strategic directive": (STRATEGIC, b'{"$patch":"grow"}'),
    "empty apply": (APPLY, b""),
    "apply list": (APPLY, b"[]"),
    "apply broken": (APPLY, b"a: ["),
    "apply of nothing": (APPLY, b"{}"),
    "apply of another kind": (APPLY, b"apiVersion: v1\nkind: Pod\nmetadata: {name: there}\n"),
    "apply of another name": (APPLY, b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"),
    "apply with managed fields": (
        APPLY,
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: there, managedFields: [{manager: x}]}\n",
    ),
    "apply of brackets": (APPLY, b"[" * 25_000),
    "apply of aliases": (APPLY, b"apiVersion: v1\nkind: ConfigMap\n" + ALIASES),
    "another type": ("text/plain", b"{}"),
    "JSON": (JSON, b"{}"),
    "YAML": (YAML, b"{}"),
    "no type": ("", b"{}"),
}

PROTOBUFS = {
    "empty": b"",
    "no magic": b"{}",
    "magic alone": b"k8s\x00",
    "rubbish": b"k8s\x00\xff\xff\xff\xff",
    "no type": b"k8s\x00\x12\x02\x0a\x00",
}


def nested(levels: int) -> JSONValue:
    schema: JSONValue = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


SCHEMAS: dict[str, JSONValue] = {
    "none": None,
    "empty": {},
    "a list": [],
    "of no known type": {"type": "nonsense"},
    "no object": {"type": "string"},
    "that refers to itself": {"type": "object", "properties": {"a": {"$ref": "#"}}},
    "with definitions": {"type": "object", "definitions": {"a": {"type": "string"}}},
    "ninety levels deep": nested(90),
    "of everything at once": {
        "type": "object",
        "properties": {"a": {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}},
    },
    "with a pattern that is none": {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}},
    "with lengths that make no sense": {
        "type": "object",
        "properties": {"a": {"type": "string", "minLength": -1, "maxLength": -2}},
    },
    "with a default that it refuses": {
        "type": "object",
        "properties": {"a": {"type": "string", "enum": ["x"], "default": "y"}},
    },
    "with an enum twice": {"type": "object", "properties": {"a": {"type": "string", "enum": ["x", "x"]}}},
    "with items that are a list": {"type": "object", "properties": {"a": {"type": "array", "items": [{}]}}},
    "with items that are an empty list": {"type": "object", "properties": {"a": {"type": "array", "items": []}}},
    "with items that are none": {"type": "object", "properties": {"a": {"type": "array", "items": "abc"}}},
    "with items of a wrong type": {"type": "object", "properties": {"a": {"type": "array", "items": {"type": 5}}}},
    "with a list of wrong items": {"type": "object", "properties": {"a": {"type": "array", "items": [5]}}},
    "with a number in place of a schema": {
        "type": "object",
        "properties": {"a": {"type": "object", "additionalProperties": 5}},
    },
    "without additional items": {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "string"}, "additionalItems": False}},
    },
    "without items": {"type": "object", "properties": {"a": {"type": "array"}}},
    "with unique items": {
        "type": "object",
        "properties": {"a": {"type": "array", "uniqueItems": True, "items": {"type": "string"}}},
    },
    "that forbids everything": {"type": "object", "not": {}},
    "with a rule that is none": {"type": "object", "x-kubernetes-validations": [{"rule": "self.a +"}]},
    "with a flag of a wrong type": {"type": "object", "x-kubernetes-preserve-unknown-fields": "yes"},
}


def definition(schema: JSONValue) -> bytes:
    version: dict[str, JSONValue] = {"name": "v1", "served": True, "storage": True}
    if schema is not None:
        version["schema"] = {"openAPIV3Schema": schema}
    return json.dumps(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "oddities.odd.example.com"},
            "spec": {
                "group": "odd.example.com",
                "scope": "Namespaced",
                "names": {"plural": "oddities", "singular": "oddity", "kind": "Oddity", "listKind": "OddityList"},
                "versions": [version],
            },
        }
    ).encode()


def compared(name: str, ours: tuple[int, str], theirs: tuple[int, str]) -> str:
    return "" if ours == theirs else f"{name}:\n  ours   {ours}\n  theirs {theirs}"


@pytest.mark.parametrize(
    ("bodies", "content_type", "query"),
    [
        (BODIES, JSON, ""),
        (GREEDY, YAML, ""),
        (STRICT, JSON, "&fieldValidation=Strict"),
        (DOCUMENTS, YAML, ""),
        (STRICT_DOCUMENTS, YAML, "&fieldValidation=Strict"),
        (PROTOBUFS, PROTOBUF, ""),
    ],
    ids=["JSON", "YAML that asks for too much", "strict JSON", "YAML", "strict YAML", "protobuf"],
)
async def test_a_body_is_refused_with_the_same_message(
    pair: Pair, bodies: dict[str, bytes], content_type: str, query: str
) -> None:
    differences = [
        compared(name, *await pair.answers("POST", f"{ALL}?dryRun=All{query}", content_type, body))
        for name, body in bodies.items()
    ]
    assert not any(differences), "\n".join(filter(None, differences))


async def test_a_patch_is_refused_with_the_same_message(pair: Pair) -> None:
    differences = [
        compared(name, *await pair.answers("PATCH", f"{ONE}?fieldManager=tests&dryRun=All", content_type, body))
        for name, (content_type, body) in PATCHES.items()
    ]
    assert not any(differences), "\n".join(filter(None, differences))


async def test_a_definition_with_an_absurd_schema_is_refused_with_the_same_message(pair: Pair) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
    differences = [
        compared(name, *await pair.answers("POST", path, JSON, definition(schema))) for name, schema in SCHEMAS.items()
    ]
    assert not any(differences), "\n".join(filter(None, differences))


@pytest.mark.parametrize("number", [b"1" * 5000, b"-" + b"1" * 5000, b"1e999"])
@pytest.mark.parametrize("opening", [b"", b'{"a":' * 1000])
async def test_a_number_beyond_all_bounds_is_refused(widgets: None, ask: Ask, number: bytes, opening: bytes) -> None:
    value = opening + number + b"}" * opening.count(b"{")
    body = b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x"},"spec":{"a":%b}}' % value

    answer = await ask("POST", "/apis/example.com/v1/namespaces/NAMESPACE/widgets", body)

    assert answer.code == 400
    assert (
        b"json: cannot unmarshal number %b into Go value of type float64" % number
        in str(answer.body["message"]).encode()
    )


@pytest.mark.parametrize("name", ["limit", "timeoutSeconds", "resourceVersion"])
async def test_a_parameter_of_thousands_of_digits_is_out_of_range(ask: Ask, name: str) -> None:
    answer = await ask("GET", f"/api/v1/namespaces/NAMESPACE/configmaps?{name}={'9' * 5000}")

    assert "value out of range" in str(answer.body["message"])
