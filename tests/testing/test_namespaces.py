from __future__ import annotations

import re

import pytest

from kubewright.testing.namespaces import unique_name


@pytest.mark.parametrize("test", ["test_x", "test_x[Ünïcode/42]", "ü", "test_" + "long" * 50])
def test_a_name_is_unique_and_valid(test: str) -> None:
    name = unique_name(test)

    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name)
    assert name != unique_name(test)
