from __future__ import annotations

import io
import sys

import pytest

from kubewright.testing.exploration import progress
from kubewright.testing.exploration.progress import ExplorationProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_exploration_is_shown_on_a_terminal_and_leaves_nothing_there(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_SECONDS_BEFORE_FIRST", 0.0)
    with ExplorationProgress(7) as shown:
        shown.advance()
        assert "explore: 1 of 7 worlds" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_a_short_one_and_one_without_a_terminal_show_nothing(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO]
) -> None:
    monkeypatch.setattr(sys, "stderr", shown := stream())
    if stream is io.StringIO:
        monkeypatch.setattr(progress, "_SECONDS_BEFORE_FIRST", 0.0)
    with ExplorationProgress(7) as exploration:
        exploration.advance()
    assert shown.getvalue() == ""
