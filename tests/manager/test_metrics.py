from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kubewright.controller.statistics import QUEUE_BOUNDS, RECONCILE_BOUNDS, Histogram
from kubewright.manager.exposition import Family, Sample, render
from kubewright.manager.metrics import Metrics
from kubewright.manager.runtime_metrics import RESULTS, runtime_families
from kubewright.manager.serving import Query

GO = Path(__file__).parent / "controller_runtime_metrics.txt"
"""What a manager of controller-runtime 0.24.1 with one controller and leader election answers."""


@dataclass
class Parsed:
    """One family of an exposition."""

    type: str
    help: str
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], float] = field(default_factory=dict)

    def labels(self) -> set[tuple[str, ...]]:
        return {tuple(sorted(name for name, _ in labels)) for _, labels in self.samples}


_HELP = re.compile(r"# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ((?:[^\\\n]|\\\\|\\n)*)")
_TYPE = re.compile(r"# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram|untyped)")
_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
_SAMPLE = re.compile(
    rf"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{{({_LABEL}(?:,{_LABEL})*)\}})? "
    r"(NaN|[+-]Inf|[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
)


def parse(text: bytes) -> dict[str, Parsed]:
    """The families of a text that keeps all rules of the format 0.0.4, and of histograms."""
    families: dict[str, Parsed] = {}
    name = ""
    decoded = text.decode()
    assert decoded.endswith("\n")
    lines = iter(decoded.split("\n")[:-1])
    for line in lines:
        if line.startswith("#"):
            described, typed = _HELP.fullmatch(line), _TYPE.fullmatch(next(lines))
            assert described, line
            assert typed, line
            assert described[1] == typed[1]
            name = described[1]
            assert name not in families, f"{name} comes twice"
            families[name] = Parsed(typed[2], described[2])
            continue
        sample = _SAMPLE.fullmatch(line)
        assert sample, line
        suffix = sample[1].removeprefix(name)
        assert sample[1] == name + suffix
        assert suffix in (("_bucket", "_sum", "_count") if families[name].type == "histogram" else ("",))
        labels = tuple(
            (key, value.replace(r"\\", "\0").replace(r"\"", '"').replace(r"\n", "\n").replace("\0", "\\"))
            for key, value in re.findall(r'([a-zA-Z0-9_]+)="((?:[^"\\]|\\.)*)"', sample[2] or "")
        )
        assert len({key for key, _ in labels}) == len(labels)
        key = (suffix, tuple(sorted(labels)))
        assert key not in families[name].samples, f"{line} comes twice"
        families[name].samples[key] = float(sample[3])
    for family in families.values():
        if family.type == "histogram":
            _check_histogram(family)
        elif family.type == "counter":
            assert all(value >= 0 for value in family.samples.values())
    return families


def _check_histogram(family: Parsed) -> None:
    series: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    for (suffix, labels), value in family.samples.items():
        if suffix == "_bucket":
            rest = tuple(each for each in labels if each[0] != "le")
            series.setdefault(rest, []).append((float(dict(labels)["le"]), value))
    counts = {labels: value for (suffix, labels), value in family.samples.items() if suffix == "_count"}
    assert counts.keys() == series.keys()
    assert {labels for suffix, labels in family.samples if suffix == "_sum"} == series.keys()
    for labels, buckets in series.items():
        assert buckets == sorted(buckets)
        assert [value for _, value in buckets] == sorted(value for _, value in buckets)
        assert buckets[-1] == (math.inf, counts[labels])


# An operator's own metrics


