"""Cutting a stream of bytes into lines, whatever the pieces it arrives in."""

from __future__ import annotations

from kubewright.client.errors import ProtocolError


class LineSplitter:
    """Collects pieces and returns complete lines, without their newline.

    Guarantee: the lines do not depend on how the bytes were cut into pieces, and no more than `limit` bytes of an
    unfinished line are kept.
    """

    __slots__ = ("_limit", "_pending", "_size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pending: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes, oldest first."""
        # Not `split`, which checks every byte by itself: for lines of kilobytes that takes several times as long.
        lines, start = [], 0
        while (end := data.find(b"\n", start)) >= 0:
            lines.append(data[start:end])
            start = end + 1
        rest = data[start:]
        if lines and self._pending:
            self._pending.append(lines[0])
            lines[0] = b"".join(self._pending)
            self._pending = []
            self._size = 0
        if rest:
            self._pending.append(rest)
            self._size += len(rest)
        # Only the first line can hold bytes of earlier pieces; the others are no longer than `data`.
        if (
            self._size > self._limit
            or (lines and len(lines[0]) > self._limit)
            or (len(data) > self._limit and any(len(line) > self._limit for line in lines))
        ):
            raise ProtocolError(f"a line of the response is longer than the limit of {self._limit} bytes")
        return lines

    def finish(self) -> bytes:
        """What came after the last newline; empty when the stream ended with one."""
        rest = b"".join(self._pending)
        self._pending = []
        self._size = 0
        return rest
