"""The transport against Go's net/http: the same requests to the same server, in the same run.

Each client is a process of its own, rounds are interleaved, and the least CPU of all rounds counts: on a shared
machine everything above it is noise.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.figures import Figure, build_peer, measure
from bench.http import fixtures
from bench.interpreter import interpreter

_PUTS = 20_000
_LINES = 50_000


def run() -> list[Figure]:
    """Measure; needs the `go` command."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        fixtures.write(directory)
        peer = build_peer(Path(__file__).parent / "peer", directory)
        with _server(peer, directory) as address:

            def both(name: str, command: str, count: int, target: str) -> Figure:
                arguments = [command, str(directory), address, str(count)]
                ours = [interpreter(), "-m", "bench.http.client", *arguments]
                return measure(name, ours, [str(peer), *arguments], count, target)

            return [
                both("PUT 2 KB, TLS, 16 in flight / net/http", "put", _PUTS, "at most 1.0 x Go"),
                both("watch line 1.5 KB, TLS, header / client-go style", "watch", _LINES, "at most 15 us"),
            ]


@contextmanager
def _server(peer: Path, directory: Path) -> Iterator[str]:
    process = subprocess.Popen([peer, "server", directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    # Leaving closes its standard input, which ends it.
    with process:
        if process.stdout is None:
            raise RuntimeError("the server has no output")
        yield process.stdout.readline().strip()
