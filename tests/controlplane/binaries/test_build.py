from __future__ import annotations

import functools
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from kubewright.controlplane import BuildFailed
from kubewright.controlplane.binaries import cached_directory, find_binaries
from kubewright.controlplane.binaries.build import build
from kubewright.controlplane.binaries.progress import Progress

COMMAND = [sys.executable, "-m", "kubewright.controlplane.binaries"]


class FakeGo(Protocol):
    folder: Path

    def mode(self, mode: str) -> None: ...
    def calls(self, command: str) -> list[dict[str, object]]: ...


@contextmanager
def builder(preexec_fn: Callable[[], object] | None = None) -> Iterator[subprocess.Popen[str]]:
    """A process that builds. It ends with the block, also with one that fails while the build waits."""
    pipe = subprocess.PIPE
    with subprocess.Popen(COMMAND, stdout=pipe, stderr=pipe, text=True, preexec_fn=preexec_fn) as process:
        try:
            yield process
        finally:
            process.terminate()


def contents(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_build_leaves_a_complete_folder_and_nothing_else(go: FakeGo, cache: Path) -> None:
    output = io.StringIO()

    folder = build(Progress(output))

    assert folder == find_binaries().directory == cached_directory()
    assert contents(folder) == ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"]
    assert contents(cache) == [".lock", folder.name]
    assert "kubewright: 3 of 3 packages compiled" in output.getvalue()


def test_existing_binaries_are_not_built_again(go: FakeGo) -> None:
    build(Progress(io.StringIO()))
    build(Progress(io.StringIO()))

    assert len(go.calls("build")) == 1


def test_force_replaces_existing_binaries(go: FakeGo, cache: Path) -> None:
    folder = build(Progress(io.StringIO()))
    (folder / "old").touch()

    build(Progress(io.StringIO()), force=True)

    assert len(go.calls("build")) == 2
    assert contents(folder) == ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"]
    assert contents(cache) == [".lock", folder.name]


def test_a_failed_build_shows_the_end_of_its_output_but_no_password_and_leaves_nothing(go: FakeGo, cache: Path) -> None:
    go.mode("fail")

    with pytest.raises(BuildFailed) as caught:
        build(Progress(io.StringIO()))

    assert "`go build` exited with 1" in str(caught.value)
    assert "https://***@proxy.example/one: 404" in str(caught.value)
    assert contents(cache) == [".lock"]


def test_a_failed_rebuild_keeps_the_existing_binaries(go: FakeGo) -> None:
    folder = build(Progress(io.StringIO()))
    go.mode("fail")

    with pytest.raises(BuildFailed):
        build(Progress(io.StringIO()), force=True)

    assert find_binaries().directory == folder


def test_a_program_of_the_wrong_version_is_refused(go: FakeGo, cache: Path) -> None:
    go.mode("wrong")

    message = r"the etcd that was built is not 3\.6\.8; its version command printed: etcd Version: 2\.0"
    with pytest.raises(BuildFailed, match=message):
        build(Progress(io.StringIO()))

    assert contents(cache) == [".lock"]


def test_go_that_is_too_old_is_named_with_the_remedies(go: FakeGo, cache: Path) -> None:
    go.mode("old")

    with pytest.raises(
        BuildFailed, match=rf"Go is too old: {go.folder}/go is go1\.25\.1; install Go 1\.26 or newer, or"
    ):
        build(Progress(io.StringIO()))

    assert contents(cache) == [".lock"]


@pytest.mark.usefixtures("no_go")
def test_missing_go_is_reported_with_the_remedies() -> None:
    with pytest.raises(BuildFailed, match=r"Go is not installed: install Go 1\.26 or newer, or set KUBEBUILDER_ASSETS"):
        build(Progress(io.StringIO()))


def test_a_cache_that_cannot_be_written_is_named(go: FakeGo, cache: Path) -> None:
    cache.parent.mkdir(parents=True)
    cache.touch()

    with pytest.raises(BuildFailed, match=rf"cannot write to the cache {cache}"):
        build(Progress(io.StringIO()))


def test_other_go_projects_of_the_user_do_not_matter(go: FakeGo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOS", "windows")
    monkeypatch.setenv("GOWORK", "/somewhere/go.work")

    build(Progress(io.StringIO()))

    (call,) = go.calls("build")
    environment = call["environment"]
    assert isinstance(environment, dict)
    assert "GOOS" not in environment
    assert environment["GOWORK"] == "off"


def test_the_remains_of_a_killed_build_are_removed_by_the_next(go: FakeGo, cache: Path) -> None:
    (cache / ".building-killed").mkdir(parents=True)

    folder = build(Progress(io.StringIO()))

    assert contents(cache) == [".lock", folder.name]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_ends_go_and_leaves_nothing(
    ending: signal.Signals,
    go: FakeGo,
    cache: Path,
    wait_until: Callable[[Callable[[], bool]], None],
    is_running: Callable[[int], bool],
) -> None:
    go.mode("hang")
    os.mkfifo(go.folder / "gate")
    # Where tests run in the background, SIGINT is ignored, and children inherit that.
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with builder(preexec_fn=heed) as process:
        wait_until(lambda: bool(go.calls("build")))
        process.send_signal(ending)
        _, complaint = process.communicate(timeout=60)

    assert process.returncode == 130
    assert complaint.endswith("kubewright: interrupted, nothing was built\n")
    assert contents(cache) == [".lock"]
    pid = go.calls("build")[0]["pid"]
    assert isinstance(pid, int)
    assert not is_running(pid)


def test_two_builders_build_once(go: FakeGo, cache: Path, wait_until: Callable[[Callable[[], bool]], None]) -> None:
    go.mode("hang")
    gate = go.folder / "gate"
    os.mkfifo(gate)
    with builder() as first:
        wait_until(lambda: bool(go.calls("build")))
        with builder() as second:
            assert second.stderr is not None
            assert second.stderr.readline() == "kubewright: another build is running, waiting for its result\n"

            gate.write_text("open")
            results = [process.communicate()[0].strip() for process in (first, second)]

    assert results == [str(cached_directory())] * 2
    assert len(go.calls("build")) == 1
