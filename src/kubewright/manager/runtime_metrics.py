"""Metrics of the runtime, under the names, types and labels that dashboards for controller-runtime expect.

The figures are plain attributes of the things themselves; `runtime_families` reads them when metrics are scraped. What
controller-runtime has no name for begins with `kubewright_`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

from kubewright.cache.informer import Informer
from kubewright.controller.controllers import Controller
from kubewright.controller.queue import Queue
from kubewright.controller.statistics import HistogramCounts
from kubewright.manager.exposition import Family, Sample, Type, histogram_samples, single
from kubewright.manager.leader_election import LeaderElection

RESULTS = ("success", "error", "requeue", "requeue_after")
PRIORITIES = (0, -100)
"""Of live events, and of those that can wait: the depth of these is reported from the start."""
MAX_PRIORITIES = 25
"""More than that are reported as one, as controller-runtime does it."""


_K = TypeVar("_K", bound=tuple[str, ...])
Key = TypeVar("Key", bound=Hashable)


def runtime_families(
    *,
    controllers: Iterable[Controller[Key]] = (),
    informers: Iterable[Informer] = (),
    elections: Iterable[LeaderElection] = (),
    requests: Mapping[tuple[str, str, str], int] | None = None,
    request_durations: Mapping[tuple[str, str], HistogramCounts] | None = None,
    skipped: Mapping[str, int] | None = None,
) -> list[Family]:
    """The families of everything given, and of the process.

    `requests` counts by (code, method, host), `request_durations` are by (verb, host), `skipped` counts by kind.
    """
    controllers = list(controllers)
    return [
        *_controllers(controllers),
        *_queues(controllers),
        _table(
            "leader_election_master_status",
            "gauge",
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. "
            "'name' is the string used to identify the lease. Please make sure to group by name.",
            ("name",),
            {(election.name,): int(election.is_leader) for election in elections},
        ),
        _table(
            "rest_client_requests_total",
            "counter",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ("code", "method", "host"),
            requests or {},
        ),
        _histograms(
            "rest_client_request_duration_seconds",
            "Request latency in seconds. Broken down by verb, and host.",
            [({"verb": verb, "host": host}, times) for (verb, host), times in (request_durations or {}).items()],
        ),
        _table(
            "kubewright_skipped_objects_total",
            "counter",
            "How often objects were left out of lists, indexes and watches because they cannot be decoded",
            ("kind",),
            {(kind,): count for kind, count in (skipped or {}).items()},
        ),
        *_caches(informers),
        *process_families(),
    ]


def _controllers(controllers: Sequence[Controller[Key]]) -> Iterable[Family]:
    figures = {controller.name: controller.statistics for controller in controllers}

    def counts(name: str, type_: Type, help_: str, values: Iterable[int]) -> Family:
        by_controller = {(controller,): value for controller, value in zip(figures, values, strict=True)}
        return _table(name, type_, help_, ("controller",), by_controller)

    prefix, each = "controller_runtime", list(figures.values())
    yield _table(
        f"{prefix}_reconcile_total",
        "counter",
        "Total number of reconciliations per controller",
        ("controller", "result"),
        {(name, result): one.results.get(result, 0) for name, one in figures.items() for result in RESULTS},
    )
    for name, what, values in (
        ("reconcile_errors", "reconciliation errors", [one.errors for one in each]),
        ("terminal_reconcile_errors", "terminal reconciliation errors", [one.terminal_errors for one in each]),
        ("reconcile_panics", "reconciliation panics", [one.panics for one in each]),
        ("reconcile_timeouts", "reconciliation timeouts", [one.timeouts for one in each]),
    ):
        yield counts(f"{prefix}_{name}_total", "counter", f"Total number of {what} per controller", values)
    yield _histograms(
        f"{prefix}_reconcile_time_seconds",
        "Length of time per reconciliation per controller",
        [({"controller": name}, one.reconcile_time) for name, one in figures.items()],
    )
    yield counts(
        f"{prefix}_max_concurrent_reconciles",
        "gauge",
        "Maximum number of concurrent reconciles per controller",
        [one.workers for one in each],
    )
    yield counts(
        f"{prefix}_active_workers",
        "gauge",
        "Number of currently used workers per controller",
        [one.active for one in each],
    )
    yield counts(
        "kubewright_reconcile_conflicts_total",
        "counter",
        "Reconciles that were repeated because an object had changed since it was read",
        [one.conflicts for one in each],
    )
    yield counts(
        "kubewright_hot_loops_total",
        "counter",
        "How often an object was found to be reconciled over and over without coming to rest",
        [one.hot_loops for one in each],
    )
    yield _histograms(
        "kubewright_step_duration_seconds",
        "How long the steps of pipelines and the actions of requests took, by how they ended",
        [
            ({"controller": name, "step": step, "outcome": outcome}, durations)
            for name, one in figures.items()
            for (step, outcome), durations in one.steps.items()
        ],
    )
    yield _table(
        "kubewright_reconcile_reasons_total",
        "counter",
        "Reconciles by what caused them; one that had several causes is counted under each",
        ("controller", "reason"),
        {(name, reason): count for name, one in figures.items() for reason, count in one.reasons.items()},
    )


def _queues(controllers: Sequence[Controller[Key]]) -> Iterable[Family]:
    labels = ("name", "controller")
    queues = {controller.name: controller.queue for controller in controllers}
    figures = {(name, name): queue.statistics for name, queue in queues.items()}

    def durations(values: Iterable[HistogramCounts]) -> list[tuple[dict[str, str], HistogramCounts]]:
        return [({"name": name, "controller": name}, value) for name, value in zip(queues, values, strict=True)]

    yield _table(
        "workqueue_depth",
        "gauge",
        "Current depth of workqueue by workqueue and priority",
        (*labels, "priority"),
        {(name, name, priority): depth for name, queue in queues.items() for priority, depth in _depths(queue)},
    )
    yield _table(
        "workqueue_adds_total",
        "counter",
        "Total number of adds handled by workqueue",
        labels,
        {key: one.adds for key, one in figures.items()},
    )
    yield _table(
        "workqueue_retries_total",
        "counter",
        "Total number of items added to the workqueue with a non-zero delay (rate-limited requeues, explicit "
        "RequeueAfter or AddAfter calls)",
        labels,
        {key: one.retries for key, one in figures.items()},
    )
    yield _histograms(
        "workqueue_queue_duration_seconds",
        "How long in seconds an item stays in workqueue before being requested",
        durations(one.queue_duration for one in figures.values()),
    )
    yield _histograms(
        "workqueue_work_duration_seconds",
        "How long in seconds processing an item from workqueue takes.",
        durations(one.work_duration for one in figures.values()),
    )
    yield _table(
        "workqueue_unfinished_work_seconds",
        "gauge",
        "How many seconds of work has been done that is in progress and hasn't been observed by work_duration. Large "
        "values indicate stuck threads. One can deduce the number of stuck threads by observing the rate at which this "
        "increases.",
        labels,
        {key: one.unfinished_seconds() for key, one in figures.items()},
    )
    yield _table(
        "workqueue_longest_running_processor_seconds",
        "gauge",
        "How many seconds has the longest running processor for workqueue been running.",
        labels,
        {key: one.longest_running_seconds() for key, one in figures.items()},
    )


def _depths(queue: Queue[Key]) -> Iterable[tuple[str, int]]:
    depths = dict.fromkeys(PRIORITIES, 0) | dict(queue.depth())
    # The smallest ones are reported as one, whatever the order in which they came up.
    by_priority = sorted(depths.items(), reverse=True)
    yield from ((str(priority), depth) for priority, depth in by_priority[:MAX_PRIORITIES])
    if len(by_priority) > MAX_PRIORITIES:
        yield "exceeded_cardinality_limit", sum(depth for _, depth in by_priority[MAX_PRIORITIES:])


def _caches(informers: Iterable[Informer]) -> Iterable[Family]:
    # Watches that differ only in how much of each object is kept have the same labels: their figures are added up.
    groups: dict[tuple[str, str], list[Informer]] = {}
    for informer in informers:
        groups.setdefault((informer.kind_name, str(informer.scope)), []).append(informer)
    figures = {key: [informer.statistics for informer in group] for key, group in groups.items()}
    labels = ("resource", "scope")

    def sums(name: str, type_: Type, help_: str, values: Iterable[float]) -> Family:
        return _table(f"kubewright_cache_{name}", type_, help_, labels, dict(zip(groups, values, strict=True)))

    each = list(figures.values())
    yield sums("objects", "gauge", "Objects in the cache", [sum(one.objects for one in group) for group in each])
    yield sums(
        "bytes", "gauge", "Bytes of the objects in the cache", [sum(one.bytes for one in group) for group in each]
    )
    yield sums(
        "lag_seconds",
        "gauge",
        "How far the cache may be behind the server",
        [max(one.lag for one in group) for group in each],
    )
    yield sums(
        "relists_total",
        "counter",
        "How often all objects were relisted",
        [sum(one.relists for one in group) for group in each],
    )
    yield sums(
        "watch_restarts_total",
        "counter",
        "How often a watch was restarted",
        [sum(one.restarts for one in group) for group in each],
    )
    yield _table(
        "kubewright_cache_state",
        "gauge",
        "1 for the state the watch is in",
        (*labels, "state"),
        {(*key, informer.state): 1 for key, group in groups.items() for informer in group},
    )


def process_families() -> Iterable[Family]:
    """What every Prometheus client reports of its process, as far as the operating system reveals it."""
    yield single(
        "process_cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds.", time.process_time()
    )
    import resource  # Unix only, and not needed before the first scrape

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield single("process_max_fds", "gauge", "Maximum number of open file descriptors.", limit)
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
        descriptors = len(os.listdir("/proc/self/fd")) - 1  # noqa: PTH208  # one of them is that of the listing
        started = _started_at()
    except OSError:
        return
    size = resource.getpagesize()
    yield single("process_open_fds", "gauge", "Number of open file descriptors.", descriptors)
    yield single("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", int(pages[1]) * size)
    yield single("process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", int(pages[0]) * size)
    yield single(
        "process_start_time_seconds",
        "gauge",
        "Start time of the process since unix epoch in seconds.",
        started,
    )


@cache
def _started_at() -> float:
    # The name in parentheses may contain anything; the 22nd field is the start in clock ticks after the boot.
    fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    boot = next(
        line for line in Path("/proc/stat").read_text(encoding="ascii").splitlines() if line.startswith("btime ")
    )
    return float(boot.split()[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _table(name: str, type_: Type, help_: str, labels: tuple[str, ...], values: Mapping[_K, float]) -> Family:
    samples = [Sample("", dict(zip(labels, key, strict=True)), value) for key, value in values.items()]
    return Family(name, type_, help_, samples)


def _histograms(name: str, help_: str, values: Iterable[tuple[Mapping[str, str], HistogramCounts]]) -> Family:
    samples = [sample for labels, histogram in values for sample in histogram_samples(labels, histogram)]
    return Family(name, "histogram", help_, samples)
