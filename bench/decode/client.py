"""kubewright's side: `python -m bench.decode.client FORM FILE N` prints the CPU microseconds of N decodings.

FORM is `typed`, `header` (what a watch decodes on arrival) or `dynamic`. All N objects are kept, as a cache would.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path

from kubewright.api.codec import decode
from kubewright.api.core.v1 import Pod
from kubewright.api.dynamic import Dynamic
from kubewright.api.meta import Condition
from kubewright.api.model import Model
from kubewright.api.resources import Object, Resource
from kubewright.api.resources import resource as kind
from kubewright.client.watch import parse_event


class Part(Model):
    name: str
    weight: int = 0
    material: str = "steel"
    tested: bool = False


class WidgetSpec(Model):
    size: int
    color: str
    parts: list[Part] = []
    options: dict[str, str] = {}


class WidgetStatus(Model):
    ready: int = 0
    conditions: list[Condition] = []


@kind("example.com/v1")
class Widget(Resource[WidgetSpec, WidgetStatus]):
    """The custom resource."""


def _decoding(form: str, path: Path) -> Callable[[], object]:
    raw = path.read_bytes()
    types: dict[str, type[Object]] = {"pod": Pod, "widget": Widget}
    cls = types[path.stem]
    if form == "typed":
        return lambda: decode(cls, raw)
    if form == "dynamic":
        untyped = Dynamic.of("example.com/v1", "Anything")
        return lambda: decode(untyped, raw)
    line = b'{"type":"MODIFIED","object":' + raw + b"}"
    return lambda: parse_event(cls, line)


def _cpu() -> int:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return round((usage.ru_utime + usage.ru_stime) * 1e6)


if __name__ == "__main__":
    run = _decoding(sys.argv[1], Path(sys.argv[2]))
    for _ in range(100):
        run()
    before = _cpu()
    kept = [run() for _ in range(int(sys.argv[3]))]
    print(_cpu() - before)
