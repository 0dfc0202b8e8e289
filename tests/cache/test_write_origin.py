from __future__ import annotations

import json

import pytest

from kubewright.cache.entry import CacheEntry, parse_entry
from kubewright.cache.write_origin import WriteOrigin


def entry(revision: int, spec: str) -> CacheEntry:
    metadata = json.dumps({"name": "a", "namespace": "shop", "resourceVersion": str(revision)})
    return parse_entry(f'{{"metadata":{metadata},"spec":{spec}}}'.encode())


def nested(depth: int, value: int) -> str:
    return '{"a":' * depth + str(value) + "}" * depth


@pytest.mark.parametrize("depth", [900, 5000])
def test_a_change_that_is_nested_too_deeply_to_be_compared_is_not_known_to_be_ours(depth: int) -> None:
    writer = WriteOrigin(patch=f'{{"spec":{nested(depth, 2)}}}'.encode())
    assert not writer.made(entry(1, nested(depth, 1)), entry(2, nested(depth, 2)))


def test_a_change_that_was_sent_is_ours() -> None:
    writer = WriteOrigin(patch=f'{{"spec":{nested(10, 2)}}}'.encode())
    assert writer.made(entry(1, nested(10, 1)), entry(2, nested(10, 2)))
