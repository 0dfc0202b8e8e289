from __future__ import annotations

import io
import json
import logging
import re
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from kubewright.api.core.v1 import ConfigMap, Secret
from kubewright.api.dynamic import Dynamic
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ObjectMeta
from kubewright.controller.context import ReconcileContext, current
from kubewright.controller.statistics import ControllerStatistics
from kubewright.manager import serving
from kubewright.manager.log import ConsoleFormatter, JSONFormatter, configure, stack_trace

log = logging.getLogger("podmanager")
ours = logging.getLogger("kubewright.manager.test")
SECRET = Secret(
    metadata=ObjectMeta(name="password", namespace="shop", annotations={"last-applied": "hunter2"}),
    data={"password": "hunter2"},
    string_data={"password": "hunter2"},
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def lines() -> io.StringIO:
    """What is written as JSON."""
    stream = io.StringIO()
    configure("json", stream=stream)
    return stream


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What is written for people, without colours."""
    stream = io.StringIO()
    configure("console", stream=stream)
    return stream


@pytest.fixture
def reconcile() -> Iterator[None]:
    token = current.set(
        ReconcileContext("podmanager", "apps", "PodManager", "shop", "web", "abc-1", (), ControllerStatistics(1))
    )
    yield
    current.reset(token)


def only(stream: io.StringIO) -> dict[str, object]:
    """The one line there is."""
    assert stream.getvalue().count("\n") == 1
    found = json.loads(stream.getvalue())
    assert isinstance(found, dict)
    return found


def test_a_line_of_json_has_time_level_logger_and_message_first(lines: io.StringIO) -> None:
    log.warning("scaled from %d to %d", 2, 3)
    line = only(lines)
    assert list(line) == ["ts", "level", "logger", "msg"]
    assert (line["level"], line["logger"], line["msg"]) == ("warning", "podmanager", "scaled from 2 to 3")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", str(line["ts"]))
    assert abs((datetime.fromisoformat(str(line["ts"])) - datetime.now(UTC)).total_seconds()) < 60


def test_each_line_has_its_own_time_to_the_millisecond() -> None:
    formatter = JSONFormatter()

    def stamp(created: float) -> str:
        written = json.loads(formatter.format(logging.makeLogRecord({"msg": "m", "created": created})))["ts"]
        assert isinstance(written, str)
        return written

    noon = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
    assert stamp(0) == "1970-01-01T00:00:00.000Z"
    assert stamp(noon + 0.25) == "2026-01-01T12:00:00.250Z"
    assert stamp(noon + 0.5) == "2026-01-01T12:00:00.500Z"
    assert stamp(noon + 61) == "2026-01-01T12:01:01.000Z"
    assert stamp(noon) == "2026-01-01T12:00:00.000Z"


@pytest.mark.usefixtures("reconcile")
def test_the_reconcile_and_the_extra_fields_follow(lines: io.StringIO) -> None:
    log.info("scaled", extra={"replicas": 3, "pods": ["a", "b"], "controller": "impostor"})
    line = only(lines)
    assert list(line)[4:] == ["controller", "namespace", "name", "reconcileID", "replicas", "pods"]
    assert [line[name] for name in ("controller", "namespace", "name", "reconcileID")] == [
        "podmanager",
        "shop",
        "web",
        "abc-1",
    ]
    assert line["replicas"] == 3
    assert line["pods"] == ["a", "b"]


def test_cluster_scoped_objects_have_no_namespace(lines: io.StringIO) -> None:
    token = current.set(ReconcileContext("nodes", "", "Node", "", "node-1", "abc-2", (), ControllerStatistics(1)))
    log.info("seen")
    current.reset(token)
    line = only(lines)
    assert "namespace" not in line
    assert line["name"] == "node-1"


@dataclass
class Event:
    kind: str
    object: Secret


@pytest.mark.parametrize("format_", ["json", "console"])
def test_objects_are_references_wherever_they_are(format_: str) -> None:
    stream = io.StringIO()
    configure("json" if format_ == "json" else "console", stream=stream)
    dynamic = Dynamic.of("v1", "Secret")(metadata=ObjectMeta(name="other"), content={"data": {"x": "hunter2"}})
    log.info("%s", SECRET)
    log.info("%r", SECRET)
    log.info("%(which)s", {"which": SECRET})
    log.info("all of %s", [SECRET, {"deep": (SECRET,)}])
    log.info("a dictionary %s", {"secret": SECRET})
    log.info("seen %s", Event("ADDED", SECRET))
    log.info("dynamic %s", dynamic)
    log.info(
        "extra", extra={"secret": SECRET, "all": [SECRET], "nested": {"a": {"b": SECRET}}, "event": Event("a", SECRET)}
    )
    log.info(SECRET)
    log.info([SECRET])
    text = stream.getvalue()
    assert "hunter2" not in text
    assert text.count("password") >= 9
    assert "Secret shop/password" in text
    assert "Event(Secret shop/password)" in text


def test_references_have_kind_namespace_and_name(lines: io.StringIO) -> None:
    log.info(
        "x",
        extra={
            "pod": ConfigMap(metadata=ObjectMeta(name="web-0", namespace="shop")),
            "key": ObjectKey("shop", "web-0"),
            "error": ValueError("broken"),
        },
    )
    line = only(lines)
    assert line["pod"] == {"kind": "ConfigMap", "namespace": "shop", "name": "web-0"}
    assert line["key"] == "shop/web-0"
    assert line["error"] == "ValueError: broken"


def test_a_value_that_cannot_be_shown_does_not_lose_the_line(lines: io.StringIO) -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError

        __repr__ = __str__

    loop: list[object] = []
    loop.append(loop)
    log.info("x", extra={"broken": Broken(), "loop": loop, "set": {1}, "big": 2**100})
    line = only(lines)
    assert line["broken"] == "<Broken that cannot be shown: RuntimeError>"
    assert line["set"] == [1]


def test_nothing_is_formatted_for_lines_that_are_not_written(lines: io.StringIO) -> None:
    class Costly:
        def __str__(self) -> str:
            raise AssertionError

    ours.debug("%s", Costly())
    assert lines.getvalue() == ""


@pytest.mark.parametrize(
    ("verbosity", "of_ours", "of_others"), [(0, False, False), (1, True, False), (3, True, False), (4, True, True)]
)
def test_verbosity_decides_whose_debug_lines_are_written(verbosity: int, of_ours: bool, of_others: bool) -> None:
    stream = io.StringIO()
    configure("json", verbosity, stream)
    log.debug("theirs")
    ours.debug("ours")
    assert ("theirs" in stream.getvalue()) is of_others
    assert ('"ours"' in stream.getvalue()) is of_ours
    log.info("info")
    assert '"info"' in stream.getvalue()


def test_a_second_call_replaces_the_first() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure("json", 4, first)
    configure("json", 0, second)
    log.info("once")
    log.debug("not at all")
    assert first.getvalue() == ""
    assert only(second)["msg"] == "once"


@pytest.mark.parametrize(("stream", "is_json"), [(io.StringIO(), True), (Terminal(), False)])
def test_the_format_fits_the_stream(stream: io.StringIO, is_json: bool) -> None:
    configure(stream=stream)
    log.info("hello")
    assert stream.getvalue().startswith("{") is is_json


def test_the_log_goes_to_standard_error_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    configure()
    log.info("hello")
    assert '"msg":"hello"' in capsys.readouterr().err


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match='"xml" is not a format of the log: expected "console" or "json"'):
        configure("xml")  # type: ignore[arg-type]  # what is refused
    with pytest.raises(ValueError, match="the verbosity of the log is -1: expected 0 or more"):
        configure(verbosity=-1)


# Errors


def caller_of(source: str, filename: str) -> types.FunctionType:
    """A function `call(function)` that seems to come from another file."""
    namespace: dict[str, object] = {}
    exec(compile(source, filename, "exec"), namespace)
    found = namespace["call"]
    assert isinstance(found, types.FunctionType)
    return found


CALL = "def call(function):\n    function()\n"


def users() -> None:
    raise ValueError("the user's mistake")


def raised(function: Callable[[], object]) -> Exception:
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError


def test_tracebacks_show_the_users_frames_only_and_how_many_are_left_out() -> None:
    framework = caller_of(CALL, serving.__file__)
    error = raised(lambda: framework(lambda: framework(users)))
    text = stack_trace(error)
    assert 'raise ValueError("the user\'s mistake")' in text
    assert "serving.py" not in text
    assert text.endswith("ValueError: the user's mistake\n(2 frames of kubewright and asyncio left out)")
    assert text.startswith("Traceback (most recent call last):\n")


def test_frames_of_asyncio_are_left_out() -> None:
    import asyncio

    async def main() -> None:
        async with asyncio.timeout(10):
            await asyncio.wait_for(asyncio.to_thread(users), 5)

    error = raised(lambda: asyncio.run(main()))
    text = stack_trace(error)
    assert "/asyncio/" not in text
    assert "in users" in text
    assert "in main" in text
    assert "frames of kubewright and asyncio left out)" in text


def test_an_error_of_the_framework_itself_is_shown_whole() -> None:
    error = raised(caller_of("def call():\n    raise KeyError('bug')\n", serving.__file__))
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next
    text = stack_trace(error)
    assert "serving.py" in text
    assert "left out" not in text


def test_causes_and_groups_are_shown_the_same_way() -> None:
    framework = caller_of(CALL, serving.__file__)

    def chained() -> None:
        try:
            framework(users)
        except ValueError as error:
            raise ExceptionGroup("several", [raised(lambda: framework(users))]) from error

    text = stack_trace(raised(chained))
    assert text.count("the user's mistake") >= 2
    assert "serving.py" not in text
    assert "(2 frames of kubewright and asyncio left out)" in text


def test_an_error_in_json_has_its_own_fields(lines: io.StringIO) -> None:
    try:
        users()
    except ValueError:
        log.exception("failed")
    line = only(lines)
    assert line["error"] == "ValueError: the user's mistake"
    assert "in users" in str(line["stacktrace"])


# The console


@pytest.mark.usefixtures("reconcile")
def test_a_console_line_is_short(console: io.StringIO) -> None:
    log.info(
        "scaled",
        extra={"replicas": 3, "why": "more load", "pod": ConfigMap(metadata=ObjectMeta(name="a", namespace="b"))},
    )
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d\.\d{3} INFO  podmanager  scaled  controller=podmanager namespace=shop name=web "
        r'reconcileID=abc-1 replicas=3 why="more load" pod=ConfigMap/b/a\n',
        console.getvalue(),
    )


def test_levels_are_aligned(console: io.StringIO) -> None:
    for level in (logging.INFO, logging.WARNING, logging.ERROR):
        log.log(level, "x")
    assert [line[13:22] for line in console.getvalue().splitlines()] == ["INFO  pod", "WARN  pod", "ERROR pod"]


def test_control_characters_and_fake_lines_are_escaped(console: io.StringIO) -> None:
    log.info("a\x1b[31mb\r\n12:00:00.000 INFO  fake", extra={"x": "\x1b]0;title\x07\ny"})
    first, second = console.getvalue().splitlines()
    assert "\\x1b[31mb" in first
    assert second.startswith("  12:00:00.000 INFO  fake")
    assert "\x1b" not in console.getvalue()
    assert "\x07" not in console.getvalue()


def test_tracebacks_come_below_the_line(console: io.StringIO) -> None:
    try:
        users()
    except ValueError:
        log.exception("failed")
    text = console.getvalue()
    assert "  failed\n" in text
    assert text.rstrip().endswith("ValueError: the user's mistake")


@pytest.mark.parametrize(("no_color", "is_coloured"), [(None, True), ("", True), ("1", False)])
def test_colours_are_for_terminals_without_no_color(
    no_color: str | None, is_coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    stream = Terminal()
    configure(stream=stream)
    log.error("x")
    assert ("\x1b[" in stream.getvalue()) is is_coloured


def test_there_are_no_colours_in_a_file() -> None:
    stream = io.StringIO()
    configure("console", stream=stream)
    log.error("x")
    assert "\x1b" not in stream.getvalue()


def test_a_requested_stack_is_shown(lines: io.StringIO) -> None:
    log.info("here", stack_info=True)
    assert "test_a_requested_stack_is_shown" in str(only(lines)["stack"])
    record = logging.makeLogRecord({"name": "x", "msg": "m", "stack_info": "Stack:\n  frame"})
    assert ConsoleFormatter(is_coloured=False).format(record).endswith("m\nStack:\n    frame")
