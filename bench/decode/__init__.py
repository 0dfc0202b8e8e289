"""Decoding one object: typed, header only and without a type, beside what Go's informers do with the same bytes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.decode import samples
from bench.figures import Figure, build_peer, measure
from bench.interpreter import interpreter

_COUNT = 3000
# Ours, the Go counterpart, and the words for both.
_FORMS = [
    ("header", "typed", "header and bytes / Go struct"),
    ("typed", "typed", "typed / Go struct"),
    ("dynamic", "unstructured", "Dynamic / Go unstructured"),
]


def run() -> list[Figure]:
    """Measure; needs the `go` command."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        samples.write(directory)
        peer = str(build_peer(Path(__file__).parent / "peer", directory))
        return [
            measure(
                f"decode {kind}: {words}",
                [interpreter(), "-m", "bench.decode.client", ours, f"{directory}/{kind}.json", str(_COUNT)],
                [peer, theirs, f"{directory}/{kind}.json", str(_COUNT)],
                _COUNT,
            )
            for kind in ("pod", "widget")
            for ours, theirs, words in _FORMS
        ]
