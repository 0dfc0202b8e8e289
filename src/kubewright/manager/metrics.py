"""Metrics: an operator's own, and those of the runtime under controller-runtime's names.

    metrics = Metrics()
    scaled = metrics.counter("podmanager_scaled_total", "Pods created or deleted", labels=("direction",))
    scaled.labels(direction="up").add(2)

A metric is a number in an attribute; text is rendered at a scrape. Metrics of prometheus_client can be added
with `metrics.include(lambda: generate_latest(registry))`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Generic, TypeVar, cast, overload

from msgspec import Struct

from kubewright.controller.statistics import HistogramCounts
from kubewright.manager.exposition import (
    CONTENT_TYPE,
    Family,
    Sample,
    Type,
    check_names,
    histogram_samples,
    render,
)
from kubewright.manager.serving import EndpointRequest, EndpointResponse

_C = TypeVar("_C", "Counter", "Gauge", "Histogram")


class Counter:
    """A number that only rises."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def add(self, amount: float = 1) -> None:
        """Count what happened."""
        if amount < 0:
            raise ValueError(f"a counter only rises: add({amount:g}); use a gauge for what also falls")
        self.value += amount

    def samples(self, labels: Mapping[str, str]) -> Iterable[Sample]:
        """Its samples at a scrape."""
        yield Sample("", labels, self.value)


