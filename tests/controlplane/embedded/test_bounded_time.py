"""Texts that once took seconds, or minutes. What they cost is counted in steps, not in time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.cel.library.times import parsed_duration
from kubewright.controlplane.embedded.endpoints.request import parse_query
from kubewright.controlplane.embedded.http.negotiation import _ranges
from kubewright.controlplane.embedded.tables.jsonpath import compile_path


def lines(work: Callable[[], object]) -> int:
    """How many lines of Python are executed."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def _nested(depth: int) -> JSONObject:
    found: JSONObject = {}
    for number in range(depth):
        found = {"a": found, "b": number}
    return found


def test_a_path_with_several_descents_grows_with_the_object_and_not_with_its_power() -> None:
    path = compile_path("..a..a..a..a..missing")
    small, large = (lines(lambda depth=depth: path.find(_nested(depth))) for depth in (40, 80))  # type: ignore[misc]
    # By the fourth power it would be sixteen times as much.
    assert large < small * 6


def test_several_descents_find_what_they_should() -> None:
    value: JSONValue = {"a": {"b": 1, "a": {"c": [{"a": {"d": "first"}}]}}, "z": {"a": {"a": {"a": {"d": "last"}}}}}
    found = compile_path("..a..a..a.d").find(value)
    assert (found[0], found[-1]) == ("first", "last")


def test_a_union_that_repeats_itself_finds_no_more_than_twice() -> None:
    value: JSONValue = _nested(30)
    path = compile_path("['a','a','a']" * 30)
    assert len(path.find(value)) <= 200


def test_a_query_with_a_parameter_twenty_thousand_times_is_read_in_one_go() -> None:
    query = "&".join(["a=1"] * 20_000)
    assert len(parse_query(query).repeated["a"]) == 20_000
    few, many = (lines(lambda count=count: parse_query("a=1&" * count)) for count in (100, 1000))  # type: ignore[misc]
    assert many < few * 15


def test_a_duration_of_fifty_thousand_digits_is_read_in_one_go() -> None:
    assert str(parsed_duration(f"1.{'1' * 50_000}s").nanoseconds) == "1111111111"
    for wrong in ("1" * 50_000, "1" * 50_000 + "h", "1h" * 20_000 + "x"):
        try:
            parsed_duration(wrong)
        except ValueError:
            continue
        raise AssertionError(wrong[:20])


def test_of_an_accept_header_only_so_much_is_read() -> None:
    assert len(_ranges("a/b," * 100_000)) == 256
