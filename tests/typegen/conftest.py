"""Generated modules, imported; and the definitions they come from."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from kubewright.api.resources import Object
from kubewright.typegen import Definition, generate, read_definitions
from kubewright.typegen.canonical import canonical_kind
from kubewright.typegen.definitions import APPROVED

CRDS = sorted((Path(__file__).parent / "crds").glob("*.yaml"))
Load = Callable[[str], ModuleType]
_numbers = itertools.count()


def imported(text: str, folder: Path) -> ModuleType:
    """The module with that text, from a file: descriptions of fields are read from there."""
    name = f"generated_{next(_numbers)}"
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kinds(module: ModuleType) -> list[type[Object]]:
    """The kinds that a module defines."""
    own = (value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__)
    return [value for value in own if issubclass(value, Object)]


def canonical_definition(definition: Definition) -> Definition:
    """The same definition in its canonical form, without what it says of its author."""
    names = definition.spec.names
    names.singular = names.singular or names.kind.lower()
    definition.metadata.annotations = {
        key: value for key, value in definition.metadata.annotations.items() if key == APPROVED
    }
    definition.spec.versions.sort(key=lambda version: version.name)
    for version in definition.spec.versions:
        version.schema.open_api_v3_schema = canonical_kind(version.schema.open_api_v3_schema)
    return definition


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Import the text of a module, for the length of a test."""
    names: list[str] = []

    def load(text: str) -> ModuleType:
        module = imported(text, tmp_path)
        names.append(module.__name__)
        return module

    yield load
    for name in names:
        del sys.modules[name]


@pytest.fixture
def widgets(load: Load) -> ModuleType:
    """The types of the definition that has everything in it."""
    text = (Path(__file__).parent / "crds/widgets.yaml").read_text()
    return load(generate(read_definitions(text, "widgets.yaml")))
