"""What is logged inside a reconcile names its object, in whatever way the program configures its log."""

from __future__ import annotations

import asyncio
import io
import logging
import logging.handlers
import pickle
import queue
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.controller.scripted import LONG, running

from kubewright.controller.context import ReconcileContext, current
from kubewright.controller.controllers import Controller
from kubewright.controller.log_context import installed
from kubewright.controller.reconcile import Request
from kubewright.controller.statistics import ControllerStatistics
from kubewright.manager.log import JSONFormatter
from kubewright.testing.virtual_time import virtual

_log = logging.getLogger("user")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    factory = logging.getLogRecordFactory()
    with warnings.catch_warnings():
        yield
    logging.setLogRecordFactory(factory)


@pytest.fixture
def in_use() -> Iterator[None]:
    with installed():
        yield


@contextmanager
def reconciling(namespace: str = "shop", name: str = "web") -> Iterator[None]:
    token = current.set(
        ReconcileContext("widget", "example.com", "Widget", namespace, name, "id", (), ControllerStatistics(1))
    )
    try:
        yield
    finally:
        current.reset(token)


@contextmanager
def written_to(format_: str) -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(format_))
    _log.addHandler(handler)
    try:
        yield stream
    finally:
        _log.removeHandler(handler)


@pytest.mark.usefixtures("in_use")
def test_a_line_names_its_object_with_any_formatter() -> None:
    with written_to("%(levelname)s %(message)s") as written:
        with reconciling():
            _log.warning("created %s", "a pod")
        with reconciling(namespace=""):
            _log.warning("100 %")
        _log.warning("outside of any reconcile")
    assert written.getvalue().splitlines() == [
        "WARNING [widget shop/web] created a pod",
        "WARNING [widget web] 100 %",
        "WARNING outside of any reconcile",
    ]


@pytest.mark.usefixtures("in_use")
def test_a_format_can_write_it_where_it_wants() -> None:
    with written_to("%(reconcile)s"), reconciling():
        _log.warning("created")
        (record,) = _records(lambda: _log.warning("created %s", "a pod"))
    assert record.__dict__["reconcile"] == "widget shop/web"
    assert (record.msg, record.args) == ("created %s", ("a pod",)), "as tools that group by it expect"


def _records(act: object) -> list[logging.LogRecord]:
    found: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record)

    handler = Keep()
    _log.addHandler(handler)
    try:
        assert callable(act)
        act()
    finally:
        _log.removeHandler(handler)
    return found


@pytest.mark.usefixtures("in_use")
def test_a_record_that_goes_through_a_queue_or_a_socket_names_it_once() -> None:
    waiting: queue.Queue[logging.LogRecord] = queue.Queue()
    handler = logging.handlers.QueueHandler(waiting)
    with reconciling():
        (record,) = _records(lambda: _log.warning("created %s", "a pod"))
        handler.handle(record)
    assert waiting.get().getMessage() == "[widget shop/web] created a pod"
    sent = pickle.loads(logging.handlers.SocketHandler("", 0).makePickle(record)[4:])  # our own
    assert logging.makeLogRecord(sent).getMessage() == "[widget shop/web] created a pod"


@pytest.mark.usefixtures("in_use")
def test_the_log_of_the_manager_has_it_in_fields_alone() -> None:
    with reconciling():
        (record,) = _records(lambda: _log.warning("created"))
        line = JSONFormatter().format(record)
    assert '"msg":"created","controller":"widget","namespace":"shop","name":"web","reconcileID":"id"}' in line


def test_a_record_class_of_the_program_is_left_as_it_is() -> None:
    class Own(logging.LogRecord):
        def getMessage(self) -> str:
            return "own"

    logging.setLogRecordFactory(Own)
    with installed(), reconciling():
        (record,) = _records(lambda: _log.warning("created"))
    assert type(record) is Own
    assert record.getMessage() == "own"
    assert record.__dict__["reconcile"] == "widget shop/web"


def test_the_last_to_leave_restores_what_was_there() -> None:
    before = logging.getLogRecordFactory(), warnings.showwarning
    with installed():
        ours = logging.getLogRecordFactory(), warnings.showwarning
        with installed():
            assert (logging.getLogRecordFactory(), warnings.showwarning) == ours
        assert (logging.getLogRecordFactory(), warnings.showwarning) == ours
    assert (logging.getLogRecordFactory(), warnings.showwarning) == before


def test_what_a_program_has_put_around_it_stays() -> None:
    with installed():
        ours = logging.getLogRecordFactory()

        def around(*args: object, **kwargs: object) -> logging.LogRecord:
            return ours(*args, **kwargs)

        logging.setLogRecordFactory(around)
    assert logging.getLogRecordFactory() is around


@virtual
async def test_a_running_controller_needs_no_configuration_for_it(caplog: pytest.LogCaptureFixture) -> None:
    async def reconcile(request: Request) -> None:
        _log.warning("from the reconciler")
        await asyncio.create_task(helper())

    async def helper() -> None:
        _log.warning("from a task of it")

    controller: Controller[Request] = Controller("widget", reconcile)
    before = logging.getLogRecordFactory(), warnings.showwarning
    async with running(controller):
        controller.queue.add(Request("shop", "web"))
        await asyncio.sleep(LONG)
    assert (logging.getLogRecordFactory(), warnings.showwarning) == before, "nothing is left behind"
    assert caplog.messages == ["[widget shop/web] from the reconciler", "[widget shop/web] from a task of it"]


async def _create() -> None:
    """What should have been awaited."""


@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_coroutine_that_is_not_awaited_is_an_error_that_names_the_line(
    in_thread: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def reconcile(request: Request) -> None:
        _create()  # type: ignore[unused-coroutine]  # the mistake

    def reconcile_in_thread(request: Request) -> None:
        _create()  # type: ignore[unused-coroutine]  # the mistake

    warnings.simplefilter("default")  # as Python has it; in this suite warnings are errors
    controller: Controller[Request] = Controller("widget", reconcile_in_thread if in_thread else reconcile)
    tasks = [asyncio.create_task(controller.run_sources()), asyncio.create_task(controller.run_workers())]
    async with asyncio.timeout(30), controller.reconciles() as reconciles:
        controller.queue.add(Request("shop", "web"))
        await anext(reconciles)
    controller.stop()
    tasks[0].cancel()
    await asyncio.wait(tasks)
    (record,) = caplog.records
    first = (reconcile_in_thread if in_thread else reconcile).__code__.co_firstlineno
    how = "run_in_loop(…) around the call" if in_thread else "await before the call"
    assert record.levelname == "ERROR"
    assert record.getMessage() == (
        f"[widget shop/web] coroutine '_create' was never awaited, so that it did nothing: write {how} at "
        f"{Path(__file__)}:{first + 1}"
    )


def test_other_warnings_are_shown_as_before() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with installed():
            with reconciling():
                warnings.warn("something else", RuntimeWarning, stacklevel=1)
            _create()  # type: ignore[unused-coroutine]  # outside of any reconcile
    assert [str(each.message) for each in shown] == ["something else", "coroutine '_create' was never awaited"]
