"""The command: `python -m tools.envtest_suites [PACKAGE …]`.

Runs controller-runtime's own suites on the real kube-apiserver and etcd and on those that `kubewright controlplane
--envtest-dir` lays down, and prints how many specs pass on each, and which pass only on the real ones. The sources are
those of the Go module that the benchmarks use. It needs Go and fetches what the suites need; the first run compiles for
several minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kubewright.controlplane.binaries import cached_directory
from kubewright.controlplane.envtest.programs import lay_down

_MODULE = "sigs.k8s.io/controller-runtime"
_PEER = Path(__file__).parents[1] / "bench/peers/controller_runtime/go.mod"
_PACKAGES = [
    "builder",
    "cache",
    "client",
    "client/apiutil",
    "cluster",
    "controller",
    "controller/controllerutil",
    "envtest",
    "handler",
    "internal/controller",
    "internal/recorder",
    "internal/testing/controlplane",
    "leaderelection",
    "manager",
    "manager/internal/integration",
    "metrics/filters",
    "reconcile",
    "source",
    "webhook",
]
_RESULT = re.compile(r"^--- (PASS|FAIL): (\w+)", re.MULTILINE)
_MINUTES = 20


class Outcome(NamedTuple):
    """What one run of a suite came to."""

    specs: Mapping[str, str]
    """The state of each spec: passed, failed, skipped, pending …"""
    seconds: float
    cpu: float


def main() -> int:
    """Run the suites; 1 when one cannot be built."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.envtest_suites",
        description="Runs controller-runtime's suites on the real control plane and on ours.",
        epilog="example: python -m tools.envtest_suites client cache --keep /tmp/suites",
    )
    parser.add_argument("packages", nargs="*", default=_PACKAGES, metavar="PACKAGE", help="below pkg/ (default: all)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where sources, programs and logs are kept")
    parser.add_argument("--only", choices=("real", "ours"), help="run on these alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = (options.keep or Path(temporary)).absolute()
        assets = {"real": cached_directory(), "ours": work / "assets"}
        lay_down(assets["ours"])
        sources = _sources(work)
        chosen = {name: path for name, path in assets.items() if options.only in (None, name)}
        for package in options.packages:
            suite = _built(sources, package, work)
            if suite is None:
                return 1
            found = {name: _run(suite, sources / "pkg" / package, path, work, name) for name, path in chosen.items()}
            _report(package, found)
    return 0


def _sources(work: Path) -> Path:
    """A copy of the module: its suites write beside their sources, and the cache must stay as it is."""
    copied = work / "controller-runtime"
    if not copied.exists():
        version = re.search(rf"{_MODULE} (v\S+)", _PEER.read_text())
        assert version is not None
        said = subprocess.run(
            ["go", "mod", "download", "-json", f"{_MODULE}@{version[1]}"], capture_output=True, check=True
        ).stdout
        shutil.copytree(json.loads(said)["Dir"], copied)
        subprocess.run(["chmod", "-R", "u+w", copied], check=True)
        # Modules are packed without modes.
        for script in copied.rglob("*.sh"):
            script.chmod(0o755)
    return copied


def _built(sources: Path, package: str, work: Path) -> Path | None:
    suite = work / f"{package.replace('/', '_')}.test"
    if not suite.exists():
        built = subprocess.run(
            ["go", "test", "-c", "-p", "2", "-o", suite, f"./pkg/{package}"], cwd=sources, stdout=sys.stderr
        )
        if built.returncode:
            return None
    return suite


def _run(suite: Path, directory: Path, assets: Path, work: Path, name: str) -> Outcome:
    report, log = work / f"{suite.stem}.{name}.json", work / f"{suite.stem}.{name}.log"
    report.unlink(missing_ok=True)
    began, used = time.monotonic(), _cpu()
    with log.open("wb") as output:
        subprocess.run(
            [suite, "-test.v", f"-test.timeout={_MINUTES}m", f"-ginkgo.json-report={report}", "-ginkgo.no-color"],
            cwd=directory,
            env={**os.environ, "KUBEBUILDER_ASSETS": str(assets), "GOMAXPROCS": "2"},
            stdout=output,
            stderr=output,
        )
    specs = dict(_specs(report))
    for result, test in _RESULT.findall(log.read_text(errors="replace")):
        # A function of Go that runs the specs is counted by them.
        if not (specs and _runs_specs(directory, test)):
            specs[test] = "passed" if result == "PASS" else "failed"
    return Outcome(specs, time.monotonic() - began, _cpu() - used)


def _specs(report: Path) -> list[tuple[str, str]]:
    if not report.exists():
        return []
    found = (spec for suite in json.loads(report.read_text()) for spec in suite["SpecReports"] or ())
    return [
        (" ".join([*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"]]), spec["State"])
        for spec in found
        if spec["LeafNodeType"] == "It"
    ]


def _runs_specs(directory: Path, test: str) -> bool:
    texts = [file.read_text() for file in directory.glob("*_test.go")]
    return any(re.search(rf"func {test}\([^}}]*RunSpecs\(", text) for text in texts)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _report(package: str, found: Mapping[str, Outcome]) -> None:
    for name, outcome in found.items():
        states = [*outcome.specs.values()]
        ran = [state for state in states if state not in ("pending", "skipped")]
        print(
            f"pkg/{package}, {name}: {states.count('passed')} of {len(ran)} pass, "
            f"{outcome.seconds:.0f} s, {outcome.cpu:.0f} s of CPU"
        )
    if len(found) == 2:
        for spec, state in found["real"].specs.items():
            here = found["ours"].specs.get(spec, "absent")
            if state == "passed" and here != "passed":
                print(f"  only real: {spec} ({here})")
            elif state == "failed":
                print(f"  fails on the real one, too: {spec} (ours: {here})")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