def test_counters_gauges_and_histograms_are_rendered() -> None:
    metrics = Metrics()
    scaled = metrics.counter("scaled_total", "Pods that came and went", labels=["direction"])
    scaled.labels(direction="up").add(2)
    scaled.labels(direction="up").add()
    scaled.labels(direction="down").add(0.5)
    pods = metrics.gauge("pods", "Pods that are there")
    pods.set(3)
    pods.add(-1)
    duration = metrics.histogram("duration_seconds", "How long it took", bounds=[0.1, 1, 10], labels=["step"])
    for value in (0.05, 0.1, 0.5, 100):
        duration.labels(step="create").observe(value)
    assert metrics.render().decode() == (
        "# HELP scaled_total Pods that came and went\n"
        "# TYPE scaled_total counter\n"
        'scaled_total{direction="up"} 3\n'
        'scaled_total{direction="down"} 0.5\n'
        "# HELP pods Pods that are there\n"
        "# TYPE pods gauge\n"
        "pods 2\n"
        "# HELP duration_seconds How long it took\n"
        "# TYPE duration_seconds histogram\n"
        'duration_seconds_bucket{step="create",le="0.1"} 2\n'
        'duration_seconds_bucket{step="create",le="1"} 3\n'
        'duration_seconds_bucket{step="create",le="10"} 3\n'
        'duration_seconds_bucket{step="create",le="+Inf"} 4\n'
        'duration_seconds_sum{step="create"} 100.65\n'
        'duration_seconds_count{step="create"} 4\n'
    )
    parse(metrics.render())


def test_a_metric_without_labels_is_there_from_the_start() -> None:
    metrics = Metrics()
    metrics.counter("a_total", "a")
    metrics.histogram("b_seconds", "b", [1])
    families = parse(metrics.render())
    assert families["a_total"].samples == {("", ()): 0}
    assert families["b_seconds"].samples[("_count", ())] == 0


def test_labels_and_descriptions_are_escaped() -> None:
    metrics = Metrics()
    awkward = 'a "b"\\c\nd, {e}=é'
    metrics.gauge("g", awkward, labels=["x"]).labels(x=awkward).set(1)
    text = metrics.render()
    assert text.count(b"\n") == 3
    assert parse(text)["g"].samples == {("", (("x", awkward),)): 1}


def test_values_that_are_no_ordinary_numbers_are_rendered() -> None:
    metrics = Metrics()
    gauge = metrics.gauge("g", "g", labels=["x"])
    values = {"inf": math.inf, "minus": -math.inf, "nan": math.nan, "tiny": 1e-300, "huge": 1e300, "int": 2**53}
    for name, value in values.items():
        gauge.labels(x=name).set(value)
    text = metrics.render().decode()
    assert '{x="inf"} +Inf\n' in text
    assert '{x="minus"} -Inf\n' in text
    assert '{x="nan"} NaN\n' in text
    samples = parse(metrics.render())["g"].samples
    for name in ("tiny", "huge", "int"):
        assert samples[("", (("x", name),))] == values[name]


def test_the_same_declaration_gives_the_same_metric() -> None:
    metrics = Metrics()
    metrics.counter("a_total", "a", labels=("x",)).labels(x="1").add()
    metrics.counter("a_total", "a", labels=["x"]).labels(x="1").add()
    assert b'a_total{x="1"} 2\n' in metrics.render()
    assert metrics.gauge("g", "g") is metrics.gauge("g", "g")


@pytest.mark.parametrize(
    "declare",
    [
        lambda metrics: metrics.gauge("a_total", "a", labels=["x"]),
        lambda metrics: metrics.counter("a_total", "b", labels=["x"]),
        lambda metrics: metrics.counter("a_total", "a", labels=["y"]),
        lambda metrics: metrics.counter("a_total", "a"),
        lambda metrics: metrics.histogram("h", "h", [1, 3]),
    ],
)
def test_another_declaration_of_the_same_name_is_refused(declare: Callable[[Metrics], object]) -> None:
    metrics = Metrics()
    metrics.counter("a_total", "a", labels=["x"])
    metrics.histogram("h", "h", [1, 2])
    with pytest.raises(ValueError, match=r"is declared already, in another way: as (counter|histogram) "):
        declare(metrics)


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "é", "a\n"])
def test_names_that_prometheus_does_not_take_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f'"{name}" cannot be the name of a metric')):
        Metrics().counter(name, "a")


