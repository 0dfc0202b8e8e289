"""The program that stands for etcd: answers health checks, and keeps what an API server of ours leaves when it stops.

It is run by its path and needs nothing but the standard library, because it starts before each suite. It is no etcd:
the state is one file in the data directory, which the API server reads when it starts (see `state.py`), so that it
lives as long as that directory. Flags without a meaning here are ignored.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

_FLAGS = ("advertise-client-urls", "data-dir", "listen-client-urls", "listen-peer-urls", "unsafe-no-fsync", "version")
_DEFAULT_URL = "http://localhost:2379"
_DEFAULT_DIRECTORY = "default.etcd"
STATE_PATH = "/kubewright/state"


def main(arguments: Sequence[str]) -> None:
    """Serve until SIGTERM or SIGINT. Ends the process with 1 where that is not possible."""
    if not {"-h", "-help", "--help"}.isdisjoint(arguments):
        listed = "\n".join(f"  --{flag}" for flag in _FLAGS)
        sys.stdout.write(f"etcd, as far as envtest needs it, by kubewright.\n\nFlags:\n{listed}\n")
        return
    given = dict(flag.lstrip("-").partition("=")[::2] for flag in _joined(arguments))
    if "version" in given:
        sys.stdout.write("etcd Version: none (kubewright)\n")
        return
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda *_: os._exit(0))
    try:
        directory = Path(given.get("data-dir") or _DEFAULT_DIRECTORY)
        directory.mkdir(0o700, parents=True, exist_ok=True)
        _serve((given.get("listen-client-urls") or _DEFAULT_URL).split(","), directory / "kubewright.json")
    except OSError as error:
        sys.exit(f"etcd: {error}")


def _joined(arguments: Sequence[str]) -> list[str]:
    """Each flag with its value in one string, in whichever of the two ways it was given."""
    joined: list[str] = []
    for argument in arguments:
        if argument.startswith("-") or not joined:
            joined.append(argument)
        else:
            joined[-1] += f"={argument}"
    return joined


def _serve(urls: Sequence[str], file: Path) -> None:
    # Here, because it takes as long as all the rest, and is not needed for `--help`.
    import socket
    from http.server import BaseHTTPRequestHandler
    from socketserver import ThreadingTCPServer
    from urllib.parse import urlsplit

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            if self.path == "/health":
                self._answer(200, b'{"health":"true","reason":""}')
            elif self.path == STATE_PATH and file.exists():
                self._answer(200, file.read_bytes())
            else:
                self._answer(404, b"404 page not found\n")

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path == STATE_PATH:
                fresh = file.with_suffix(".new")
                fresh.write_bytes(body)
                fresh.replace(file)
            self._answer(204 if self.path == STATE_PATH else 404, b"")

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            if status != 204:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing: envtest polls."""

    class Server(ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    servers: list[Server] = []
    for url in urls:
        try:
            address = urlsplit(url)
            scheme, host, port = address.scheme, address.hostname, address.port or 2379
        except ValueError:  # a port that is none, an unfinished IPv6 address
            scheme, host, port = "", None, 0
        if scheme != "http" or host is None:
            sys.exit(f"etcd: cannot listen on {url!r}: expected http://HOST:PORT")
        try:
            Server.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
            servers.append(Server((host, port), Handler))
        except OSError as error:
            sys.exit(f"etcd: cannot listen on {url!r}: {error.strerror or error}")
    for server in servers[1:]:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    servers[0].serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
