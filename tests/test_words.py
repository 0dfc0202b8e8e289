"""The words of the code: Kubernetes' own in names, docstrings and messages, and one name for one thing.

Comments are not read. Generated kinds are left out: their words are those of Kubernetes' OpenAPI documents.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GENERATED = re.compile(r"/api/[a-z_0-9]+/v[0-9]")

INSTEAD = {
    "told": "notified, logged, reported",
    "tell": "notify, log, report",
    "tells": "notifies, logs, reports",
    "nobody": "no user, no client; or say it without a subject",
    "somebody": "another client, another writer",
    "whoever": "the caller, the client",
    "trouble": "error",
    "hinder": "block",
    "hinders": "blocks",
    "hindered": "blocked",
    "discreet": "redacted",
    "anew": "again; relist, restart, start over",
    "look at": "reconcile, check, read",
    "looks at": "reconciles, checks, reads",
    "looked at": "reconciled, checked, read",
    "gives back": "returns, releases",
    "given back": "returned, released",
    "way out": "unsubscribe function, fix",
    "of its own accord": "by itself",
    "in place of": "instead of",
}
"""Words that have no use of their own in this code, and what to write."""

MAXIMA = re.compile(r"^_?(most|longest|largest|deepest)_[a-z]+$", re.IGNORECASE)
LEGITIMATE_MAXIMA = {
    "longest_running_seconds": "the workqueue metric of client-go is called so",
    "most_general": "the most general of two types, as in cel-go",
}

WORDS = re.compile(rf"\b({'|'.join(INSTEAD)})\b", re.IGNORECASE)


def _sources() -> list[Path]:
    return [path for path in sorted((ROOT / "src").rglob("*.py")) if not GENERATED.search(path.as_posix())]


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def _texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Docstrings, messages and all other string literals."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def _spaced(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).replace("_", " ")


def _findings(path: Path) -> Iterator[str]:
    tree = _parsed(path)
    where = path.relative_to(ROOT)
    for line, name in _names(tree):
        if found := WORDS.search(_spaced(name)):
            yield f"{where}:{line}: {name}: write {INSTEAD[found[1].lower()]}"
        if MAXIMA.match(name) and name not in LEGITIMATE_MAXIMA:
            yield f"{where}:{line}: {name}: write max_…"
    for line, text in _texts(tree):
        if found := WORDS.search(text):
            yield f'{where}:{line}: "{found[1]}": write {INSTEAD[found[1].lower()]}'


def test_the_words_of_the_source_are_those_of_kubernetes() -> None:
    assert [finding for path in _sources() for finding in _findings(path)] == []


def test_the_names_of_tests_are_in_plain_words() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for line, name in _names(ast.parse(path.read_text()))
        if name.startswith("test_") and WORDS.search(_spaced(name))
    ]
    assert found == []


def test_no_two_public_classes_share_a_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in _sources():
        for node in _parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


@pytest.mark.parametrize("text", ["def tell_all(): ...", "class Told: ...", "most_bytes = 1", '"""Nobody waits."""'])
def test_a_word_to_translate_is_found(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "source.py"
    source.write_text(text)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert list(_findings(source))


def test_exceptions_that_are_no_longer_needed_are_removed() -> None:
    names = {name for path in _sources() for _, name in _names(_parsed(path))}
    assert LEGITIMATE_MAXIMA.keys() <= names
