"""Pythons from the packages of Debian's testing release, unpacked into a folder of their own.

Nothing is installed: apt resolves and downloads into that folder, from the mirror and with the keys that this machine
has. The C library comes with them, so that they run on an older release, too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tools.pythons.found import runs

_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class Unavailable(Exception):
    """Why there is no such Python to be had."""


def fetch(version: str) -> Path:
    """The Python of that version ("3.14"), fetched once into the user's cache. Raises `Unavailable`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    folder = cache / "kubewright" / "pythons" / version
    python = folder / "usr/bin" / f"python{version}"
    if python.exists():
        return python
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Made under another name and then renamed: a run that is interrupted leaves nothing that looks complete.
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        tree = Path(temporary) / "tree"
        _unpack(version, Path(temporary), tree)
        _start_with_own_libraries(tree / "usr/bin" / python.name, folder)
        shutil.rmtree(folder, ignore_errors=True)
        tree.rename(folder)
    if not runs(python, version):
        shutil.rmtree(folder)
        raise Unavailable("Debian's does not run here")
    return python


def _unpack(version: str, folder: Path, tree: Path) -> None:
    sources = folder / "sources.list"
    sources.write_text(f"deb [signed-by={_KEYS}] {_mirror()} testing main\n")
    for name in ("lists/partial", "archives/partial"):
        (folder / name).mkdir(parents=True)
    options = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": "/dev/null",  # as if nothing were installed: all that it needs is downloaded
        "Dir::Cache::archives": folder / "archives",
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "root",
        "Debug::NoLocking": "1",
    }
    apt = ["apt-get", "--quiet", "--yes", *(f"-o{name}={value}" for name, value in options.items())]
    _run([*apt, "update"])
    _run([*apt, "install", "--no-install-recommends", "--download-only", f"python{version}"])
    for package in sorted((folder / "archives").glob("*.deb")):
        _run(["dpkg-deb", "--extract", str(package), str(tree)])


def _mirror() -> str:
    listed = _run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(SUITE)", "Created-By: Packages"])
    for line in listed.splitlines():
        mirror, origin, suite = [*line.split(), "", ""][:3]
        if origin == "Debian" and not suite.endswith(("-security", "-updates", "-backports")):
            return mirror
    raise Unavailable("apt knows no mirror of Debian (does `apt-get update` help?)")


def _start_with_own_libraries(python: Path, folder: Path) -> None:
    """Replace the program by a script that starts it with the C library beside it."""
    program = python.with_suffix(".elf")
    python.rename(program)
    loader = next((python.parent.parent / "lib64").glob("ld-linux-*"), None)
    if loader is None:
        raise Unavailable("Debian's has no loader for this machine")
    libraries = [path for path in (python.parent.parent / "lib").glob("*-linux-gnu") if path.is_dir()]
    inside = {path: folder / path.relative_to(python.parent.parent.parent) for path in (loader, program, *libraries)}
    search = ":".join(str(inside[path]) for path in libraries)
    # Python finds its environment by the name it was called with.
    command = f'exec {inside[loader]} --library-path {search} --argv0 "$0" {inside[program]} "$@"'
    python.write_text(f"#!/bin/sh\n{command}\n")
    python.chmod(0o755)


def _run(command: list[str]) -> str:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    except FileNotFoundError:
        raise Unavailable(f"{command[0]} is not on this machine") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} did not end within 10 minutes") from None
    if answer.returncode:
        said = answer.stderr.strip().splitlines() or [f"exit status {answer.returncode}"]
        raise Unavailable(f"{command[0]} says: {said[-1]}")
    return answer.stdout
