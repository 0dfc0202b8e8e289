from __future__ import annotations

import pytest

from kubewright.controlplane.embedded.builtins.cron import schedule_complaint


@pytest.mark.parametrize(
    "schedule",
    [
        "* * * * *",
        "*/5 0-6 1,15 jan-DEC mon",
        "? ? ? ? ?",
        "5/10 * * * *",
        "@daily",
        "@every 1h30m",
        "TZ=UTC 0 0 * * *",
    ],
)
def test_a_schedule_that_can_be_read_has_no_complaint(schedule: str) -> None:
    assert schedule_complaint(schedule) is None


@pytest.mark.parametrize(
    ("schedule", "complaint"),
    [
        ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("@sometimes", "unrecognized descriptor: @sometimes"),
        ("@every x", 'failed to parse duration @every x: time: invalid duration "x"'),
    ],
)
def test_a_schedule_that_cannot_be_read_is_refused_with_the_librarys_message(schedule: str, complaint: str) -> None:
    assert schedule_complaint(schedule) == complaint
