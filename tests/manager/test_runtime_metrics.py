"""The figures of the runtime, under the names that controller-runtime gives them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.manager.exposition_text import Parsed, parse

from kubewright.controller.statistics import QUEUE_BOUNDS, RECONCILE_BOUNDS, Histogram
from kubewright.manager.exposition import render
from kubewright.manager.runtime_metrics import RESULTS, runtime_families

GO = Path(__file__).parent / "controller_runtime_metrics.txt"
"""What a manager of controller-runtime 0.24.1 with one controller and leader election answers."""


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


def test_objects_that_were_left_out_are_counted_by_kind() -> None:
    families = parse(render(runtime_families(skipped={"Widget": 3})))
    assert families["kubewright_skipped_objects_total"].samples == {("", (("kind", "Widget"),)): 3}
