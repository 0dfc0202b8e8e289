from __future__ import annotations

import pytest

from kubewright.controlplane.embedded.builtins.pem import Block, blocks

X = b"-----BEGIN X-----\nAAAA\n-----END X-----\n"
FOUND = [Block("X", False, b"\0\0\0")]


@pytest.mark.parametrize("beginnings", [b"-----BEGIN X-----\n", b"-----BEGIN \n", b"-----BEGIN X----- \n\n"])
def test_beginnings_without_an_end_take_no_longer_than_other_text(beginnings: bytes) -> None:
    """Searching for the end of each of them would take more than an hour."""
    assert list(blocks(beginnings * 100_000)) == []
    assert list(blocks(beginnings * 100_000 + X)) == FOUND


def test_ends_without_a_beginning_are_skipped() -> None:
    assert list(blocks(b"-----BEGIN Y-----\n" + b"-----END X-----\n" * 100_000 + X)) == FOUND


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"", []),
        (X, FOUND),
        (X + X, FOUND * 2),
        (X.rstrip(), FOUND),
        (X.replace(b"\n", b" \t\r\n"), FOUND),
        (b"hello\n" + X, FOUND),
        (b"hello " + X, []),
        (b"-----BEGIN X-----\n" + X, FOUND),
        (b"-----BEGIN Y-----\n!\n-----END Y-----\n" + X, FOUND),
        (b"-----BEGIN X-----\n-----END X-----\n", [Block("X", False, b"")]),
        (b"-----BEGIN X-----\na: b\nAAAA\n-----END X-----\n", [Block("X", True, b"\0\0\0")]),
        (b"-----BEGIN X-----\na: b\nc:d\n\nAAAA\n-----END X-----\n", [Block("X", True, b"\0\0\0")]),
        (b"-----BEGIN X-----\nAAAA\n-----END Y-----\n", []),
        (b"-----BEGIN \n-----END \n", []),
        (b"-----BEGIN X-----\nAAAA-----END X-----\n", []),
        (b"-----BEGIN X----- x\nAAAA\n-----END X-----\n", []),
        (b"-----BEGIN X-----\nAAAA\n-----END X----- x\n", []),
    ],
)
def test_a_block_is_between_an_end_and_the_last_beginning_before_it(text: bytes, found: list[Block]) -> None:
    assert list(blocks(text)) == found
