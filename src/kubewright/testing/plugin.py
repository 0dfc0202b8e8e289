"""The pytest plugin, loaded wherever kubewright is installed: it costs nothing until one of its fixtures is used.

    async def test_a_widget_gets_a_pod(control_plane, admin, namespace, install, running): ...

`control_plane` runs a test on the embedded and on a real control plane; `--control-plane=embedded` or `real`, or
`control_plane = embedded` in the configuration of pytest, selects one. Without the binaries of the real one, tests that
need it are skipped and the run says so in its last line; with KUBEWRIGHT_REQUIRE_REAL=1 it also fails.
`--record-permissions FILE` records what users of `restricted_client` request.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    from kubewright.client import Client
    from kubewright.controlplane import ControlPlane
    from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
    from kubewright.testing.fixtures import Install, Running
    from kubewright.testing.webhooks import LocalWebhooks

T = TypeVar("T")

_async_fixture: Callable[[Callable[..., AsyncGenerator[T, None]]], object]
try:
    # In strict mode only this one makes async fixtures; it comes with kubewright[testing].
    from pytest_asyncio import fixture as _async_fixture
except ImportError:
    _async_fixture = pytest.fixture

# What may not be available to a test, and how to get it. The reason of such a skip begins with `needs`, this, and a
# colon.
_WAYS = {
    "a real control plane": "make control-plane (or: python -m kubewright.controlplane.binaries)",
    "Go": "put go on the PATH, and let it download its modules once",
}


@pytest.fixture(scope="session")
def real_control_plane() -> Iterator[ControlPlane]:
    """The genuine kube-apiserver, etcd and kube-controller-manager, started once per test run."""
    from kubewright.testing.genuine import genuine_control_plane

    with genuine_control_plane() as plane:
        yield plane


@_async_fixture
async def embedded_control_plane() -> AsyncGenerator[EmbeddedControlPlane, None]:
    """A control plane in the test's own event loop, fresh for each test."""
    from kubewright.controlplane import ControlPlane

    async with ControlPlane.embedded() as plane:
        yield plane


@pytest.fixture(params=["embedded", "real"])
def control_plane(request: pytest.FixtureRequest) -> ControlPlane:
    """Each control plane in turn: the embedded one, fresh for each test, and the real one, shared by the test run."""
    plane: ControlPlane = request.getfixturevalue(f"{request.param}_control_plane")
    return plane


@_async_fixture
async def admin(control_plane: ControlPlane) -> AsyncGenerator[Client, None]:
    """A client with all rights on `control_plane`."""
    async with control_plane.client() as client:
        yield client


@_async_fixture
async def namespace(admin: Client, request: pytest.FixtureRequest) -> AsyncGenerator[str, None]:
    """The name of a namespace on `control_plane` that is this test's own. It is deleted with everything in it."""
    from kubewright.testing.fixtures import own_namespace

    async with own_namespace(admin, request.node.name) as name:
        yield name


@pytest.fixture
def install(admin: Client) -> Install:
    """Installs definitions, from classes or files. They stay, on the real control plane for the whole run."""
    from kubewright.testing.fixtures import install_with

    return install_with(admin)


@pytest.fixture
def running() -> Running:
    """Runs a manager while a block runs; after the block it has ended, without an error."""
    from kubewright.testing.fixtures import run_manager

    return run_manager


