"""The text format of Prometheus, read as strictly as its rules are."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field


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
