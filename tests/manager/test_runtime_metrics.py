"""The figures of the runtime, under the names that controller-runtime gives them."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from tests.manager.exposition_text import Parsed, parse
from tests.manager.scripted import get, running

from kubewright.api.core.v1 import ConfigMap, Pod
from kubewright.api.meta import ObjectMeta
from kubewright.cache import Cache
from kubewright.client import Client, Config
from kubewright.client.request_observer import RequestAttempt
from kubewright.controller import Controller
from kubewright.controlplane import ControlPlane
from kubewright.manager import Manager
from kubewright.manager.exposition import render
from kubewright.manager.leader_election import LeaderElection
from kubewright.manager.request_durations import RequestDurations
from kubewright.manager.runtime_metrics import RESULTS, runtime_families

GO = Path(__file__).parent / "controller_runtime_metrics.txt"
"""What a manager of controller-runtime 0.24.1 with one controller and leader election answers."""


class Idle:
    """A reconciler that is never called."""

    async def reconcile(self, key: int) -> None:
        raise AssertionError(key)


def website() -> Controller[int]:
    return Controller("website", Idle(), workers=16)


async def rendered(controller: Controller[int], *, is_leader: bool = True) -> dict[str, Parsed]:
    async with Client(Config(server="http://unused.test")) as client:
        election = LeaderElection(client, "websites", namespace="default")
        election._is_leading, election._renewed_at = is_leader, election._clock()
        return parse(
            render(
                runtime_families(
                    controllers=[controller],
                    elections=[election],
                    requests={("200", "GET", "127.0.0.1:6443"): 4},
                )
            )
        )


async def test_names_types_labels_and_descriptions_are_those_of_controller_runtime() -> None:
    ours, theirs = await rendered(website()), parse(GO.read_bytes())
    # client-go has it, and controller-runtime does not register it.
    del ours["rest_client_request_duration_seconds"]
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
async def test_buckets_are_those_of_controller_runtime(name: str) -> None:
    def bounds(families: dict[str, Parsed]) -> list[float]:
        return [float(dict(labels)["le"]) for suffix, labels in families[name].samples if suffix == "_bucket"]

    # Go multiplies its way up from 10 ns, and arrives at 9.999999999999999e-06.
    assert bounds(await rendered(website())) == bounds(parse(GO.read_bytes()))


async def test_all_series_of_a_controller_exist_from_the_start() -> None:
    families = await rendered(website())
    assert families["controller_runtime_reconcile_total"].samples == {
        ("", (("controller", "website"), ("result", result))): 0 for result in RESULTS
    }
    assert families["workqueue_depth"].samples == {
        ("", (("controller", "website"), ("name", "website"), ("priority", priority))): 0 for priority in ("0", "-100")
    }
    for name, family in families.items():
        if name.startswith(("controller_runtime", "workqueue")):
            assert family.samples, name


async def test_the_figures_of_a_controller_are_rendered() -> None:
    controller = website()
    figures = controller.statistics
    figures.results |= {"success": 5, "error": 2}
    figures.errors, figures.terminal_errors, figures.panics, figures.timeouts = 2, 1, 3, 4
    figures.conflicts, figures.hot_loops, figures.active = 6, 7, 9
    figures.reasons["update Website"] = 8
    figures.reconcile_time.observe(0.02)
    for key in range(3):
        controller.queue.add(key)
    controller.queue.add(3, priority=50)
    await controller.queue.get()
    controller.queue.add_failed(4)
    families = await rendered(controller)

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
    assert value("workqueue_depth", priority="50") == 0
    assert value("workqueue_adds_total", name="website", controller="website") == 4
    assert value("workqueue_retries_total") == 1
    assert value("workqueue_queue_duration_seconds", "_count") == 1
    assert value("workqueue_work_duration_seconds", "_count") == 0
    assert value("workqueue_unfinished_work_seconds") > 0
    assert value("workqueue_longest_running_processor_seconds") > 0
    assert value("leader_election_master_status", name="websites") == 1
    assert value("rest_client_requests_total", code="200", method="GET", host="127.0.0.1:6443") == 4


async def test_a_standby_is_not_the_master_of_its_lease() -> None:
    families = await rendered(website(), is_leader=False)
    assert families["leader_election_master_status"].samples == {("", (("name", "websites"),)): 0}


async def test_many_priorities_are_reported_as_one() -> None:
    controller = website()
    for priority in range(100):
        controller.queue.add(priority, priority=priority)
    families = await rendered(controller)
    priorities = {dict(labels)["priority"]: value for (_, labels), value in families["workqueue_depth"].samples.items()}
    assert len(priorities) == 26
    assert priorities["99"] == 1
    assert priorities["exceeded_cardinality_limit"] == 75


async def test_the_figures_of_caches_are_rendered() -> None:
    async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as client:
        for name in ("one", "two"):
            await client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace="default")))
        cache = Cache(client)
        # Two views of one scope: Prometheus refuses a text in which a series comes twice.
        views = (
            cache.watch(ConfigMap, namespace="default"),
            cache.watch(ConfigMap, namespace="default", transform=lambda obj: obj),
        )
        cache.watch(Pod)
        running = asyncio.create_task(cache.run())
        for view in views:
            await view.synced()
        families = parse(render(runtime_families(informers=cache.informers())))
        sizes = [informer.statistics.bytes for informer in cache.informers()]
        running.cancel()
        await asyncio.wait((running,))
    maps = (("resource", "configmaps"), ("scope", "namespace default"))
    pods = (("resource", "pods"), ("scope", ""))
    for name, type_, of_maps, of_pods in (
        ("objects", "gauge", 4, 0),
        ("bytes", "gauge", sum(sizes), 0),
        ("relists_total", "counter", 0, 0),
        ("watch_restarts_total", "counter", 0, 0),
        ("lag_seconds", "gauge", 0, 0),
    ):
        family = families[f"kubewright_cache_{name}"]
        assert family.type == type_
        assert family.samples == {("", maps): of_maps, ("", pods): of_pods}, name
    states = families["kubewright_cache_state"].samples
    assert states[("", (*maps, ("state", "watching")))] == 1
    assert set(states.values()) == {1}


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


async def test_the_durations_of_requests_are_rendered_by_verb_and_host_as_client_go_does() -> None:
    durations = RequestDurations()
    for method, seconds in (("GET", 0.01), ("GET", 3.0), ("POST", 0.3)):
        durations(RequestAttempt(method, "kubernetes:443", "/api/v1/pods", "200", seconds))
    family = parse(render(runtime_families(request_durations=durations.by_verb_and_host)))[
        "rest_client_request_duration_seconds"
    ]
    reads, writes = [(("host", "kubernetes:443"), ("verb", verb)) for verb in ("GET", "POST")]
    assert family.type == "histogram"
    assert family.samples[("_count", reads)] == 2
    assert family.samples[("_sum", reads)] == 3.01
    assert family.samples[("_count", writes)] == 1
    buckets = [dict(labels) for suffix, labels in family.samples if suffix == "_bucket"]
    bounds = [labels["le"] for labels in buckets if labels["verb"] == "GET"]
    assert bounds == ["0.005", "0.025", "0.1", "0.25", "0.5", "1", "2", "4", "8", "15", "30", "60", "+Inf"]


async def test_a_manager_measures_its_requests_while_metrics_are_served() -> None:
    async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as client:
        manager = Manager(client, metrics_address="127.0.0.1:0")
        async with running(manager):
            await manager.elected.wait()
            await manager.live.list(ConfigMap, namespace="default")
            _, text = await get(manager.ports["metrics"], "/metrics")
        assert 'rest_client_request_duration_seconds_count{verb="GET",host=' in text
        silent = Manager(client)
        async with running(silent):
            await silent.elected.wait()
            await silent.live.list(ConfigMap, namespace="default")
        assert not silent._request_durations.by_verb_and_host