@pytest.mark.parametrize("label", ["", "1a", "a-b", "__a", "é", "a:b"])
def test_labels_that_prometheus_does_not_take_are_refused(label: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f'"{label}" cannot be a label of the metric a_total')):
        Metrics().counter("a_total", "a", labels=[label])


def test_labels_that_are_in_the_way_of_the_format_are_refused() -> None:
    with pytest.raises(ValueError, match="used by the format itself"):
        Metrics().histogram("h", "h", [1], labels=["le"])
    with pytest.raises(ValueError, match="has the same label twice"):
        Metrics().counter("a_total", "a", labels=["x", "x"])
    with pytest.raises(TypeError, match=re.escape('["direction"], not "direction"')):
        Metrics().counter("a_total", "a", labels="direction")


def test_label_values_have_to_be_complete_and_strings() -> None:
    counter = Metrics().counter("a_total", "a", labels=["x", "y"])
    for values in ({}, {"x": "1"}, {"x": "1", "z": "2"}, {"x": "1", "y": "2", "z": "3"}):
        with pytest.raises(ValueError, match="the metric a_total has the labels x, y: give a value for each of them"):
            counter.labels(**values)
    with pytest.raises(TypeError, match="y=2: label values of the metric a_total are strings"):
        counter.labels(x="1", y=2)  # type: ignore[arg-type]  # what is refused


def test_any_name_can_be_a_label() -> None:
    metrics = Metrics()
    metrics.counter("a_total", "a", labels=["self", "name"]).labels(self="1", name="2").add()
    assert b'a_total{self="1",name="2"} 1\n' in metrics.render()


def test_a_counter_does_not_fall() -> None:
    with pytest.raises(ValueError, match=re.escape("a counter only rises: add(-1)")):
        Metrics().counter("a_total", "a").add(-1)


@pytest.mark.parametrize("bounds", [[], [1, 1], [2, 1], [1, math.inf], [math.nan]])
def test_bounds_that_make_no_buckets_are_refused(bounds: Sequence[float]) -> None:
    with pytest.raises(ValueError, match="the metric h "):
        Metrics().histogram("h", "h", bounds)


def test_families_can_be_collected_and_text_included_when_asked() -> None:
    metrics = Metrics()
    asked = 0

    def collect() -> Iterable[Family]:
        nonlocal asked
        asked += 1
        yield Family("collected", "gauge", "c", [Sample("", {"x": "y"}, asked)])

    metrics.collect(collect)
    metrics.include(lambda: b"# HELP included i\n# TYPE included gauge\nincluded 7")
    metrics.include(lambda: b"")
    for time_ in (1, 2):
        families = parse(metrics.render())
        assert families["collected"].samples == {("", (("x", "y"),)): time_}
        assert families["included"].samples == {("", ()): 7}


def test_families_of_one_name_are_put_together() -> None:
    families = [Family("a", "gauge", "first", [Sample("", {"x": x}, 1)]) for x in ("1", "2")]
    assert parse(render(families))["a"].samples.keys() == {("", (("x", "1"),)), ("", (("x", "2"),))}
    with pytest.raises(ValueError, match="the metric a is a gauge and a counter at once"):
        render([*families, Family("a", "counter", "b", [])])


async def test_the_answer_says_what_format_it_is_in() -> None:
    metrics = Metrics()
    metrics.counter("a_total", "a")
    answer = await metrics.answer(Query("/metrics"))
    assert answer.content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.body == metrics.render()


# The runtime's


@dataclass
class ControllerFigures:
    results: dict[str, int] = field(default_factory=dict)
    errors: int = 0
    terminal_errors: int = 0
    panics: int = 0
    timeouts: int = 0
    conflicts: int = 0
    hot_loops: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    reconcile_time: Histogram = field(default_factory=lambda: Histogram(RECONCILE_BOUNDS))
    workers: int = 1
    active: int = 0


@dataclass
class QueueFigures:
    adds: int = 0
    retries: int = 0
    queue_duration: Histogram = field(default_factory=lambda: Histogram(QUEUE_BOUNDS))
    work_duration: Histogram = field(default_factory=lambda: Histogram(QUEUE_BOUNDS))

    def unfinished_seconds(self) -> float:
        return 1.5

    def longest_running_seconds(self) -> float:
        return 0.5


