"""Run the tests of the object model and the runtime on every supported CPython but the one that runs this.

They run on the embedded control plane. Each Python gets an environment of its own, with the pinned dependencies, in
`.venv/pythons`. A version that is neither on this machine nor among Debian's packages is named at the end, and does not
fail the run.

    python -m tools.pythons                         all of them
    python -m tools.pythons -- -n 2 -k queue        what follows -- goes to pytest
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tools.pythons import debian, found

SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
TESTS = ("api", "manifest", "client", "cache", "controller", "manager", "testing")

# What a real server answers does not depend on our Python, and to start one for each takes a quarter of the time.
_EMBEDDED = "not real or watchdog"

_ROOT = Path(__file__).parent.parent.parent


def main(arguments: list[str]) -> int:
    """Exit status 1 when the tests failed on one of them."""
    if arguments and arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    tried, failed, unavailable = [own], list[str](), list[str]()
    for version in SUPPORTED:
        if version == own:
            continue
        try:
            python = found.find(version) or debian.fetch(version)
        except debian.Unavailable as error:
            unavailable.append(f"{version} ({error})")
            continue
        print(f"kubewright: the object model and the runtime on Python {version}", flush=True)
        tried.append(version)
        if not _passes(_environment(python, version), [argument for argument in arguments if argument != "--"]):
            failed.append(version)
    print(f"kubewright: tried on Python {', '.join(tried)}; not tried: {', '.join(unavailable) or 'none'}")
    if failed:
        print(f"kubewright: tests failed on Python {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _environment(python: Path, version: str) -> Path:
    environment = _ROOT / ".venv/pythons" / version
    interpreter = environment / "bin/python"
    uv = str(Path(sys.executable).parent / "uv")
    install = [uv, "pip", "install", "--quiet", "--python", str(interpreter)]
    for command in (
        [uv, "venv", "--quiet", "--clear", "--python", str(python), str(environment)],
        [*install, "--require-hashes", "-r", "requirements/dev.txt"],
        [*install, "--no-deps", "--no-build-isolation", "-e", "."],
    ):
        subprocess.run(command, cwd=_ROOT, check=True)
    return interpreter


def _passes(python: Path, arguments: list[str]) -> bool:
    folders = [f"tests/{name}" for name in TESTS]
    command = [str(python), "-m", "pytest", "-q", *folders, "-k", _EMBEDDED, *arguments]
    return subprocess.run(command, cwd=_ROOT, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