class Gauge:
    """A number that rises and falls."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def set(self, value: float) -> None:
        """Set the number."""
        self.value = value

    def add(self, amount: float = 1) -> None:
        """Raise it, or lower it by a negative amount."""
        self.value += amount

    def samples(self, labels: Mapping[str, str]) -> Iterable[Sample]:
        """Its samples at a scrape."""
        yield Sample("", labels, self.value)


class Histogram:
    """The number of values per bucket."""

    __slots__ = ("buckets",)

    def __init__(self, bounds: Sequence[float]) -> None:
        self.buckets = HistogramCounts(bounds)

    def observe(self, value: float) -> None:
        """Count one value."""
        self.buckets.observe(value)

    def samples(self, labels: Mapping[str, str]) -> Iterable[Sample]:
        """Its samples at a scrape."""
        return histogram_samples(labels, self.buckets)


class Labelled(Generic[_C]):
    """One metric in several series. `labels` returns the one for certain values; keep it where it is used often."""

    def __init__(self, name: str, labels: Sequence[str], make: Callable[[], _C]) -> None:
        self._name = name
        self._labels = tuple(labels)
        self._make: Callable[[], _C] = make
        self._children: dict[tuple[str, ...], _C] = {}

    def labels(self, /, **values: str) -> _C:
        """The series with these values, one for each label that was declared."""
        try:
            key = tuple([values.pop(label) for label in self._labels])
        except KeyError:
            key = ()
        if values or len(key) != len(self._labels):
            raise ValueError(
                f"the metric {self._name} has the labels {', '.join(self._labels) or '(none)'}: "
                "give a value for each of them, and for nothing else"
            )
        child = self._children.get(key)
        if child is None:
            for label, value in zip(self._labels, key, strict=True):
                if not isinstance(value, str):
                    raise TypeError(f"{label}={value!r}: label values of the metric {self._name} are strings")
            child = self._children[key] = self._make()
        return child

    def samples(self) -> Iterable[Sample]:
        """All series so far."""
        for key, child in list(self._children.items()):
            yield from child.samples(dict(zip(self._labels, key, strict=True)))


class Metrics:
    """The metrics of one program. Declaring the same metric again returns the existing one.

    Declared without labels, a metric is one number; with them it is a `Labelled` set of numbers.
    """

    def __init__(self) -> None:
        self._declared: dict[str, _Declaration] = {}
        self._collectors: list[Callable[[], Iterable[Family]]] = []
        self._texts: list[Callable[[], bytes]] = []

    @overload
    def counter(self, name: str, help: str) -> Counter: ...

    @overload
    def counter(self, name: str, help: str, labels: Sequence[str]) -> Labelled[Counter]: ...

    def counter(self, name: str, help: str, labels: Sequence[str] | None = None) -> Counter | Labelled[Counter]:
        """A metric of how often something happened. By convention its name ends in `_total`."""
        family = self._declare("counter", name, help, labels, Counter)
        return family if labels is not None else family.labels()

    @overload
    def gauge(self, name: str, help: str) -> Gauge: ...

    @overload
    def gauge(self, name: str, help: str, labels: Sequence[str]) -> Labelled[Gauge]: ...

    def gauge(self, name: str, help: str, labels: Sequence[str] | None = None) -> Gauge | Labelled[Gauge]:
        """A metric of a current value."""
        family = self._declare("gauge", name, help, labels, Gauge)
        return family if labels is not None else family.labels()

    @overload
    def histogram(self, name: str, help: str, bounds: Sequence[float]) -> Histogram: ...

    @overload
    def histogram(
        self, name: str, help: str, bounds: Sequence[float], labels: Sequence[str]
    ) -> Labelled[Histogram]: ...

    def histogram(
        self, name: str, help: str, bounds: Sequence[float], labels: Sequence[str] | None = None
    ) -> Histogram | Labelled[Histogram]:
        """A metric of a distribution; `bounds` are the increasing upper bounds of its buckets."""
        limits = tuple(float(bound) for bound in bounds)
        if not all(math.isfinite(bound) for bound in limits) or any(low >= high for low, high in pairwise(limits)):
            raise ValueError(f"the bounds of the metric {name} have to be finite and rising, found {list(bounds)}")
        if not limits:
            raise ValueError(f"the metric {name} needs at least one bound")
        family = self._declare("histogram", name, help, labels, lambda: Histogram(limits), limits)
        return family if labels is not None else family.labels()

    def collect(self, function: Callable[[], Iterable[Family]]) -> None:
        """Call `function` for more families at each scrape."""
        self._collectors.append(function)

    def include(self, text: Callable[[], bytes]) -> None:
        """Append the result of `text` at each scrape, which must be in the same format and about other metrics."""
        self._texts.append(text)

    def render(self) -> bytes:
        """All metrics as they are now, in Prometheus' text format 0.0.4."""
        families = [
            Family(name, declaration.type, declaration.help, list(declaration.series.samples()))
            for name, declaration in self._declared.items()
        ]
        for collector in self._collectors:
            families += collector()
        parts = [render(families)]
        for include in self._texts:
            text = include()
            parts.append(text if text.endswith(b"\n") or not text else text + b"\n")
        return b"".join(parts)

    async def answer(self, request: EndpointRequest) -> EndpointResponse:
        """A handler for `/metrics`."""
        return EndpointResponse(content_type=CONTENT_TYPE, body=self.render())

    def _declare(
        self,
        kind: Type,
        name: str,
        help: str,
        labels: Sequence[str] | None,
        make: Callable[[], _C],
        bounds: tuple[float, ...] = (),
    ) -> Labelled[_C]:
        if isinstance(labels, str):
            raise TypeError(f'the labels of the metric {name} are a list of names: ["{labels}"], not "{labels}"')
        known = self._declared.get(name)
        if known is None:
            check_names(name, labels or (), reserved=("le",) if kind == "histogram" else ())
            known = _Declaration(kind, help, tuple(labels or ()), bounds, Labelled(name, labels or (), make))
            self._declared[name] = known
        elif (known.type, known.help, known.labels, known.bounds) != (kind, help, tuple(labels or ()), bounds):
            raise ValueError(
                f"the metric {name} is declared already, in another way: as {known.described()}; now as "
                f"{_Declaration(kind, help, tuple(labels or ()), bounds, known.series).described()}"
            )
        # The type of a declaration is that of its series.
        return cast("Labelled[_C]", known.series)


class _Declaration(Struct, frozen=True):
    type: Type
    help: str
    labels: tuple[str, ...]
    bounds: tuple[float, ...]
    series: Labelled[Counter] | Labelled[Gauge] | Labelled[Histogram]

    def described(self) -> str:
        """The declaration, for errors."""
        bounds = f", bounds {list(self.bounds)}" if self.bounds else ""
        return f'{self.type} "{self.help}", labels {list(self.labels)}{bounds}'
