from __future__ import annotations

import pytest

from kubewright.controlplane.embedded.cel.library import operators
from kubewright.controlplane.embedded.cel.values import EvaluationError


def test_a_list_cannot_be_doubled_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A concatenation costs 1: no budget stops variables that each double the list of the one before."""
    monkeypatch.setattr(operators, "_MAX_LIST_LENGTH", 4)
    assert operators.add([1, 2], [3, 4]) == [1, 2, 3, 4]
    with pytest.raises(EvaluationError, match="more than 4 elements"):
        operators.add([1, 2], [3, 4, 5])
