"""The text in which Prometheus reads metrics (format 0.0.4): families of samples, and how they are written.

Nothing is kept here: a `Family` is made when metrics are scraped, from figures that are kept elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from kubewright.controller.statistics import HistogramCounts

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Type: TypeAlias = Literal["counter", "gauge", "histogram", "untyped"]


class Sample(Struct, frozen=True):
    """One line: what is added to the family's name, the labels, and the value."""

    suffix: str
    labels: Mapping[str, str]
    value: float


class Family(Struct, frozen=True):
    """All samples of one name."""

    name: str
    type: Type
    help: str
    samples: Sequence[Sample]


def single(name: str, type_: Type, help_: str, value: float) -> Family:
    """A family of one sample without labels."""
    return Family(name, type_, help_, (Sample("", {}, value),))


def histogram_samples(labels: Mapping[str, str], histogram: HistogramCounts) -> Iterable[Sample]:
    """The samples of one histogram: cumulated buckets, sum and count."""
    total = 0
    for bound, count in zip((*histogram.bounds, math.inf), histogram.counts, strict=True):
        total += count
        yield Sample("_bucket", {**labels, "le": number(bound)}, total)
    yield Sample("_sum", labels, histogram.sum)
    yield Sample("_count", labels, total)


def render(families: Iterable[Family]) -> bytes:
    """The text of families. Those that share a name are put together under the first one's description."""
    merged: dict[str, list[Sample]] = {}
    described: dict[str, Family] = {}
    for family in families:
        first = described.setdefault(family.name, family)
        if first.type != family.type:
            raise ValueError(f"the metric {family.name} is a {first.type} and a {family.type} at once")
        merged.setdefault(family.name, []).extend(family.samples)
    lines: list[str] = []
    for name, samples in merged.items():
        family = described[name]
        lines.append(f"# HELP {name} {_escaped_help(family.help)}\n# TYPE {name} {family.type}\n")
        for sample in samples:
            text = ",".join(f'{label}="{_escaped(content)}"' for label, content in sample.labels.items())
            labels = f"{{{text}}}" if text else ""
            lines.append(f"{name}{sample.suffix}{labels} {number(sample.value)}\n")
    return "".join(lines).encode()


def number(value: float) -> str:
    """A value as Go writes it: `1`, not `1.0`, because bounds are labels and compared as text."""
    if isinstance(value, int):
        return str(int(value))
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value).removesuffix(".0")


def check_names(name: str, labels: Sequence[str], *, reserved: Sequence[str] = ()) -> None:
    """Raise ValueError for names that Prometheus would not accept."""
    if not _is_word(name.replace(":", "_")):
        raise ValueError(f'"{name}" cannot be the name of a metric: expected letters, digits, "_" and ":"')
    for label in labels:
        if not _is_word(label) or label.startswith("__"):
            raise ValueError(
                f'"{label}" cannot be a label of the metric {name}: expected letters, digits and "_", '
                'not beginning with a digit or "__"'
            )
        if label in reserved:
            raise ValueError(f'"{label}" cannot be a label of the metric {name}: it is used by the format itself')
    if len(set(labels)) < len(labels):
        raise ValueError(f"the metric {name} has the same label twice: {', '.join(labels)}")


def _is_word(text: str) -> bool:
    # Python's own rule for names; compiling an expression for it would take as long as checking all metrics.
    return text.isascii() and text.isidentifier()


def _escaped_help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _escaped(text: str) -> str:
    return _escaped_help(text).replace('"', r"\"")
