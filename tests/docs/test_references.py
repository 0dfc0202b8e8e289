"""What the documents say of the source is there: files, and the functions, classes and methods named with them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "kubewright"
EMBEDDED = SOURCE / "controlplane" / "embedded"

_REFERENCE = re.compile(r"`(?P<path>[\w/]+(?:\.py|/))(?::(?P<name>\w+(?:\.\w+)*))?`")
# Names of ours have capitals, underscores or parentheses; words such as `omitempty` have none.
_NAME = re.compile(r"`(?:\w+\.)?(?P<name>\w+(?=\(\)`)|(?:(?<=`)(?:[A-Z]\w+|[a-z]+_\w+)(?=`)))")
_HEADING = re.compile(r"## `(?P<package>[\w/]+)`")


def references(document: str) -> Iterator[tuple[str, str, str]]:
    """The package that the section is about, the path and the name of every reference."""
    package = ""
    for line in (ROOT / "docs" / document).read_text(encoding="utf-8").splitlines():
        if heading := _HEADING.match(line):
            package = heading["package"]
        for found in _REFERENCE.finditer(line):
            yield package, found["path"], found["name"] or ""


@cache
def names_in(file: Path) -> frozenset[str]:
    """What a module defines at its top, and what its classes define in them."""

    def defined(body: list[ast.stmt]) -> Iterator[str]:
        for statement in body:
            match statement:
                case ast.ClassDef(name=name):
                    yield name
                    yield from (f"{name}.{inner}" for inner in defined(statement.body))
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    yield name
                case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                    yield name

    return frozenset(defined(ast.parse(file.read_text(encoding="utf-8")).body))


@pytest.mark.parametrize(("path", "name"), sorted({(path, name) for _, path, name in references("embedded.md")}))
def test_everything_that_embedded_md_names_exists(path: str, name: str) -> None:
    assert (EMBEDDED / path).exists()
    assert not name or name in names_in(EMBEDDED / path)


@pytest.mark.parametrize(
    ("package", "path"), sorted({(package, path) for package, path, _ in references("architecture.md")})
)
def test_files_that_architecture_md_names_exist(package: str, path: str) -> None:
    """A file is named as seen from its package, from the source, from the project or from the tests."""
    roots = [SOURCE / package, SOURCE, SOURCE / "controlplane", ROOT, ROOT / "tests" / "conformance"]
    assert any((root / path).exists() for root in roots), f"{path}, in the section about {package}"


def test_functions_and_classes_that_architecture_md_names_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = {found["name"] for found in _NAME.finditer(text)}
    defined = {name.rpartition(".")[2] for file in SOURCE.rglob("*.py") for name in names_in(file)}
    assert named - defined == set()


def test_every_package_of_the_embedded_server_is_in_its_table() -> None:
    named = {path for _, path, _ in references("embedded.md")}
    packages = {f"{folder.parent.name}/" for folder in EMBEDDED.glob("*/__init__.py")}
    assert packages <= named
