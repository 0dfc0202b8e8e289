"""Health and readiness: what a kubelet probes, and where a user finds out why a pod is not ready.

    ready = Checks("readyz")
    ready.add("caches", lambda: None if synced() else "pods are not listed yet")
    ready.serve(server)

Answers as the API server and controller-runtime do: `ok`, a list with `?verbose` or when something fails,
`?exclude=caches`, and `/readyz/caches` for one check alone. Unlike them it reports the reason.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import TypeAlias

from msgspec import Struct

from kubewright.manager.serving import EndpointRequest, EndpointResponse, Server

Check: TypeAlias = Callable[[], Awaitable[str | None] | str | None]
"""Returns None when all is well, else the reason, which is publicly readable. It may be `async def`."""

TIMEOUT = 5.0
"""Seconds after which a check that has not returned counts as failed."""

_log = logging.getLogger(__name__)


class _Entered(Struct, frozen=True):
    check: Check
    timeout: float


class Checks:
    """The checks behind one path; `ping`, which always holds, is one of them. More may be added at any time."""

    def __init__(self, name: str) -> None:
        """`name` is the path without its slash: healthz, readyz."""
        self.name = name
        self._checks = {"ping": _Entered(lambda: None, TIMEOUT)}

    def add(self, name: str, check: Check, *, timeout: float = TIMEOUT) -> None:
        """Call `check` for each probe from now on. A check that raises, or takes longer than `timeout`, has failed."""
        if not name or "/" in name:
            raise ValueError(f'"{name}" cannot be the name of a check of {self.name}: expected a word without slashes')
        if name in self._checks:
            raise ValueError(f'{self.name} has a check "{name}" already')
        _check_callable(check, f'the check "{name}" of {self.name}')
        if not timeout > 0:
            raise ValueError(f'the check "{name}" of {self.name}: timeout={timeout:g}, expected more than 0 seconds')
        self._checks[name] = _Entered(check, timeout)

    def serve(self, server: Server) -> None:
        """Serve `/<name>` and `/<name>/<check>`."""
        server.route(f"/{self.name}", self.answer)
        server.route(f"/{self.name}/", self.answer)

    async def answer(self, request: EndpointRequest) -> EndpointResponse:
        """All checks, or the one that the path names."""
        one = request.path.removeprefix(f"/{self.name}").strip("/")
        if one:
            return await self._one(one)
        return await self._all(set(request.parameters.get("exclude", ())), "verbose" in request.parameters)

    async def failing(self) -> dict[str, str]:
        """The checks that fail, and why."""
        return await self._reasons(self._checks)

    async def _one(self, name: str) -> EndpointResponse:
        if name not in self._checks:
            return EndpointResponse(404, body=b"404 page not found\n")
        reason = await self._reason(name, self._checks[name])
        if reason is None:
            return EndpointResponse(body=b"ok")
        return EndpointResponse(500, body=f"internal server error: {reason}\n".encode())

    async def _all(self, excluded: set[str], is_verbose: bool) -> EndpointResponse:
        names = sorted(self._checks)
        failing = await self._reasons([name for name in names if name not in excluded])
        lines = []
        for name in names:
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
            elif name in failing:
                lines.append(f"[-]{name} failed: {failing[name]}")
            else:
                lines.append(f"[+]{name} ok")
        unknown = sorted(excluded - self._checks.keys())
        if unknown:
            quoted = ",".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
        if not failing and not is_verbose:
            return EndpointResponse(body=b"ok")
        lines.append(f"{self.name} check {'failed' if failing else 'passed'}\n")
        return EndpointResponse(500 if failing else 200, body="\n".join(lines).encode())

    async def _reasons(self, names: Collection[str]) -> dict[str, str]:
        """The reasons of the checks that fail. They run concurrently, so that none waits for another's timeout."""
        reasons = await asyncio.gather(*[self._reason(name, self._checks[name]) for name in names])
        return {name: reason for name, reason in zip(names, reasons, strict=True) if reason is not None}

    async def _reason(self, name: str, entered: _Entered) -> str | None:
        reason: object
        try:
            reason = entered.check()
            if inspect.isawaitable(reason):
                async with asyncio.timeout(entered.timeout) as limit:
                    reason = await reason
        except Exception as error:
            if isinstance(error, TimeoutError) and limit.expired():
                return f"no result within {entered.timeout:g} s"
            _log.exception("the check %s of %s raised", name, self.name)
            # Its message may hold anything.
            return f"the check raised {type(error).__name__}; the log has more"
        return _worded(reason)


def _check_callable(check: object, what: str) -> None:
    if callable(check):
        return
    if inspect.iscoroutine(check):
        check.close()  # or Python would complain that it was never awaited
    raise TypeError(
        f"{what} is {check!r}: expected a function, which is called for each probe and returns None or the reason"
    )


def _worded(reason: object) -> str | None:
    if reason is None or isinstance(reason, str):
        return reason
    return f"the check returned {reason!r}: expected None when all is well, or the reason as text"
