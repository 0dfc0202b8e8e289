"""The metrics that an operator declares, and the text that they become."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence

import pytest
from tests.manager.exposition_text import parse

from kubewright.manager.exposition import Family, Sample, render
from kubewright.manager.metrics import Metrics
from kubewright.manager.serving import EndpointRequest


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


def test_a_metric_without_labels_exists_from_the_start() -> None:
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
def test_names_that_prometheus_does_not_accept_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f'"{name}" cannot be the name of a metric')):
        Metrics().counter(name, "a")


@pytest.mark.parametrize("label", ["", "1a", "a-b", "__a", "é", "a:b"])
def test_labels_that_prometheus_does_not_accept_are_refused(label: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f'"{label}" cannot be a label of the metric a_total')):
        Metrics().counter("a_total", "a", labels=[label])


def test_labels_reserved_by_the_format_are_refused() -> None:
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


def test_families_can_be_collected_and_text_included_at_a_scrape() -> None:
    metrics = Metrics()
    scrapes = 0

    def collect() -> Iterable[Family]:
        nonlocal scrapes
        scrapes += 1
        yield Family("collected", "gauge", "c", [Sample("", {"x": "y"}, scrapes)])

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


async def test_the_response_names_its_format() -> None:
    metrics = Metrics()
    metrics.counter("a_total", "a")
    answer = await metrics.answer(EndpointRequest("/metrics"))
    assert answer.content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.body == metrics.render()
