"""Markers: equal when they mean the same."""

from __future__ import annotations

from typing import Annotated

from kubewright.api.markers import Atomic, ListMap, StrategicMerge


def test_markers_that_mean_the_same_are_equal() -> None:
    # Python compares and hashes what is in Annotated.
    assert Annotated[list[str], ListMap("a", "b")] == Annotated[list[str], ListMap("a", "b")]
    assert {ListMap("a"), Atomic(), StrategicMerge("a")} == {StrategicMerge(key="a"), ListMap("a"), Atomic()}
    assert ListMap("a") != ListMap("b")
    assert ListMap("a", "b") != ListMap("b", "a")
    assert ListMap("a") != StrategicMerge("a")


def test_marker_is_shown_as_it_is_written() -> None:
    assert repr(ListMap("type", "name")) == "ListMap('type', 'name')"
