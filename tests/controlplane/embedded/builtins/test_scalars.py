from __future__ import annotations

import pytest

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.builtins.scalars import (
    MalformedScalar,
    base64_bytes,
    micro_time,
    quantity,
    resource_amount,
    seconds_time,
)


@pytest.mark.parametrize(
    ("written", "stored"), [("1.5", "1500m"), (2, "2"), (0.5, "500m"), ("1024Ki", "1Mi"), ("1e3", "1e3")]
)
def test_amounts_are_stored_in_canonical_form(written: str | int | float, stored: str) -> None:
    assert quantity(written) == stored


@pytest.mark.parametrize("written", ["abc", "", None, True, [1]])
def test_an_invalid_amount_is_refused(written: JSONValue) -> None:
    with pytest.raises(MalformedScalar, match="quantities must match the regular expression"):
        quantity(written)


def test_amounts_of_resources_are_rounded_up_to_thousandths() -> None:
    assert resource_amount("100u") == "1m"
    assert resource_amount("1500001n") == "2m"
    assert resource_amount("100m") == "100m"


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("2024-05-06T07:08:09Z", "2024-05-06T07:08:09Z"),
        ("2024-05-06T09:08:09.999+02:00", "2024-05-06T07:08:09Z"),
        ("2024-05-06T07:08:09,5Z", "2024-05-06T07:08:09Z"),
    ],
)
def test_times_are_stored_in_utc_and_whole_seconds(written: str, stored: str) -> None:
    assert seconds_time(written) == stored


def test_precise_times_keep_six_digits() -> None:
    assert micro_time("2024-05-06T09:08:09.000001+02:00") == "2024-05-06T07:08:09.000001Z"


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("x", 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ("2020-02-30T00:00:00Z", 'parsing time "2020-02-30T00:00:00Z": day out of range'),
        ("2020-01-01T25:00:00Z", 'parsing time "2020-01-01T25:00:00Z": hour out of range'),
        ("2020-01-01T00:00:00Z ", 'parsing time "2020-01-01T00:00:00Z ": extra text: " "'),
    ],
)
def test_times_that_cannot_be_read_are_refused_with_gos_message(written: str, complaint: str) -> None:
    with pytest.raises(MalformedScalar) as refused:
        seconds_time(written)

    assert str(refused.value) == complaint


@pytest.mark.parametrize(
    ("written", "position"), [("%", 0), ("abc", 0), ("abcd=", 4), ("ab=c", 2), ("ab=", 3), ("abcdefg", 4), ("YQ==x", 4)]
)
def test_invalid_base64_is_refused_with_its_position(written: str, position: int) -> None:
    with pytest.raises(MalformedScalar, match=f"^illegal base64 data at input byte {position}$"):
        base64_bytes(written)


def test_line_breaks_are_no_part_of_base64() -> None:
    assert base64_bytes("aG\nk=\r\n") == "aGk="
