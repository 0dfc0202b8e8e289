"""What a plain word in YAML stands for: the same on both servers, created and applied."""

from __future__ import annotations

import pytest
from tests.conformance.asking import Ask
from tests.conformance.custom_kinds import Kind, version

from kubewright.api.markers import JSONValue

APPLY = "application/apply-patch+yaml"

SCALARS: dict[str, JSONValue] = {
    # Integers, in every base and with every decoration
    "0": 0,
    "-0": 0,
    "00": 0,
    "+5": 5,
    "-5": -5,
    "0o17": 15,
    "0O17": 15,
    "017": 15,
    "08": 8,
    "0o8": "0o8",
    "0x1F": 31,
    "0X1f": 31,
    "-0x1F": -31,
    "0x": "0x",
    "0x_1F": 31,
    "0b101": 5,
    "-0b1": -1,
    "0b": "0b",
    "1_000": 1000,
    "1__0": 10,
    "_1": "_1",
    "1,000": "1,000",
    "9223372036854775807": 9223372036854775807,
    "-9223372036854775808": -9223372036854775808,
    # Beyond 64 bits they are floats, as all numbers of JSON are to JavaScript
    "9223372036854775808": 9223372036854775808.0,
    "18446744073709551616": 18446744073709551616.0,
    "-9223372036854775809": -9223372036854775808.0,
    "12345678901234567890123": 1.2345678901234568e22,
    # Floats
    "1.0": 1,
    "5.": 5,
    ".5": 0.5,
    "-.5": -0.5,
    "+.5": 0.5,
    "1e3": 1000,
    "1E3": 1000,
    "1.5e-3": 0.0015,
    "1e3_0": 1e30,
    "1_0.5": 10.5,
    "1e": "1e",
    "1e400": "1e400",
    "1.2.3": "1.2.3",
    "inf": "inf",
    "NaN": "NaN",
    # Booleans
    "true": True,
    "True": True,
    "TRUE": True,
    "tRUE": "tRUE",
    "yes": True,
    "Yes": True,
    "YES": True,
    "y": True,
    "Y": True,
    "on": True,
    "On": True,
    "false": False,
    "no": False,
    "n": False,
    "N": False,
    "off": False,
    "OFF": False,
    # Dates and times
    "2024-01-31": "2024-01-31",
    "2024-1-1": "2024-1-1",
    "2024-01-31T10:00:00Z": "2024-01-31T10:00:00Z",
    "2024-01-31 10:00:00": "2024-01-31 10:00:00",
    "!!timestamp 2024-01-31": "2024-01-31",
    "12:30": "12:30",
    "12:30:45": "12:30:45",
    "190:20:30": "190:20:30",
    # Quoted
    "'yes'": "yes",
    '"yes"': "yes",
    "'0x1F'": "0x1F",
    '"1_000"': "1_000",
    "'~'": "~",
    '""': "",
    "'it''s'": "it's",
    "'\\n'": "\\n",
    '"\\u00e9\\x41\\n"': "éA\n",
    '"a/b\\\\/"': "a/b\\/",
    # Tagged
    "!!str 5": "5",
    "!!str ~": "~",
    "!!int '5'": 5,
    "!!float 5": 5,
    "!!bool 'yes'": True,
    "!!binary aGk=": "hi",
    "!foo bar": "bar",
    # What has the non-specific tag is text, whatever it looks like
    "! 5": "5",
    "! true": "true",
    "! ~": "~",
    "! '5'": "5",
    "&a ! 0x10": "0x10",
    "!": "",
    # Others
    "=": "=",
    "<<": "<<",
    "--1": "--1",
    "5 # comment": 5,
    "[1, 0x2, yes]": [1, 2, True],
    "{a: 0o7, b: no}": {"a": 7, "b": False},
}
NULLS = ["~", "null", "Null", "NULL", "!!null ''", "", "# comment"]

REFUSED = {
    ".inf": "json: unsupported value: +Inf",
    "-.Inf": "json: unsupported value: -Inf",
    ".NaN": "json: unsupported value: NaN",
    "!!int 1.5": "yaml: cannot decode !!float `1.5` as a !!int",
    "!!bool foo": "yaml: cannot decode !!str `foo` as a !!bool",
    "a: b": "yaml: line 5: mapping values are not allowed in this context",
    "- ": "yaml: line 5: block sequence entries are not allowed in this context",
    "@x": "yaml: line 5: found character that cannot start any token",
    "*x": "yaml: unknown anchor 'x' referenced",
    '"\\q"': "yaml: line 5: found unknown escape character",
    '"a\\/b"': "yaml: line 5: found unknown escape character",
    '"a\n    b\\/c"': "yaml: line 6: found unknown escape character",
}


def body(kind: Kind, name: str, *scalars: str) -> bytes:
    fields = "".join(f"  f{index}: {scalar}\n" for index, scalar in enumerate(scalars))
    return f"apiVersion: {kind.group}/v1\nkind: Thing\nmetadata: {{name: {name}}}\nspec:\n{fields}".encode()


def comparable(value: JSONValue) -> object:
    """Numbers as Go reads them: 64 bits or a float. How many digits of a float are written out is of no meaning."""
    if isinstance(value, dict):
        return {name: comparable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return float(value)
    # 1 and True are equal to Python.
    return ("bool", value) if isinstance(value, bool) else value


@pytest.mark.parametrize("applied", [False, True], ids=["created", "applied"])
async def test_scalars_stand_for_the_same(kind: Kind, ask: Ask, applied: bool) -> None:
    await kind.define(version())
    sent = body(kind, "it", *SCALARS, *NULLS)
    if applied:
        answer = await ask("PATCH", f"{kind.path('it')}?fieldManager=t", sent, APPLY)
    else:
        answer = await ask("POST", kind.path(), sent, "application/yaml")
    assert answer.code == 201, answer.body
    expected: JSONValue = {
        f"f{index}": value for index, value in enumerate([*SCALARS.values(), *(None for _ in NULLS)])
    }
    assert comparable(answer.body["spec"]) == comparable(expected)
    assert (await ask("GET", kind.path("it"))).body["spec"] == answer.body["spec"]


@pytest.mark.parametrize("scalar", REFUSED)
async def test_yaml_scalars_without_a_json_form_are_refused_alike(kind: Kind, ask: Ask, scalar: str) -> None:
    await kind.define(version())
    created = await ask("POST", kind.path(), body(kind, "it", scalar), "application/yaml")
    assert created.code == 400
    problem = "the object provided is unrecognized (must be of type Thing): " + REFUSED[scalar]
    assert str(created.body["message"]).startswith(problem)
    applied = await ask("PATCH", f"{kind.path('it')}?fieldManager=t", body(kind, "it", scalar), APPLY)
    assert applied.code == 400
    assert applied.body["message"] == "error decoding YAML: error converting YAML to JSON: " + REFUSED[scalar]
