"""The pytest plugin, loaded wherever kubewright is installed: it costs nothing until one of its fixtures is used.

`real_control_plane` is one genuine Kubernetes API server for the whole test run, `namespace` a fresh namespace in it
for one test. Without the binaries, tests that use them are skipped and the run says so in its last line; with
KUBEWRIGHT_REQUIRE_REAL=1 it also fails. `embedded_control_plane` is one in the test's own process.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kubewright.controlplane import ControlPlane
    from kubewright.controlplane.embedded.plane import EmbeddedControlPlane

_async_fixture: Callable[[Callable[[], AsyncGenerator[EmbeddedControlPlane, None]]], object]
try:
    # In strict mode only this one makes async fixtures; it comes with kubewright[testing].
    from pytest_asyncio import fixture as _async_fixture
except ImportError:
    _async_fixture = pytest.fixture

_REAL = "a real control plane"
# What a test may find missing, and how to get it. The reason of such a skip begins with `needs`, this, and a colon.
_WAYS = {
    _REAL: "make control-plane (or: python -m kubewright.controlplane.binaries)",
    "Go": "put go on the PATH, and let it download its modules once",
}


@pytest.fixture(scope="session")
def real_control_plane() -> Iterator[ControlPlane]:
    """The genuine kube-apiserver, etcd and kube-controller-manager, started once per test run."""
    from kubewright.controlplane import BinariesNotFound, ControlPlane, ControlPlaneError

    try:
        # Nothing is compacted: what a test finds must not depend on how long the run has lasted before it.
        plane = ControlPlane.real(controller_manager=True, api_server_flags=["--etcd-compaction-interval=0"])
        _run(plane.start())
    except BinariesNotFound as error:
        pytest.skip(f"needs {_REAL}: {error}")
    except ControlPlaneError as error:
        pytest.fail(f"kubewright: {error}", pytrace=False)
    yield plane
    _run(plane.stop())


@_async_fixture
async def embedded_control_plane() -> AsyncGenerator[EmbeddedControlPlane, None]:
    """A control plane in the test's own event loop, fresh for each test."""
    from kubewright.controlplane import ControlPlane

    async with ControlPlane.embedded() as plane:
        yield plane


@pytest.fixture
def namespace(real_control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a namespace that is this test's own. What a test leaves in it is deleted, without waiting for it."""
    from kubewright.testing.namespaces import create_namespace, delete_namespace, unique_name

    name = unique_name(request.node.name)
    create_namespace(real_control_plane, name)
    yield name
    # The server may be the very thing that the test has broken, and everything in it is discarded after the run anyway.
    with contextlib.suppress(OSError, http.client.HTTPException):
        delete_namespace(real_control_plane, name)


def pytest_configure(config: pytest.Config) -> None:
    """Watch, for this run only, for tests that need what is not there."""
    config.pluginmanager.register(_MissingTests(), "kubewright-missing-tests")


class _MissingTests:
    """Remembers the tests that did not run for want of something, and says so at the end."""

    def __init__(self) -> None:
        self._tests: dict[str, list[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # With xdist, reports arrive here serialized: the reason is all there is to recognise them by.
        if report.skipped and isinstance(report.longrepr, tuple):
            for missing in _WAYS:
                if report.longrepr[2].startswith(f"Skipped: needs {missing}: "):
                    self._tests.setdefault(missing, []).append(report.nodeid)

    # Outermost, so that the line comes after everything else that a run prints, the coverage report included.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        result = yield
        if self._tests:
            if _required() and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
            reporter = session.config.pluginmanager.get_plugin("terminalreporter")
            if isinstance(reporter, pytest.TerminalReporter):
                for missing, tests in self._tests.items():
                    _say_so(reporter, missing, tests)
        return result


def _say_so(reporter: pytest.TerminalReporter, missing: str, tests: list[str]) -> None:
    files = Counter(test.partition("::")[0] for test in tests)
    which = ", ".join(f"{file} ({count})" for file, count in files.items())
    verdict = "FAILED, KUBEWRIGHT_REQUIRE_REAL=1: " if _required() else ""
    reporter.write_line(
        f"{verdict}{len(tests)} tests DID NOT RUN without {missing}: {which}; to run them: {_WAYS[missing]}",
        red=_required(),
        yellow=not _required(),
        bold=True,
    )


def _required() -> bool:
    return os.environ.get("KUBEWRIGHT_REQUIRE_REAL") == "1"


def _run(work: Coroutine[None, None, None]) -> None:
    # In a thread of its own: the event loop of this one, if any, belongs to the test framework.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()
