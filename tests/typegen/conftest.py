"""Generated modules, imported; and the definitions they come from."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from kubewright.typegen import generate, read_definitions

CRDS = sorted((Path(__file__).parent / "crds").glob("*.yaml"))
Load = Callable[[str], ModuleType]


@pytest.fixture
def load() -> Iterator[Load]:
    """Import the text of a module, for the length of a test."""
    numbers, names = itertools.count(), []

    def load(text: str) -> ModuleType:
        module = ModuleType(f"generated_{next(numbers)}")
        names.append(module.__name__)
        sys.modules[module.__name__] = module
        exec(compile(text, module.__name__, "exec"), module.__dict__)
        return module

    yield load
    for name in names:
        del sys.modules[name]


@pytest.fixture
def widgets(load: Load) -> ModuleType:
    """The types of the definition that has everything in it."""
    text = (Path(__file__).parent / "crds/widgets.yaml").read_text()
    return load(generate(read_definitions(text, "widgets.yaml")))
