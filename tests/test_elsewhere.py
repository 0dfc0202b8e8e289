from __future__ import annotations

import re

import pytest

import kubewright


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("Pod", "write from kubewright.api.core.v1 import Pod"),
        ("Deployment", "write from kubewright.api.apps.v1 import Deployment"),
        ("LeaderElection", "write from kubewright.manager import LeaderElection"),
        ("PermanentError", "raise TerminalError"),
        ("CacheOptions", "write from kubewright.cache import CacheOptions"),
    ],
)
def test_a_name_that_is_elsewhere_is_found_when_it_is_imported(name: str, fix: str) -> None:
    with pytest.raises(ImportError, match=re.escape(f"cannot import name '{name}' from 'kubewright': ")) as raised:
        exec(f"from kubewright import {name}")
    assert fix in str(raised.value)


def test_a_name_that_is_nowhere_is_none_of_kubewrights() -> None:
    with pytest.raises(ImportError, match=r"^cannot import name 'Nowhere' from 'kubewright' \("):
        exec("from kubewright import Nowhere")
    assert not hasattr(kubewright, "nowhere")


def test_whether_there_is_a_name_can_be_asked() -> None:
    assert not hasattr(kubewright, "Pod")
    assert getattr(kubewright, "Deployment", None) is None
    with pytest.raises(AttributeError, match=re.escape("write from kubewright.api.core.v1 import Pod")):
        exec("kubewright.Pod", {"kubewright": kubewright})
