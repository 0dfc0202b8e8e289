"""The scripts are run by a real shell, on directories instead of volumes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from operators.devbox.scripts import ARCHIVE, RESTORE, SEED

SHELLS = [shell for shell in ("sh", "bash", "dash") if shutil.which(shell)]


class Volumes:
    """A content volume, the archive it is committed to, the archive it came from, and the image."""

    def __init__(self, root: Path, shell: str) -> None:
        self.shell = shell
        self.content, self.archive, self.base, self.image = (
            root / name for name in ("content", "archive", "base", "image with 'quotes'")
        )
        for each in (self.content, self.archive, self.base, self.image):
            each.mkdir()

    def run(self, script: str, *arguments: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [self.shell, "-c", script, "name", *map(str, arguments)]
        return subprocess.run(command, check=check, capture_output=True, text=True)

    def seed(self) -> None:
        self.run(SEED, self.content, self.image)

    def restore(self, archive: Path) -> None:
        self.run(RESTORE, self.content, archive)

    def commit(self) -> None:
        self.run(ARCHIVE, self.content, self.archive, self.base)

    @property
    def project(self) -> Path:
        return self.content / "project"


@pytest.fixture(params=SHELLS)
def volumes(request: pytest.FixtureRequest, tmp_path: Path) -> Volumes:
    return Volumes(tmp_path, str(request.param))


def fill(directory: Path) -> None:
    """Files of all sorts."""
    (directory / "entrypoint.sh").write_text("#!/bin/sh\n")
    (directory / "entrypoint.sh").chmod(0o755)
    (directory / ".hidden").write_text("h")
    (directory / "-rf").write_text("a name like an option")
    (directory / "new\nline 'and' \"quotes\"").write_text("n")
    (directory / "src" / "empty").mkdir(parents=True)
    (directory / "link").symlink_to("entrypoint.sh")
    (directory / "dangling").symlink_to("/nowhere")
    (directory / "binary").write_bytes(bytes(range(256)) * 500)


def tree(directory: Path) -> dict[str, tuple[int, bytes | str]]:
    """All of a directory: modes, and contents or targets."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(directory.rglob("*")):
        content = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
        found[str(path.relative_to(directory))] = (path.lstat().st_mode, content)
    return found


def test_a_content_begins_with_the_files_of_the_image(volumes: Volumes) -> None:
    fill(volumes.image)
    volumes.seed()
    assert tree(volumes.project) == tree(volumes.image)


def test_a_content_is_filled_once(volumes: Volumes) -> None:
    fill(volumes.image)
    volumes.seed()
    (volumes.project / "mine").write_text("m")
    (volumes.project / "binary").unlink()
    before = tree(volumes.project)
    volumes.seed()
    volumes.restore(volumes.base)
    assert tree(volumes.project) == before


def test_what_was_interrupted_starts_over(volumes: Volumes) -> None:
    fill(volumes.image)
    volumes.project.mkdir()
    (volumes.project / "half").write_text("of a copy that was killed")
    volumes.seed()
    assert tree(volumes.project) == tree(volumes.image)


def test_an_image_without_the_directory_begins_empty(volumes: Volumes) -> None:
    volumes.image.rmdir()
    volumes.seed()
    assert tree(volumes.project) == {}


def test_what_is_archived_is_restored_exactly(volumes: Volumes, tmp_path: Path) -> None:
    volumes.seed()
    fill(volumes.project)
    volumes.commit()
    (tmp_path / "next").mkdir()
    following = Volumes(tmp_path / "next", volumes.shell)
    following.restore(volumes.archive)
    assert tree(following.project) == tree(volumes.project)
    fill(following.image)
    following.seed()
    assert tree(following.project) == tree(volumes.project)
    assert [path.name for path in volumes.archive.iterdir()] == ["content.tar.gz"]


def test_a_content_that_was_never_made_is_committed_as_what_it_was_to_be_made_from(
    volumes: Volumes, tmp_path: Path
) -> None:
    (tmp_path / "earlier").mkdir()
    earlier = Volumes(tmp_path / "earlier", volumes.shell)
    earlier.seed()
    fill(earlier.project)
    earlier.commit()
    shutil.copy(earlier.archive / "content.tar.gz", volumes.base)
    (volumes.project).mkdir()
    (volumes.project / "half").write_text("of a restore that was killed")
    volumes.commit()
    shutil.rmtree(volumes.content)
    volumes.content.mkdir()
    volumes.restore(volumes.archive)
    assert tree(volumes.project) == tree(earlier.project)


def test_a_content_that_was_never_made_and_has_no_archive_begins_from_the_image_again(volumes: Volumes) -> None:
    shutil.rmtree(volumes.base)
    volumes.commit()
    assert list(volumes.archive.iterdir()) == []
    fill(volumes.image)
    volumes.restore(volumes.archive)
    volumes.seed()
    assert tree(volumes.project) == tree(volumes.image)


def test_a_commit_that_fails_leaves_content_and_earlier_archive_as_they_are(volumes: Volumes) -> None:
    volumes.seed()
    (volumes.project / "mine").write_text("m")
    volumes.commit()
    archived, before = (volumes.archive / "content.tar.gz").read_bytes(), tree(volumes.project)
    (volumes.archive / "partial").mkdir()  # cannot be written to, and is not a file that can be removed
    failed = volumes.run(ARCHIVE, volumes.content, volumes.archive, volumes.base, check=False)
    assert failed.returncode != 0
    assert (volumes.archive / "content.tar.gz").read_bytes() == archived
    assert tree(volumes.project) == before


def test_what_another_commit_has_begun_is_not_taken_for_the_archive(volumes: Volumes, tmp_path: Path) -> None:
    """As when a Job was deleted without its pod: the next one begins while that ends."""
    volumes.seed()
    fill(volumes.project)
    half, whole = tmp_path / "half", tmp_path / "whole"
    begin_another = f'PATH="{half}:$PATH" {volumes.shell} -c "$ARCHIVE" it "$CONTENT" "$ARCHIVES" "$BASE" || true'
    for directory, script in ((half, 'echo half > "$2"; kill $PPID'), (whole, f'tar "$@"\n{begin_another}')):
        directory.mkdir()
        (directory / "tar").write_text(f'#!/bin/sh\nPATH="${{PATH#{directory}:}}"\n{script}\n')
        (directory / "tar").chmod(0o755)
    paths = {"CONTENT": volumes.content, "ARCHIVES": volumes.archive, "BASE": volumes.base}
    env = {"PATH": f"{whole}:{os.environ['PATH']}", "ARCHIVE": ARCHIVE, **{name: str(at) for name, at in paths.items()}}
    command = [volumes.shell, "-c", ARCHIVE, "it", *map(str, paths.values())]
    assert subprocess.run(command, check=False, capture_output=True, env=env).returncode != 0
    assert not (volumes.archive / "content.tar.gz").exists()
    volumes.commit()
    assert [path.name for path in volumes.archive.iterdir()] == ["content.tar.gz"]


def test_an_archive_that_cannot_be_read_leaves_the_content_incomplete(volumes: Volumes) -> None:
    (volumes.base / "content.tar.gz").write_bytes(b"cut off")
    failed = volumes.run(RESTORE, volumes.content, volumes.base, check=False)
    assert failed.returncode != 0
    assert not (volumes.content / ".complete").exists()
