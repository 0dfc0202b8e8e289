from __future__ import annotations

import pytest

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.tables.durations import human_duration, instant, since

MINUTE, HOUR, DAY = 60, 3600, 86400
YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (0.9, "0s"),
        (119.9, "119s"),
        (2 * MINUTE, "2m"),
        (9 * MINUTE + 59, "9m59s"),
        (10 * MINUTE + 59, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 7 * MINUTE + 59, "7h7m"),
        (8 * HOUR + 59 * MINUTE, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY + 3 * HOUR, "2d3h"),
        (7 * DAY, "7d"),
        (8 * DAY + 5 * HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (3 * YEAR + 12 * DAY, "3y12d"),
        (8 * YEAR + 12 * DAY, "8y"),
    ],
)
def test_durations_have_two_or_three_significant_figures(seconds: float, expected: str) -> None:
    assert human_duration(seconds) == expected


@pytest.mark.parametrize(
    "value", [None, 5, "", "2026-01-01", "2026-01-01T00:00:00", "20260101T000000Z", "2026-13-01T00:00:00Z"]
)
def test_an_invalid_time_is_not_parsed(value: JSONValue) -> None:
    assert instant(value) is None


def test_times_may_have_a_fraction_and_any_zone() -> None:
    assert instant("1970-01-01T00:00:01.500000Z") == 1.5
    assert instant("1970-01-01T02:00:01.123456789+02:00") == 1.123456


def test_the_age_without_a_time_is_unknown() -> None:
    assert since(None, 0) == "<unknown>"
    assert since("1970-01-01T00:00:00Z", 90) == "90s"