@dataclass
class FakeQueue:
    depths: dict[int, int] = field(default_factory=dict)
    statistics: QueueFigures = field(default_factory=QueueFigures)

    def depth(self) -> dict[int, int]:
        return self.depths


@dataclass
class FakeController:
    name: str
    statistics: ControllerFigures = field(default_factory=ControllerFigures)
    queue: FakeQueue = field(default_factory=FakeQueue)


@dataclass
class FakeElection:
    name: str
    is_leader: bool


@dataclass
class InformerFigures:
    objects: int = 0
    bytes: int = 0
    relists: int = 0
    restarts: int = 0
    lag: float = 0.0


@dataclass
class FakeInformer:
    kind_name: str
    scope: str
    state: str
    statistics: InformerFigures


def rendered(controller: FakeController) -> dict[str, Parsed]:
    return parse(
        render(
            runtime_families(
                controllers=[controller],
                elections=[FakeElection("websites", True)],
                requests={("200", "GET", "127.0.0.1:6443"): 4},
            )
        )
    )


def test_names_types_labels_and_descriptions_are_those_of_controller_runtime() -> None:
    ours, theirs = rendered(FakeController("website")), parse(GO.read_bytes())
    # Not worth a system call: it is the same for every process of a machine.
    del theirs["process_virtual_memory_max_bytes"]
    assert {name for name in ours if not name.startswith("kubewright_")} == theirs.keys()
    for name, family in theirs.items():
        assert (ours[name].type, ours[name].help) == (family.type, family.help), name
        assert ours[name].labels() == family.labels(), name


@pytest.mark.parametrize(
    "name",
    [
        "controller_runtime_reconcile_time_seconds",
        "workqueue_queue_duration_seconds",
        "workqueue_work_duration_seconds",
    ],
)
def test_buckets_are_those_of_controller_runtime(name: str) -> None:
    def bounds(families: dict[str, Parsed]) -> list[float]:
        return [float(dict(labels)["le"]) for suffix, labels in families[name].samples if suffix == "_bucket"]

    # Go multiplies its way up from 10 ns, and arrives at 9.999999999999999e-06.
    assert bounds(rendered(FakeController("website"))) == bounds(parse(GO.read_bytes()))


def test_all_series_of_a_controller_are_there_from_the_start() -> None:
    families = rendered(FakeController("website"))
    assert families["controller_runtime_reconcile_total"].samples == {
        ("", (("controller", "website"), ("result", result))): 0 for result in RESULTS
    }
    assert families["workqueue_depth"].samples == {
        ("", (("controller", "website"), ("name", "website"), ("priority", priority))): 0 for priority in ("0", "-100")
    }
    for name, family in families.items():
        if name.startswith(("controller_runtime", "workqueue")):
            assert family.samples, name


