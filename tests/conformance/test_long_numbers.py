"""Numbers of thousands of digits, more than Python reads as an integer, are read or refused as by the real server."""

from __future__ import annotations

from tests.conformance.asking import Answer, Ask
from tests.conformance.custom_kinds import DEFINITIONS, version

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import text

LONG = "9" * 5000
CONFIG_MAPS = "/api/v1/namespaces/NAMESPACE/configmaps"
CLAIMS = "/api/v1/namespaces/NAMESPACE/persistentvolumeclaims"


async def test_in_revisions(ask: Ask) -> None:
    numbered: JSONObject = {"metadata": {"name": "a", "resourceVersion": LONG}}
    codes = [
        (await ask("POST", CONFIG_MAPS, numbered)).code,
        (await ask("PUT", f"{CONFIG_MAPS}/a", numbered)).code,
        (await ask("GET", f"{CONFIG_MAPS}?resourceVersion={LONG}")).code,
        (await ask("GET", f"{CONFIG_MAPS}/a?resourceVersion={LONG}")).code,
        (await ask("GET", f"{CONFIG_MAPS}?limit={LONG}")).code,
        (await ask("DELETE", f"{CONFIG_MAPS}/a", {"preconditions": {"resourceVersion": LONG}})).code,
    ]
    assert codes == [201, 500, 400, 500, 400, 409]


async def test_in_quantities(ask: Ask) -> None:
    stored: list[tuple[int, str]] = []
    for number, amount in enumerate((LONG, f"0.{LONG}", f"{LONG}Gi", f"1e{LONG}", f"-{LONG}")):
        claim: JSONObject = {
            "metadata": {"name": f"a{number}"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": amount}}},
        }
        answer = await ask("POST", f"{CLAIMS}?dryRun=All", claim)
        stored.append((answer.code, text(answer.body, "spec", "resources", "requests", "storage")))
    assert stored == [
        (201, LONG),
        (201, "1"),
        (201, str(2**63 - 1)),
        (400, ""),
        (422, ""),
    ]


RULES = (
    (422, f"{LONG} > 1"),
    (422, f"{LONG}u > 1u"),
    (422, f"-{LONG} < 1"),
    (422, f"0x{'f' * 5000} > 1"),
    (422, f"int('{LONG}') > 1"),
    (422, f"duration('{LONG}h') > duration('1s')"),
    (201, f"quantity('{LONG}').isInteger()"),
    (201, f"semver('{LONG}.1.1').major() > 1"),
)


async def test_in_rules(ask: Ask) -> None:
    assert [(await _defined(ask, rule)).code for _, rule in RULES] == [code for code, _ in RULES]


async def _defined(ask: Ask, rule: str) -> Answer:
    schema: JSONObject = {
        "type": "object",
        "properties": {"spec": {"type": "object"}},
        "x-kubernetes-validations": [{"rule": rule}],
    }
    spec: JSONObject = {
        "group": "digits.example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [version(schema=schema)],
    }
    made: JSONObject = {"metadata": {"name": "things.digits.example.com"}, "spec": spec}
    return await ask("POST", f"{DEFINITIONS}?dryRun=All", made)
