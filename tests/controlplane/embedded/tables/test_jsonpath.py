from __future__ import annotations

import pytest

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.tables.jsonpath import JSONPathError, compile_path

OBJECT: JSONValue = {
    "a": {"b": 1, "c.d": 2, "e": None},
    "list": ["x", "y", "z"],
    "items": [
        {"name": "one", "size": 1, "ok": True},
        {"name": "two", "size": 2.5},
        {"name": "(three)", "size": 3, "ok": False},
    ],
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".a.b", [1]),
        ("$.a.b", [1]),
        (".a.c\\.d", [2]),
        (".a['c\\.d']", [2]),
        (".a['b']", [1]),
        (".a['b','e']", [1, None]),
        (".a.e", [None]),
        (".a.e.f", []),
        (".none.b", []),
        (".a.b.c", []),
        (".a.*", [1, 2, None]),
        (".list[0]", ["x"]),
        (".list[]", ["x"]),
        (".list[-1]", ["z"]),
        (".list[-1:]", ["z"]),
        (".list[1:]", ["y", "z"]),
        (".list[:2]", ["x", "y"]),
        (".list[::2]", ["x", "z"]),
        (".list[0:0]", []),
        (".list[*]", ["x", "y", "z"]),
        (".list[0,2]", ["x", "z"]),
        (".items[*].name", ["one", "two", "(three)"]),
        ('.items[?(@.name=="two")].size', [2.5]),
        (".items[?(@.name=='(three)')].size", [3]),
        ('.items[?(@.name == "two")].size', [2.5]),
        (".items[?(@.ok)].name", ["one", "(three)"]),
        (".items[?(@.ok==true)].name", ["one"]),
        ('.items[?(@.name!="one")].name', ["two", "(three)"]),
        ('.items[?(@.name>"p")].name', ["two"]),
        (".a.e[0]", []),
        ("..name", ["one", "two", "(three)"]),
    ],
)
def test_a_path_leads_to(path: str, expected: list[JSONValue]) -> None:
    assert compile_path(path).find(OBJECT) == expected


@pytest.mark.parametrize(
    "path",
    [
        ".list[3]",
        ".list[-4]",
        ".list[2:5]",
        ".list[2:1]",
        ".list[0:2:0]",
        ".a[0]",
        ".a[?(@.b)]",
        "a",  # a bare word
        ".items[?(@.size>1)].name",  # whole numbers and fractions do not compare
        ".items[?(@.name==1)].name",
        ".items[?(@.ok<true)].name",
        ".items[?(@.*==1)].name",
    ],
)
def test_a_path_that_does_not_fit_the_object_is_an_error(path: str) -> None:
    with pytest.raises(JSONPathError):
        compile_path(path).find(OBJECT)


@pytest.mark.parametrize(
    "path",
    [".a[", ".a[x]", ".a[?(@.b]", ".a[?(@.b==1)", ".a[?(@.b===1)]", ".a[?(@.b=='x)]", "%", ".a[?(@.b==1.2.3)]"],
)
def test_a_path_that_cannot_be_read_is_an_error(path: str) -> None:
    with pytest.raises(JSONPathError):
        compile_path(path)