def test_the_figures_of_a_controller_are_rendered() -> None:
    controller = FakeController(
        "website",
        ControllerFigures({"success": 5, "error": 2}, 2, 1, 3, 4, 6, 7, {"update Website": 8}, workers=16, active=9),
        FakeQueue({0: 3, 50: 1}, QueueFigures(adds=10, retries=11)),
    )
    controller.statistics.reconcile_time.observe(0.02)
    controller.queue.statistics.queue_duration.observe(2)
    families = rendered(controller)

    def value(name: str, suffix: str = "", /, **labels: str) -> float:
        [found] = [
            value
            for (ending, pairs), value in families[name].samples.items()
            if ending == suffix and labels.items() <= dict(pairs).items()
        ]
        return found

    assert value("controller_runtime_reconcile_total", result="success") == 5
    assert value("controller_runtime_reconcile_total", result="error") == 2
    assert value("controller_runtime_reconcile_errors_total") == 2
    assert value("controller_runtime_terminal_reconcile_errors_total") == 1
    assert value("controller_runtime_reconcile_panics_total") == 3
    assert value("controller_runtime_reconcile_timeouts_total") == 4
    assert value("kubewright_reconcile_conflicts_total") == 6
    assert value("kubewright_hot_loops_total") == 7
    assert value("kubewright_reconcile_reasons_total", reason="update Website") == 8
    assert value("controller_runtime_max_concurrent_reconciles") == 16
    assert value("controller_runtime_active_workers") == 9
    assert value("controller_runtime_reconcile_time_seconds", "_sum") == 0.02
    assert value("controller_runtime_reconcile_time_seconds", "_bucket", le="0.01") == 0
    assert value("controller_runtime_reconcile_time_seconds", "_bucket", le="0.025") == 1
    assert value("workqueue_depth", priority="0") == 3
    assert value("workqueue_depth", priority="50") == 1
    assert value("workqueue_adds_total", name="website", controller="website") == 10
    assert value("workqueue_retries_total") == 11
    assert value("workqueue_queue_duration_seconds", "_count") == 1
    assert value("workqueue_work_duration_seconds", "_count") == 0
    assert value("workqueue_unfinished_work_seconds") == 1.5
    assert value("workqueue_longest_running_processor_seconds") == 0.5
    assert value("leader_election_master_status", name="websites") == 1
    assert value("rest_client_requests_total", code="200", method="GET", host="127.0.0.1:6443") == 4


def test_many_priorities_are_told_as_one() -> None:
    families = parse(render(runtime_families(queues={"q": FakeQueue(dict.fromkeys(range(100), 1))})))
    priorities = {dict(labels)["priority"]: value for (_, labels), value in families["workqueue_depth"].samples.items()}
    assert len(priorities) == 26
    assert priorities["99"] == 1
    assert priorities["exceeded_cardinality_limit"] == 75


def test_the_figures_of_caches_are_rendered() -> None:
    informers = [
        FakeInformer("pods", "", "watching", InformerFigures(3, 300, 1, 2, 0.5)),
        # Two views of one scope: Prometheus refuses a text in which a series comes twice.
        FakeInformer("widgets.example.com", "namespace shop", "watching", InformerFigures(1, 10, 1, 1, 0.1)),
        FakeInformer("widgets.example.com", "namespace shop", "listing", InformerFigures(2, 20, 0, 1, 0.3)),
    ]
    families = parse(render(runtime_families(informers=informers)))
    pods = (("resource", "pods"), ("scope", ""))
    widgets = (("resource", "widgets.example.com"), ("scope", "namespace shop"))
    for name, type_, of_pods, of_widgets in (
        ("objects", "gauge", 3, 3),
        ("bytes", "gauge", 300, 30),
        ("relists_total", "counter", 1, 1),
        ("watch_restarts_total", "counter", 2, 2),
        ("lag_seconds", "gauge", 0.5, 0.3),
    ):
        family = families[f"kubewright_cache_{name}"]
        assert family.type == type_
        assert family.samples == {("", pods): of_pods, ("", widgets): of_widgets}, name
    assert families["kubewright_cache_state"].samples == {
        ("", (*pods, ("state", "watching"))): 1,
        ("", (*widgets, ("state", "watching"))): 1,
        ("", (*widgets, ("state", "listing"))): 1,
    }


def test_the_figures_of_the_process_are_those_of_the_operating_system() -> None:
    families = parse(render(runtime_families()))

    def value(name: str) -> float:
        return families[name].samples[("", ())]

    assert 0 < value("process_cpu_seconds_total") <= time.process_time()
    assert value("process_resident_memory_bytes") > 10_000_000
    assert value("process_virtual_memory_bytes") >= value("process_resident_memory_bytes")
    assert 0 < value("process_open_fds") < value("process_max_fds")
    assert 0 < time.time() - value("process_start_time_seconds") < 24 * 3600
    reader, writer = os.pipe()
    try:
        more = parse(render(runtime_families()))["process_open_fds"].samples[("", ())]
        assert more == value("process_open_fds") + 2
    finally:
        os.close(reader)
        os.close(writer)
