"""Health and readiness: what a kubelet asks, and what a person sees who asks why a pod is not ready.

    ready = Checks("readyz")
    ready.add("caches", lambda: None if synced() else "pods are not listed yet")
    ready.serve(server)

Answers as the API server and controller-runtime do: `ok`, a list with `?verbose` or when something fails,
`?exclude=caches`, and `/readyz/caches` for one check alone. Unlike them it tells the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

from kubewright.manager.serving import Answer, Query, Server

Check: TypeAlias = Callable[[], str | None]
"""None when all is fine, else what is missing, for everybody to read."""

_log = logging.getLogger(__name__)


class Checks:
    """The checks behind one path; `ping`, which always holds, is one of them. More may be added at any time."""

    def __init__(self, name: str) -> None:
        """`name` is the path without its slash: healthz, readyz."""
        self.name = name
        self._checks: dict[str, Check] = {"ping": lambda: None}

    def add(self, name: str, check: Check) -> None:
        """Ask `check` from now on. A check that raises has failed."""
        if not name or "/" in name:
            raise ValueError(f'"{name}" cannot be the name of a check of {self.name}: expected a word without slashes')
        if name in self._checks:
            raise ValueError(f'{self.name} has a check "{name}" already')
        self._checks[name] = check

    def serve(self, server: Server) -> None:
        """Answer at `/<name>` and `/<name>/<check>`."""
        server.route(f"/{self.name}", self.answer)
        server.route(f"/{self.name}/", self.answer)

    async def answer(self, query: Query) -> Answer:
        """All checks, or the one that the path names."""
        one = query.path.removeprefix(f"/{self.name}").strip("/")
        if one:
            return self._one(one)
        return self._all(set(query.parameters.get("exclude", ())), "verbose" in query.parameters)

    def failing(self) -> dict[str, str]:
        """The checks that do not hold, and why."""
        return {name: reason for name, check in self._checks.items() if (reason := self._ask(name, check)) is not None}

    def _one(self, name: str) -> Answer:
        if name not in self._checks:
            return Answer(404, body=b"404 page not found\n")
        reason = self._ask(name, self._checks[name])
        if reason is None:
            return Answer(body=b"ok")
        return Answer(500, body=f"internal server error: {reason}\n".encode())

    def _all(self, excluded: set[str], is_verbose: bool) -> Answer:
        lines = []
        is_failing = False
        for name in sorted(self._checks):
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
            elif (reason := self._ask(name, self._checks[name])) is None:
                lines.append(f"[+]{name} ok")
            else:
                is_failing = True
                lines.append(f"[-]{name} failed: {reason}")
        unknown = sorted(excluded - self._checks.keys())
        if unknown:
            names = ",".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        if not is_failing and not is_verbose:
            return Answer(body=b"ok")
        lines.append(f"{self.name} check {'failed' if is_failing else 'passed'}\n")
        return Answer(500 if is_failing else 200, body="\n".join(lines).encode())

    def _ask(self, name: str, check: Check) -> str | None:
        try:
            return check()
        except Exception as error:
            _log.exception("the check %s of %s failed itself", name, self.name)
            # Its message may hold anything.
            return f"the check raised {type(error).__name__}; the log has more"