@pytest.fixture
def local_webhooks(tmp_path_factory: pytest.TempPathFactory) -> LocalWebhooks:
    """A certificate for the webhooks of a manager in this test, and a way to make `control_plane` call them."""
    from kubewright.testing.webhooks import LocalWebhooks

    return LocalWebhooks(tmp_path_factory.mktemp("webhooks"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the choice of control planes, and the record of permissions."""
    text = "the control planes that tests with the fixture control_plane run on: embedded, real or both (default: both)"
    parser.getgroup("kubewright").addoption("--control-plane", choices=["embedded", "real", "both"], help=text)
    parser.addini("control_plane", text, default="both")
    parser.getgroup("kubewright").addoption(
        "--record-permissions",
        metavar="FILE",
        help="record the requests of restricted clients, for kubewright roles PACKAGE:SETUP --used FILE",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect, for this run only, the tests that need something that is not available."""
    config.pluginmanager.register(_SkippedTests(), "kubewright-need-tests")
    if _selected(config) not in ("embedded", "real", "both"):
        raise pytest.UsageError(f'control_plane is "{_selected(config)}": expected embedded, real or both')
    if file := config.getoption("--record-permissions"):
        _record(config, Path(file).absolute())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests on control planes that were not selected."""
    selected = _selected(config)
    if selected == "both":
        return
    out = [item for item in items if _plane_of(item) not in (None, selected)]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if _plane_of(item) in (None, selected)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Explain the error of a test that uses kubewright wrongly, as a program's would be explained."""
    try:
        return (yield)
    except (TypeError, AttributeError) as error:
        from kubewright.api.errors import explain_misuse

        explain_misuse(error)
        raise


def _record(config: pytest.Config, file: Path) -> None:
    """Have restricted clients record their requests, in this process and in those of pytest-xdist."""
    from kubewright.testing.recording import VARIABLE

    patch = pytest.MonkeyPatch()
    patch.setenv(VARIABLE, str(file))
    config.add_cleanup(patch.undo)
    if hasattr(config, "workerinput"):  # a process of pytest-xdist, which the first one has started
        return
    try:
        file.write_bytes(b"")
    except OSError as error:
        raise pytest.UsageError(f"--record-permissions: cannot write {file}: {error.strerror}") from None
    config.pluginmanager.register(_Record(file), "kubewright-record")


class _Record:
    """Reports at the end of a run what was recorded."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        count = self._file.read_bytes().count(b"\n")
        said = "no test has used restricted_client, so that there is nothing in"
        terminalreporter.write_line(f"{f'recorded {count} requests in' if count else said} {self._file}")


def _selected(config: pytest.Config) -> str:
    chosen: str = config.getoption("--control-plane") or config.getini("control_plane")
    return chosen


def _plane_of(item: pytest.Item) -> str | None:
    """The control plane that a test is parametrized with."""
    callspec = getattr(item, "callspec", None)
    plane = callspec.params.get("control_plane") if callspec is not None else None
    return plane if isinstance(plane, str) else None


class _SkippedTests:
    """Collects the tests that did not run because something is not available, and reports them at the end."""

    def __init__(self) -> None:
        self._tests: dict[str, list[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # With xdist, reports arrive here serialized: the reason is all there is to recognise them by.
        if report.skipped and isinstance(report.longrepr, tuple):
            for need in _WAYS:
                if report.longrepr[2].startswith(f"Skipped: needs {need}: "):
                    self._tests.setdefault(need, []).append(report.nodeid)

    # Outermost, so that the line comes after everything else that a run prints, the coverage report included.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        result = yield
        if self._tests:
            if _required() and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
            reporter = session.config.pluginmanager.get_plugin("terminalreporter")
            if isinstance(reporter, pytest.TerminalReporter):
                for need, tests in self._tests.items():
                    _report(reporter, need, tests)
        return result


def _report(reporter: pytest.TerminalReporter, need: str, tests: list[str]) -> None:
    files = Counter(test.partition("::")[0] for test in tests)
    which = ", ".join(f"{file} ({count})" for file, count in files.items())
    verdict = "FAILED, KUBEWRIGHT_REQUIRE_REAL=1: " if _required() else ""
    reporter.write_line(
        f"{verdict}{len(tests)} tests DID NOT RUN without {need}: {which}; to run them: {_WAYS[need]}",
        red=_required(),
        yellow=not _required(),
        bold=True,
    )


def _required() -> bool:
    return os.environ.get("KUBEWRIGHT_REQUIRE_REAL") == "1"
