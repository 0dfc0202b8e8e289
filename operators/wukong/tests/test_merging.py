"""The three-way merge: ours, what was ours, and everybody else's."""

from __future__ import annotations

import pytest
from operators.wukong.merging import merged

from kubewright.api.markers import JSONValue

A, B, C = {"name": "a"}, {"name": "b"}, {"name": "c"}


@pytest.mark.parametrize(
    ("live", "before", "wanted", "expected"),
    [
        # What is wanted is so, whoever has changed it.
        ({"cores": 8}, {"cores": 2}, {"cores": 2}, {"cores": 2}),
        ({}, {}, {"cores": 2}, {"cores": 2}),
        # What others have added stays.
        ({"cores": 2, "model": "host"}, {"cores": 2}, {"cores": 4}, {"cores": 4, "model": "host"}),
        ([A, B], [A], [A], [A, B]),
        ([{**A, "io": "native"}], [A], [{**A, "order": 1}], [{**A, "io": "native", "order": 1}]),
        # What is no longer wanted goes, and with it an empty structure, but nothing of others.
        ({"a": 1, "b": 2}, {"a": 1}, {}, {"b": 2}),
        ([A, B, C], [A, B], [B], [B, C]),
        ({"list": [A, B]}, {"list": [A]}, {}, {"list": [B]}),
        ({"list": [A]}, {"list": [A]}, {}, {}),
        ({"map": {"a": 1, "b": 2}}, {"map": {"a": 1}}, {}, {"map": {"b": 2}}),
        ({"map": {"a": 1}}, {"map": {"a": 1}}, {}, {}),
        ({"bridge": {}, "mac": "x"}, {"bridge": {}, "mac": "x"}, {"sriov": {}, "mac": "x"}, {"sriov": {}, "mac": "x"}),
        ([{**A, "io": "native"}], [A], [], []),
        # What is wanted replaces its alternatives: KubeVirt accepts one of them.
        ([{**A, "masquerade": {}}], [{**A, "bridge": {}}], [{**A, "bridge": {}}], [{**A, "bridge": {}}]),
        (
            {"cdrom": {"bus": "sata"}, "io": "x"},
            {},
            {"disk": {"bus": "virtio"}},
            {"io": "x", "disk": {"bus": "virtio"}},
        ),
        ([{**A, "masquerade": {}}], [], [], [{**A, "masquerade": {}}]),
        # Lists whose items have no names are replaced.
        ({"keys": [{"key": "x"}]}, {}, {"keys": [{"key": "y"}]}, {"keys": [{"key": "y"}]}),
        ({"keys": [{"key": "x"}]}, {"keys": [{"key": "x"}]}, {}, {}),
        # What was damaged or replaced by something else is made again.
        ("text", {"a": 1}, {"a": 1}, {"a": 1}),
        ([A], None, {"a": 1}, {"a": 1}),
    ],
)
def test_a_merge(live: JSONValue, before: JSONValue, wanted: JSONValue, expected: JSONValue) -> None:
    assert merged(live, before, wanted) == expected
    assert merged(expected, wanted, wanted) == expected, "doing it again changes nothing"
