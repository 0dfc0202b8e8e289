from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.client.errors import ProtocolError
from kubewright.client.http.lines import LineSplitter

# Few letters and many newlines: lines that end at the edge of a piece are the interesting ones.
_BYTES = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r\n"]), max_size=60).map(b"".join)


@given(_BYTES, st.lists(st.integers(min_value=1, max_value=7), max_size=60))
def test_lines_do_not_depend_on_the_pieces(data: bytes, sizes: list[int]) -> None:
    splitter = LineSplitter(limit=1000)
    lines: list[bytes] = []
    position = 0
    for size in sizes:
        lines += splitter.feed(data[position : position + size])
        position += size
    lines += splitter.feed(data[position:])

    assert [*lines, splitter.finish()] == data.split(b"\n")


@given(st.lists(st.integers(min_value=0, max_value=9), max_size=30), st.integers(min_value=1, max_value=7))
def test_a_line_over_the_limit_is_refused_however_it_is_cut(lengths: list[int], size: int) -> None:
    data = b"".join(b"x" * length + b"\n" for length in lengths)
    splitter = LineSplitter(limit=6)

    def feed() -> None:
        for position in range(0, len(data), size):
            splitter.feed(data[position : position + size])

    if any(length > 6 for length in lengths):
        with pytest.raises(ProtocolError, match="limit of 6 bytes"):
            feed()
    else:
        feed()


def test_an_unfinished_line_is_refused_as_soon_as_it_is_too_long() -> None:
    splitter = LineSplitter(limit=6)
    assert splitter.feed(b"ok\nxxxxxx") == [b"ok"]
    with pytest.raises(ProtocolError):
        splitter.feed(b"x")
