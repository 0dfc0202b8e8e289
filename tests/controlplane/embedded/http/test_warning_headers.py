from __future__ import annotations

from kubewright.controlplane.embedded.http.warning_headers import warning_headers


def test_a_warning_is_reported_once_and_quoted() -> None:
    assert warning_headers(['field "a\\b"', "", 'field "a\\b"', "é"]) == ['299 - "field \\"a\\\\b\\""', '299 - "é"']


def test_a_warning_that_no_header_can_carry_is_left_out() -> None:
    assert warning_headers(["a\r\nSet-Cookie: b", "a\tb", "a\u00a0b"]) == ['299 - "a\u00a0b"']


def test_long_warnings_are_cut_only_when_they_are_too_long_together() -> None:
    assert [len(value) for value in warning_headers(["a" * 4000])] == [4008]
    assert [len(value) for value in warning_headers(["a" * 4000, "b" * 97])] == [264, 105]


def test_what_is_too_long_even_then_is_left_out() -> None:
    warnings = [f"{number:0300}" for number in range(30)]
    assert len(warning_headers(warnings)) == 16
    # Those that were there before it was too much are there still.
    assert len(warning_headers([f"{number:0100}" for number in range(60)])) == 41
