"""What all tests have; the fixtures are those of `kubewright.testing`, as users have them."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest_plugins = ["pytester"]

# No test needs an idle machine: how long one example takes says nothing.
settings.register_profile("kubewright", deadline=None)
settings.load_profile("kubewright")


def pytest_sessionstart() -> None:
    """Collect no garbage while tests are: there is hardly any, and to look for it takes a third of that time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exempt the thousands of tests from garbage collection: to visit them each time takes a fifth of all CPU."""
    _begin_hypothesis()
    gc.collect()
    gc.freeze()
    gc.enable()


@settings(max_examples=1, database=None)
@given(st.none())
def _begin_hypothesis(nothing: None) -> None:
    """Have Hypothesis make its random generator while what refers to it can be found.

    On Python 3.14 it warns when that is exempt from garbage collection.
    """


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """A test that runs a whole program leaves no handler and no level to the tests after it."""
    root, package = logging.getLogger(), logging.getLogger("kubewright")
    handlers, levels = list(root.handlers), (root.level, package.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    package.setLevel(levels[1])
