from __future__ import annotations

from datetime import timedelta

import pytest

from kubewright.manager.durations import duration_text, parse_duration


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (timedelta(), "0s"),
        (timedelta(hours=1, minutes=30), "1h30m"),
        (timedelta(days=50_000), "1200000h"),
        (timedelta(hours=1, microseconds=1), "1h0.000001s"),
        (timedelta(seconds=75.25), "1m15.25s"),
    ],
)
def test_the_text_of_a_duration_is_read_as_the_same(value: timedelta, text: str) -> None:
    """Of whatever length: it is given to a program, which refuses 1.2e+06h."""
    assert duration_text(value) == text
    assert parse_duration(text) == value
