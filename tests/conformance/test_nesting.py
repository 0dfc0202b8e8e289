"""Objects that nest thousands of levels deep: both servers keep them, and both refuse the 10,001st."""

from __future__ import annotations

import pytest
from tests.conformance.asking import Ask, Fetch
from tests.conformance.custom_kinds import Kind, version

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
MERGE = "application/merge-patch+json"
OPERATIONS = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


def chain(levels: int, innermost: str = "1") -> str:
    return '{"a":' * levels + innermost + "}" * levels


def thing(kind: Kind, name: str, spec: str, revision: str = "") -> bytes:
    metadata = f'{{"name":"{name}"' + (f',"resourceVersion":"{revision}"}}' if revision else "}")
    return f'{{"apiVersion":"{kind.group}/v1","kind":"Thing","metadata":{metadata},"spec":{spec}}}'.encode()


# The real server takes as long as the square of the levels: seconds for each request at 9,900.
@pytest.mark.parametrize(("levels", "content_type"), [(2_000, "application/json"), (1_000, "application/yaml")])
async def test_a_deep_object_is_created_read_changed_watched_and_deleted(
    kind: Kind, fetch: Fetch, namespace: str, levels: int, content_type: str
) -> None:
    await kind.define(version())
    collection = kind.path().replace("NAMESPACE", namespace)
    one = f"{collection}/deep"

    async def send(method: str, path: str, body: bytes | None = None, type_: str = "application/json") -> bytes:
        headers = [("Content-Type", type_), ("Accept", "application/json")]
        answer = await fetch(path, method, headers, body)
        assert answer.status in (200, 201), answer.body[:500]
        return answer.body

    async def revision() -> str:
        return (await send("GET", one)).partition(b'"resourceVersion":"')[2].partition(b'"')[0].decode()

    deep = f'"spec":{chain(levels)}'.encode()
    assert deep in await send("POST", collection, thing(kind, "deep", chain(levels)), content_type)
    assert deep in await send("GET", one)
    assert deep in await send("GET", collection)
    assert deep in await send("GET", f"{collection}?watch=1&timeoutSeconds=1")

    # The same once more is no change; another innermost value is one.
    before = await revision()
    await send("PUT", one, thing(kind, "deep", chain(levels), before))
    assert await revision() == before
    await send("PUT", one, thing(kind, "deep", chain(levels, "2"), before))
    assert await revision() != before

    deep = f'"spec":{chain(levels, "2")}'.encode()
    assert deep in await send("PATCH", one, b'{"metadata":{"labels":{"x":"y"}}}', MERGE)
    assert deep in await send("PATCH", one, b'[{"op":"add","path":"/metadata/labels/z","value":"y"}]', OPERATIONS)
    assert deep in await send("PATCH", f"{one}?fieldManager=t", thing(kind, "deep", chain(levels, "2")), APPLY)
    added = f'"b":{chain(levels)}'.encode()
    assert added in await send("PATCH", one, b'{"spec":{%b}}' % added, MERGE)
    assert (await fetch(one, "GET", [("Accept", TABLE)])).status == 200
    assert (await fetch(one, "GET", [("User-Agent", "curl/8")])).status == 200

    assert b'"status":"Success"' in await send("DELETE", one)


async def test_patches_reach_deep_values(kind: Kind, fetch: Fetch, namespace: str) -> None:
    await kind.define(version())
    collection = kind.path().replace("NAMESPACE", namespace)
    one, levels = f"{collection}/deep", 600
    headers = [("Content-Type", "application/json"), ("Accept", "application/json")]
    await fetch(collection, "POST", headers, thing(kind, "deep", chain(levels, '{"x":1,"y":2}')))
    bottom = "/spec" + "/a" * levels

    async def patched(body: str, type_: str) -> bytes:
        answer = await fetch(one, "PATCH", [("Content-Type", type_), ("Accept", "application/json")], body.encode())
        assert answer.status == 200, answer.body[-500:]
        return answer.body.partition(b'"spec":')[2].rstrip()[:-1]

    steps = (
        f'{{"op":"test","path":"{bottom}/x","value":1}},'
        f'{{"op":"test","path":"/spec/a","value":{chain(levels - 1, """{"y":2,"x":1}""")}}},'
        f'{{"op":"replace","path":"{bottom}/x","value":3}},{{"op":"add","path":"{bottom}/z","value":[4]}}'
    )
    assert await patched(f"[{steps}]", OPERATIONS) == chain(levels, '{"x":3,"y":2,"z":[4]}').encode()
    moved = f'[{{"op":"move","from":"{bottom}/z","path":"{bottom}/w"}},{{"op":"remove","path":"{bottom}/y"}}]'
    assert await patched(moved, OPERATIONS) == chain(levels, '{"w":[4],"x":3}').encode()
    merge = f'{{"spec":{chain(levels, """{"w":null,"v":{"n":null,"m":1}}""")}}}'
    assert await patched(merge, MERGE) == chain(levels, '{"v":{"m":1},"x":3}').encode()
    new = f'{{"spec":{{"a":7,"b":{chain(levels, """{"n":null,"m":[null]}""")}}}}}'
    assert await patched(new, MERGE) == f'{{"a":7,"b":{chain(levels, """{"m":[null]}""")}}}'.encode()


async def test_a_deep_object_is_answered_as_yaml(kind: Kind, fetch: Fetch, namespace: str) -> None:
    await kind.define(version())
    collection = kind.path().replace("NAMESPACE", namespace)
    headers = [("Content-Type", "application/json"), ("Accept", "application/yaml")]

    answer = await fetch(collection, "POST", headers, thing(kind, "deep", chain(900)))

    assert answer.status == 201
    assert answer.headers.get("Content-Type") == "application/yaml"


@pytest.mark.parametrize("opening", ["{", "["])
async def test_the_10001st_level_is_refused(kind: Kind, ask: Ask, opening: str) -> None:
    await kind.define(version())
    spec = chain(10_000) if opening == "{" else "[" * 10_000 + "]" * 10_000

    answer = await ask("POST", kind.path(), thing(kind, "deep", spec))

    assert answer.code == 400
    assert f"invalid character '{opening}' exceeded max depth" in str(answer.body["message"])


async def test_a_deep_value_is_shown_in_a_column(kind: Kind, fetch: Fetch, namespace: str) -> None:
    await kind.define(version(additionalPrinterColumns=[{"name": "S", "type": "string", "jsonPath": ".spec"}]))
    collection = kind.path().replace("NAMESPACE", namespace)
    await fetch(collection, "POST", [("Content-Type", "application/json")], thing(kind, "deep", chain(900)))

    answer = await fetch(f"{collection}/deep", "GET", [("Accept", TABLE)])

    assert answer.status == 200
    assert chain(900).replace('"', '\\"').encode() in answer.body
