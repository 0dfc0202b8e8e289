"""Which Python the measured programs run on: the fastest of this version in PATH that can.

Distributions, container images and uv ship a Python that was compiled with profile-guided optimisation; pyenv compiles
one without unless it is configured to, which costs a tenth. The Go programs beside ours are made by a release of Go as
everybody has it, so ours run on a Python as nearly everybody has it. The libraries are those of this environment.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path

_ROUNDS = 5
_WORTH_IT = 0.97
_ROOT = Path(__file__).parent.parent
_environments = tempfile.TemporaryDirectory(prefix="bench-python-")  # until the process ends
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
    version = f"python3.{sys.version_info.minor}"
    folders = os.environ.get("PATH", "").split(os.pathsep)
    found = [shutil.which(version, path=folder) for folder in folders]
    # What pyenv calls shims are scripts that start one of the others.
    others = dict.fromkeys(Path(path).resolve() for path in found if path is not None and _is_program(Path(path)))
    candidates = {path: _installed(path) for path in (sys.executable, *map(str, others))}
    installed = {path: python for path, python in candidates.items() if python is not None}
    if sys.executable not in installed:
        raise SystemExit(f"bench: {sys.executable} -m venv does not work; install the venv module of that Python")
    times = {path: [_sample(python) for _ in range(_ROUNDS)] for path, python in installed.items()}
    fastest = min(times, key=lambda path: min(times[path]))
    gain = min(times[fastest]) / min(times[sys.executable])
    if gain > _WORTH_IT:
        return installed[sys.executable]
    print(
        f"  Python programs run on {fastest}: it takes {gain:.2f} of the time of {sys.executable}",
        file=sys.stderr,
        flush=True,
    )
    return installed[fastest]


def environment() -> dict[str, str]:
    """The variables to run it with: those of this process, but for what changes where and how Python finds modules."""
    changing = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if name not in changing}


def _installed(path: str) -> str | None:
    """That Python in an environment with the libraries of this one, kubewright and the benchmarks; None if it cannot.

    A path of modules in PYTHONPATH would be searched before the standard library, which no installed program has.
    """
    directory = Path(tempfile.mkdtemp(dir=_environments.name))
    try:
        make = [path, "-m", "venv", "--without-pip", str(directory)]
        subprocess.run(make, env=environment(), check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    paths = [str(_ROOT / "src"), str(_ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    (packages,) = directory.glob("lib/python*/site-packages")
    (packages / "bench.pth").write_text("\n".join(dict.fromkeys(paths)))
    return str(directory / "bin" / "python")


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
