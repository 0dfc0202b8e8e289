"""Which Python the measured programs run on: the fastest of this version in PATH that can.

Distributions, container images and uv ship a Python that was compiled with profile-guided optimisation; pyenv compiles
one without unless it is told to, which costs a tenth. The Go programs beside ours are made by a release of Go as
everybody has it, so ours run on a Python as nearly everybody has it. The libraries are those of this environment.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

_ROUNDS = 5
_WORTH_IT = 0.97
_ROOT = Path(__file__).parent.parent
# What our programs do most: calls, attributes, dicts, text, coroutines. Prints the least time of some rounds.
_SAMPLE = """
import time

import httptools, msgspec, uvloop

class Thing:
    def __init__(self, name, size):
        self.name, self.size = name, size
    def key(self):
        return f"{self.name}/{self.size}"

async def inner(thing):
    return thing.key()

async def outer(thing):
    return await inner(thing)

def work():
    found = {}
    for number in range(6000):
        try:
            outer(Thing("a", number)).send(None)
        except StopIteration as answer:
            found[answer.value] = len(found)
    return sorted(found, key=found.get)

def timed():
    began = time.process_time()
    work()
    return time.process_time() - began

print(min(timed() for _ in range(5)))
"""


@cache
def interpreter() -> str:
    """The path of the Python to run the measured programs with; always with `environment`."""
    own = sys.executable
    version = f"python3.{sys.version_info.minor}"
    folders = os.environ.get("PATH", "").split(os.pathsep)
    found = [shutil.which(version, path=folder) for folder in folders]
    # What pyenv calls shims are scripts that start one of the others.
    others = [path for path in dict.fromkeys(found) if path is not None and _is_program(Path(path))]
    times = {path: [_sample(path) for _ in range(_ROUNDS)] for path in (own, *others)}
    fastest = min(times, key=lambda path: min(times[path]))
    gain = min(times[fastest]) / min(times[own])
    if gain > _WORTH_IT:
        return own
    print(f"  Python programs run on {fastest}: it takes {gain:.2f} of the time of {own}", file=sys.stderr, flush=True)
    return fastest


def environment() -> dict[str, str]:
    """What lets that Python find the libraries of this one, kubewright and the benchmarks."""
    paths = [str(_ROOT / "src"), str(_ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def _is_program(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) != b"#!"


def _sample(path: str) -> float:
    """Seconds; infinitely many for one that cannot run our programs."""
    try:
        done = subprocess.run([path, "-c", _SAMPLE], env=environment(), capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return math.inf
    return float(done.stdout)
