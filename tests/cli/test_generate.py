"""`kubewright generate`: which files it writes, leaves, and removes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from operators import podmanager
from tests.cli.command import Done, command, command_beside
from tests.cli.ferryman import Ferryman

from kubewright.cli.generated_files import MARK, compared, write
from kubewright.deployment import Operator, files_of, with_setup
from kubewright.manifest.errors import ManifestError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Ferryman.write(tmp_path, "ferryman").directory


def generate(project: Path, *arguments: str) -> Done:
    return command("generate", "ferryman", *arguments, cwd=project)


def contents(directory: Path) -> dict[str, str]:
    files = (path for path in directory.rglob("*") if path.is_file() and "ferryman" not in path.parts)
    return {path.relative_to(directory).as_posix(): path.read_text() for path in files}


async def test_the_files_are_those_that_the_library_renders_with_a_mark(tmp_path: Path) -> None:
    output = str(tmp_path / "new")
    done = await command_beside("generate", "operators.podmanager", "--image", "podmanager:1.0", "--output", output)
    operator = await with_setup(Operator(name="podmanager", image="podmanager:1.0"), podmanager.setup)
    rendered = files_of(operator)
    written = contents(tmp_path / "new")
    samples = {"apps_v1_podmanager.yaml", "apps_v1beta1_podmanager.yaml", "kustomization.yaml"}
    assert written.keys() == {*rendered, "Dockerfile", *(f"config/samples/{name}" for name in samples)}
    for path, content in rendered.items():
        first, _, rest = written[path].partition("\n")
        assert first.startswith(MARK)
        assert rest == content
    assert done.output.splitlines() == [f"written    {path}" for path in sorted(written)]


def test_a_second_run_changes_nothing(project: Path) -> None:
    generate(project)
    before = {path: path.stat().st_mtime_ns for path in project.rglob("*") if path.is_file()}
    done = generate(project)
    assert {line.split()[0] for line in done.output.splitlines()} == {"unchanged"}
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_what_is_equal_in_meaning_is_left_as_it_is(project: Path) -> None:
    generate(project)
    role = project / "config/rbac/role_binding.yaml"
    text = role.read_text().replace("  name: ferryman\n", '  "name":   ferryman # mine\n') + "\n# the end\n"
    text = f"# SPDX-License-Identifier: Apache-2.0\n\n---\n{text}"
    role.write_text(text)
    assert generate(project, "--check") == (0, "", "")
    assert "unchanged  config/rbac/role_binding.yaml\n" in generate(project).output
    assert role.read_text() == text
    # With all that it is still generated.
    assert "written    config/rbac/role_binding.yaml\n" in generate(project, "--namespace=styx").output


def test_check_shows_the_difference_in_meaning_and_writes_nothing(project: Path) -> None:
    generate(project)
    service = project / "config/manager/metrics_service.yaml"
    service.write_text(service.read_text().replace("port: 8443", "port:   8444 # secure"))
    (project / "config/default/kustomization.yaml").unlink()
    (project / "config/rbac/old.yaml").write_text(f"{MARK}\na: 1\n")
    before = contents(project)

    done = generate(project, "--check")

    assert done.code == 1
    assert done.errors == "kubewright: not up to date: 3 files in .; run the same without --check\n"
    changes = [line for line in done.output.splitlines() if line[:1] in "+-"]
    assert changes == [
        "--- /dev/null",
        "+++ b/config/default/kustomization.yaml",
        "+apiVersion: kustomize.config.k8s.io/v1beta1",
        "+kind: Kustomization",
        "+resources:",
        "+- ../crd",
        "+- ../manager",
        "+- ../network-policy",
        "+- ../rbac",
        "--- a/config/manager/metrics_service.yaml",
        "+++ b/config/manager/metrics_service.yaml",
        "-    port: 8444",
        "+    port: 8443",
        "--- a/config/rbac/old.yaml",
        "+++ /dev/null",
        "-a: 1",
    ]
    assert contents(project) == before
    assert generate(project).code == 0
    assert generate(project, "--check") == (0, "", "")


def test_a_number_that_became_a_text_is_a_difference(project: Path) -> None:
    generate(project)
    service = project / "config/manager/metrics_service.yaml"
    service.write_text(service.read_text().replace("port: 8443", 'port: "8443"'))
    assert "-    port: '8443'\n+    port: 8443\n" in generate(project, "--check").output


def test_files_that_are_no_longer_needed_are_removed_but_not_those_of_others(project: Path) -> None:
    generate(project)
    (project / "config/crd/patches").mkdir()
    mine = project / "config/crd/patches/mine.yaml"
    mine.write_text("kind: Mine\n")
    empty = project / "config/crd/patches/empty.yaml"
    empty.touch()
    overlay = project / "config/production"
    shutil.copytree(project / "config/default", overlay)
    program = project / "ferryman/program.py"
    program.write_text(program.read_text().replace("Ferry", "Raft"))
    (project / "ferryman/samples/ferry.yaml").unlink()

    done = generate(project)

    removed = {line.split()[1] for line in done.output.splitlines() if line.startswith("removed")}
    roles = {f"config/rbac/ferry_{role}_role.yaml" for role in ("admin", "editor", "viewer")}
    samples = {"config/samples/ferryman_v1_ferry.yaml", "config/samples/kustomization.yaml"}
    assert removed == {"config/crd/bases/ferryman.cli.test_ferries.yaml", *roles, *samples}
    assert not any((project / path).exists() for path in (*removed, "config/samples"))
    assert mine.read_text() == "kind: Mine\n"
    assert empty.exists()
    assert (overlay / "kustomization.yaml").exists()


def test_files_of_others_are_not_overwritten(project: Path) -> None:
    role = project / "config/rbac/role.yaml"
    role.parent.mkdir(parents=True)
    role.write_text("kind: Mine\n")

    refused = generate(project)
    assert refused == (
        1,
        "",
        "kubewright: not generated by this command: config/rbac/role.yaml; name another directory with --output DIR, "
        "or overwrite them with --force\n",
    )
    assert contents(project) == {"config/rbac/role.yaml": "kind: Mine\n"}

    assert generate(project, "--force").code == 0
    assert role.read_text().startswith(MARK)


def test_manifests_of_another_operator_are_not_replaced(project: Path) -> None:
    generate(project)
    before = contents(project)
    assert generate(project, "--name=charon") == (
        1,
        "",
        "kubewright: the manifests in . are of the operator ferryman: name another directory for those of charon with "
        "--output DIR, or replace them with --force\n",
    )
    assert contents(project) == before
    assert generate(project, "--name=charon", "--force").code == 0
    assert "name: charon\n" in (project / "config/manager/manager.yaml").read_text()


def test_a_dockerfile_of_the_user_is_kept(project: Path) -> None:
    (project / "Dockerfile").write_text("FROM scratch\n")
    done = generate(project)
    assert (done.code, "Dockerfile" in done.output) == (0, False)
    assert (project / "Dockerfile").read_text() == "FROM scratch\n"
    assert generate(project, "--check").code == 0


def test_a_link_stays_and_what_it_leads_to_is_written(project: Path) -> None:
    generate(project)
    for link, elsewhere in (("dist/install.yaml", "kept.yaml"), ("config/manager", "kept")):
        (project / link).rename(project / elsewhere)
        (project / link).symlink_to(project / elsewhere)
    assert generate(project, "--image", "ferry:2").code == 0
    for link, file in (("dist/install.yaml", "kept.yaml"), ("config/manager", "kept/manager.yaml")):
        assert (project / link).is_symlink()
        assert "image: ferry:2\n" in (project / file).read_text()


@pytest.mark.parametrize("given", ["file", "/dev/null"])
def test_an_output_that_is_no_directory_is_refused(given: str, project: Path) -> None:
    (project / "file").write_text("mine")
    done = generate(project, "--output", given)
    sentence = f"cannot write to {given}: it is not a directory; name one with --output DIR"
    assert (done.code, done.errors) == (1, f"kubewright: {sentence}\n")
    assert (project / "file").read_text() == "mine"


def test_an_output_of_a_variable_that_is_not_set_is_not_the_current_directory(project: Path) -> None:
    done = generate(project, "--output", "")
    assert (done.code, done.errors.splitlines()[-1]) == (
        2,
        "kubewright generate: error: argument --output: no directory: expected one such as bin/envtest, or . for this "
        "one",
    )


def test_a_package_that_cannot_be_run_is_a_warning(project: Path) -> None:
    """Its image would end at once."""
    assert generate(project).errors == ""
    (project / "ferryman/__main__.py").unlink()
    assert generate(project).errors == (
        'warning: ferryman has no __main__.py, which its image runs: write one that calls run(setup, name="ferryman")\n'
    )


def test_an_error_leaves_everything_as_it_was(tmp_path: Path) -> None:
    write(tmp_path, compared(tmp_path, {"config/a.yaml": "a: 1\n", "config/b/b.yaml": "b: 1\n"}))
    before = contents(tmp_path)
    (tmp_path / "config/c").write_text("a file, where a folder is to be\n")

    files = compared(
        tmp_path, {"config/a.yaml": "a: 2\n", "config/new/new.yaml": "b: 2\n", "config/c/d.yaml": "c: 1\n"}
    )
    with pytest.raises(ManifestError, match=r"cannot write .*/config/c: File exists; nothing was changed"):
        write(tmp_path, sorted(files, key=lambda each: each.path == "config/c/d.yaml"))

    (tmp_path / "config/c").unlink()
    assert contents(tmp_path) == before
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.yaml", "b", "b.yaml", "config"]


@pytest.mark.parametrize("moves", [1, 2, 3, 4])
def test_an_interrupt_right_after_a_move_leaves_everything_as_it_was(
    moves: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, compared(tmp_path, {"config/a.yaml": "a: 1\n", "config/b.yaml": "b: 1\n"}))
    before = contents(tmp_path)
    move, made = Path.replace, []

    def interrupted(path: Path, target: Path) -> Path:
        made.append(move(path, target))
        if len(made) == moves:
            raise KeyboardInterrupt
        return made[-1]

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, compared(tmp_path, {"config/a.yaml": "a: 2\n", "config/b.yaml": "b: 2\n"}))
    assert contents(tmp_path) == before


def test_a_file_that_is_nested_too_deeply_to_be_compared_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"{MARK}\na: {'[' * 3000}{']' * 3000}\n")
    (found,) = compared(tmp_path, {"a.yaml": "a: 1\n"})
    assert (found.outcome, found.diff() != "") == ("written", True)


@pytest.mark.parametrize("path", ["config", "config/manager/manager.yaml"])
def test_a_path_that_is_something_else_is_a_sentence(path: str, project: Path) -> None:
    if path == "config":
        (project / path).touch()
    else:
        (project / path).mkdir(parents=True)
    done = generate(project)
    assert done.code == 1
    assert done.errors.startswith("kubewright: cannot ")
    assert done.errors.count("\n") == 1
