"""Values and texts that programs stumble over, and ways to spoil a document with them."""

from __future__ import annotations

import json
from random import Random

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import copied_object

TEXTS = (
    "",
    " ",
    "a",
    "A" * 300,
    "x" * 5000,
    "9" * 5000,
    "-" + "9" * 5000,
    "0." + "3" * 5000,
    "1e999999999",
    "1E5000",
    "0x" + "f" * 5000,
    "1" * 6000 + "h",
    "null",
    "true",
    "~",
    "NaN",
    "-0",
    "١٢",
    "\u0000",
    "\ud800",
    "\u2028é😀",
    "../..",
    "a/b/c",
    "%2e%2e",
    "a=b,c in (d)",
    "(((((((((((",
    "[" * 400,
    "a" * 64 + "." + "b" * 64,
    "100%",
    "100Mi",
    "1.5",
    "-1",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999+14:00",
    "2026-02-30T00:00:00Z",
    "10.0.0.256",
    "::ffff:1.2.3.4",
    "fe80::1%eth0",
    "2001:db8::/129",
    "*/5 * * * *",
    "@every 1h",
    "v1",
    "apps/v1",
    "system:masters",
    "kubernetes.io/x",
    "a\nb: c",
    "Bearer x",
    "{}",
    "${x}",
    "self.x",
    "YQ==",
    "!!!!",
)
NUMBERS = (0, 1, -1, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30, 0.5, -0.0, 1e300, 5e-324, 65536, 100)


def text(random: Random) -> str:
    """One of the texts, or two of them joined."""
    chosen = random.choice(TEXTS)
    return chosen if random.random() < 0.8 else chosen[:50] + random.choice(TEXTS)[:50]


def value(random: Random, depth: int = 3) -> JSONValue:
    """Anything that JSON has."""
    match random.randrange(8 if depth else 5):
        case 0:
            return None
        case 1:
            return random.random() < 0.5
        case 2:
            return random.choice(NUMBERS)
        case 3 | 4:
            return text(random)
        case 5:
            return [value(random, depth - 1) for _ in range(random.randrange(4))]
        case 6:
            nested: JSONValue = {}
            for _ in range(random.choice((10, 100, 300))):
                nested = [nested] if random.random() < 0.5 else {"a": nested}
            return nested
        case _:
            return {text(random): value(random, depth - 1) for _ in range(random.randrange(4))}


def spoiled(random: Random, document: JSONObject) -> JSONObject:
    """A copy with a few changes somewhere within."""
    copy = copied_object(document)
    for _ in range(random.choice((0, 1, 1, 1, 2, 4))):
        _spoil(random, copy)
    return copy


def _spoil(random: Random, document: JSONObject) -> None:
    containers: list[JSONObject | list[JSONValue]] = []
    waiting: list[JSONValue] = [document]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            containers.append(found)
            waiting += found.values()
        elif isinstance(found, list):
            containers.append(found)
            waiting += found
    container = random.choice(containers)
    if isinstance(container, list):
        if not container or random.random() < 0.3:
            container.append(value(random))
        elif random.random() < 0.3:
            container += [*container] * random.choice((1, 40))
        else:
            container[random.randrange(len(container))] = value(random)
        return
    names = list(container) or [""]
    name = random.choice(names)
    match random.randrange(5):
        case 0:
            container.pop(name, None)
        case 1:
            container[text(random)] = container.get(name)
        case _:
            container[name] = value(random)


def encoded(random: Random, document: JSONValue) -> bytes:
    """As JSON, and sometimes not quite."""
    body = json.dumps(document, ensure_ascii=random.random() < 0.9).encode("utf-8", "surrogatepass")
    match random.randrange(30):
        case 0:
            return body[: random.randrange(len(body) + 1)]
        case 1:
            position = random.randrange(len(body) + 1)
            return body[:position] + random.randbytes(3) + body[position:]
        case 2:
            return body.replace(b'"', b"'")
        case 3:
            return b"{" + body.strip(b"{}") + b"," + body.strip(b"{}") + b"}"
        case 4:
            depth = random.choice((500, 5000, 20000))
            return body.replace(b"null", b"[" * depth + b"]" * depth, 1)
    return body
