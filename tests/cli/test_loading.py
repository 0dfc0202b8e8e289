"""Operators as they are named on a command line, and the sentences for those that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.command import Done, command
from tests.cli.ferryman import Ferryman


def checked(name: str, cwd: Path, *arguments: str) -> Done:
    return command("generate", name, "--check", *arguments, cwd=cwd)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Ferryman.write(tmp_path, "ferryman").directory


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("ferryman", "ferryman"),
        ("ferryman:setup", "ferryman"),
        ("ferryman.program", "ferryman"),
        ("ferryman.program:setup", "ferryman"),
    ],
)
def test_a_setup_function_is_found_in_the_current_directory(name: str, found: str, project: Path) -> None:
    done = command("generate", name, cwd=project)
    assert (done.code, done.errors) == (0, "")
    assert f"\n  name: {found}\n  namespace: {found}-system\n" in (project / "config/manager/manager.yaml").read_text()
    assert f'"-m", "{found}"]' in (project / "Dockerfile").read_text()


def test_a_module_without_a_package_is_run_itself(tmp_path: Path) -> None:
    (tmp_path / "river_boat.py").write_text(Ferryman.write(tmp_path).program.read_text())
    assert command("generate", "river_boat", cwd=tmp_path).code == 0
    assert '"-m", "river_boat"]' in (tmp_path / "Dockerfile").read_text()
    assert "image: river-boat:latest" in (tmp_path / "config/manager/manager.yaml").read_text()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "feryman",
            'there is no module "feryman" in {cwd} or among the installed packages, did you mean "ferryman"?',
        ),
        ("ferryman.progam:setup", 'there is no module "ferryman.progam" in ferryman, did you mean "ferryman.program"?'),
        (
            "ferryman.program.x",
            'there is no module "ferryman.program.x": ferryman.program is a module, and not a package',
        ),
        ("ferryman:setpu", 'ferryman has no "setpu", did you mean "setup"?'),
        (
            "ferryman:Reconciler.x",
            'ferryman has no "Reconciler.x": name the function that adds its controllers, as ferryman:setup would',
        ),
        (
            "./ferryman/program.py",
            '"./ferryman/program.py" does not name a setup function: expected PACKAGE:SETUP, such as '
            "ferryman.program:setup",
        ),
        # An error may have what others have written, such as pods: no terminal must take it for a command.
        (
            "ferry\x1b[2Kman:",
            '"ferry [2Kman:" does not name a setup function: expected PACKAGE:SETUP, such as podmanager:setup',
        ),
        ("ferryman:", '"ferryman:" does not name a setup function: expected PACKAGE:SETUP, such as ferryman:setup'),
        (
            "ferryman.program:FerrySpec",
            "ferryman.program:FerrySpec is the class FerrySpec: expected the function that adds its controllers, "
            "called as FerrySpec(manager)",
        ),
        (
            "ferryman.program:__name__",
            "ferryman.program:__name__ is an object of the type str: expected the function that adds its controllers, "
            "called as __name__(manager)",
        ),
    ],
)
def test_what_does_not_exist_is_a_sentence(name: str, sentence: str, project: Path) -> None:
    done = checked(name, project)
    assert done == (1, "", f"kubewright: {sentence.format(cwd=project)}\n")


SETUPS = {
    "three": "def setup(manager, a, b): ...",
    "number": "def setup(): return 3",
    "untyped": "def setup(manager, options): ...",
    "generator": "def setup(manager): yield",
    "nothing": "def setup(manager): ...",
    "asking": "from kubewright.api.core.v1 import Pod\nasync def setup(manager): await manager.live.list(Pod)",
    "hidden": "from __future__ import annotations\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
    "    from options import Options\ndef setup(manager, options: Options): ...",
    "ending": "import sys\ndef setup(manager): sys.exit(0)",
    "exiting": "import sys\nsys.exit(3)",
    "running": 'from kubewright import run\nrun(lambda manager: None, name="it")',
}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("three", "three:setup cannot be used: setup(manager, a, b) cannot be called as setup(manager)"),
        (
            "number",
            "number:setup has no parameters and returns an object of the type int: expected a setup function, called "
            "as setup(manager), or one that returns a kubewright.deployment.Operator",
        ),
        (
            "untyped",
            "untyped:setup: annotate options with the class that is given to run(options=...), so that its flags are "
            "known",
        ),
        (
            "generator",
            "generator:setup cannot be used: setup yields: decorate it with @contextlib.asynccontextmanager, and make "
            "it an async def",
        ),
        (
            "nothing",
            "there is nothing to run: setup has added no controller; add one with "
            "controller_for(manager, Kind).complete(reconciler)",
        ),
        (
            "asking",
            "the permissions of setup cannot be found out: it needs the API server, and is called without one; do that "
            "in a function given to manager.add (",
        ),
        (
            "hidden",
            "hidden:setup: the type of options cannot be found (name 'Options' is not defined): import it outside of "
            "if TYPE_CHECKING:",
        ),
        (
            "running",
            "running runs a program when it is imported: do that only where it is run itself, below "
            'if __name__ == "__main__":',
        ),
        (
            "exiting",
            "exiting runs a program when it is imported: do that only where it is run itself, below "
            'if __name__ == "__main__":',
        ),
    ],
)
def test_a_function_that_cannot_be_used_is_a_sentence(name: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text(SETUPS[name])
    done = checked(name, tmp_path)
    assert done.code == 1
    assert done.errors.startswith(f"kubewright: {sentence}")
    assert done.errors.count("\n") == 1


BROKEN = """
from broken_part import value
"""


@pytest.mark.parametrize(
    ("part", "last"),
    [
        ("import nowhere_to_be_found", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("value = 1 / 0", "ZeroDivisionError: division by zero"),
        ("def value(:", "SyntaxError: invalid syntax"),
        ("from kubewright import Pipelin", "ImportError: cannot import name 'Pipelin' from 'kubewright'"),
    ],
)
def test_a_module_that_cannot_be_imported_is_shown_with_the_frames_of_its_own(
    part: str, last: str, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    (tmp_path / "broken_part.py").write_text(f"{part}\n")
    done = checked("broken", tmp_path)
    lines = done.errors.splitlines()
    assert (done.code, done.output) == (1, "")
    assert lines[0] == "kubewright: broken cannot be imported:"
    assert lines[-1].startswith(last)
    assert [line for line in lines if line.startswith("  File ")] == [
        f'  File "{tmp_path}/broken.py", line 2, in <module>',
        f'  File "{tmp_path}/broken_part.py", line 1{"" if "Syntax" in last else ", in <module>"}',
    ]


@pytest.mark.parametrize(
    ("statement", "last"),
    [
        ("controller_for(manager, int)", "TypeError: "),
        ("open('nowhere.yaml')", "FileNotFoundError: [Errno 2] No such file or directory: 'nowhere.yaml'"),
    ],
)
def test_an_error_of_a_setup_function_is_shown_with_the_frames_of_its_own(
    statement: str, last: str, tmp_path: Path
) -> None:
    (tmp_path / "failing.py").write_text(
        f"from kubewright import controller_for\ndef setup(manager):\n    {statement}\n"
    )
    lines = checked("failing", tmp_path).errors.splitlines()
    assert lines[0] == "kubewright: failing:setup failed:"
    assert [line for line in lines if line.startswith("  File ")] == [
        f'  File "{tmp_path}/failing.py", line 3, in setup'
    ]
    assert lines[-1].startswith(last)


def test_a_setup_function_that_ends_the_process_has_failed(tmp_path: Path) -> None:
    (tmp_path / "ending.py").write_text(SETUPS["ending"])
    done = checked("ending", tmp_path)
    assert done.code == 1
    assert done.errors.startswith("kubewright: ending:setup failed:\n")
    assert done.errors.endswith("\nSystemExit: 0\n")


def test_what_a_program_prints_is_not_in_the_output(project: Path) -> None:
    with (project / "ferryman/program.py").open("a") as program:
        program.write("\nprint('hello')\n")
    done = command("roles", "ferryman", cwd=project)
    assert (done.output.splitlines()[0], done.errors) == ("apiVersion: rbac.authorization.k8s.io/v1", "hello\n")


PARAMETERS = """
from kubewright import Manager, Model
from ferryman import program

class Options(Model):
    zone: str = "east"

def optional(manager: Manager, options: Options | None = None, *, rivers: int | None = None) -> None:
    assert options is not None and options.zone == "west"
    program.setup(manager)

def keyword(manager: Manager, *, rivers: int | None = None) -> None:
    program.setup(manager)

def further(manager: Manager, rivers: int = 3, **others: object) -> None:
    program.setup(manager)
"""


@pytest.mark.parametrize(("name", "arguments"), [("optional", ["--", "--zone=west"]), ("keyword", []), ("further", [])])
def test_parameters_that_may_be_left_out_are_no_options(name: str, arguments: list[str], project: Path) -> None:
    (project / "ferryman/parameters.py").write_text(PARAMETERS)
    done = command("roles", f"ferryman.parameters:{name}", *arguments, cwd=project)
    assert (done.code, done.errors) == (0, "")


def test_options_of_the_operator_are_given_after_two_dashes(project: Path) -> None:
    program = (project / "ferryman/program.py").read_text()
    program = program.replace("def setup(manager: Manager)", "def setup(manager: Manager, options: 'Options')")
    (project / "ferryman/program.py").write_text(
        program + "\nclass Options(Model):\n    zone: str\n    river: str = 'Rhine'\n"
    )
    missing = checked("ferryman", project)
    assert missing.errors == (
        "kubewright: the arguments of the operator ferryman cannot be used: ferryman: error: --zone (or the "
        "environment variable FERRYMAN_ZONE) is required\n"
    )
    assert command("generate", "ferryman", "--", "--zone=west", cwd=project).code == 0
    assert "- --zone=west\n" in (project / "config/manager/manager.yaml").read_text()


def test_a_secret_option_is_read_from_a_secret_by_the_pods(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (project / "ferryman/program.py").read_text()
    program = program.replace("def setup(manager: Manager)", "def setup(manager: Manager, options: 'Options')")
    (project / "ferryman/program.py").write_text(program + "\nclass Options(Model):\n    token: str\n")
    monkeypatch.setenv("FERRYMAN_TOKEN", "s3cret")
    done = command("generate", "ferryman", "--env-from-secret", "ferryman-options", cwd=project)
    assert (done.code, done.errors) == (0, "")
    manager = (project / "config/manager/manager.yaml").read_text()
    assert "envFrom:\n        - secretRef:\n            name: ferryman-options\n" in manager
    assert not [file for file in project.rglob("*.yaml") if "s3cret" in file.read_text()]


def test_an_absolute_path_is_answered_with_the_module_that_is_meant(project: Path) -> None:
    done = checked(f"{project}/ferryman/program.py", project)
    assert done.errors.endswith("expected PACKAGE:SETUP, such as ferryman.program:setup\n")


WHOLE = """
from msgspec.structs import replace
from kubewright.deployment import Operator, with_setup
from ferryman import setup

async def operator():
    return await with_setup(Operator(name="charon", image="charon:1", namespace="styx", replicas=3), setup)
"""


def test_a_function_may_return_the_whole_operator(project: Path) -> None:
    (project / "ferryman/deployed.py").write_text(WHOLE)
    assert command("generate", "ferryman.deployed:operator", "--image", "charon:2", cwd=project).code == 0
    manager = (project / "config/manager/manager.yaml").read_text()
    assert "image: charon:2\n" in manager
    assert "replicas: 3\n" in manager
    assert '"-m", "ferryman"]' in (project / "Dockerfile").read_text()
    for named, *arguments in (("--name", "--name=x"), ("--namespace=x", "--", "--namespace=x")):
        done = checked("ferryman.deployed:operator", project, *arguments)
        assert done.errors == (
            f"kubewright: ferryman.deployed:operator is a whole Operator: give {named} there, and not on the command "
            "line\n"
        )


@pytest.mark.parametrize(
    ("sample", "sentence"),
    [
        ("kind: Ferry\n", "{file}, document 1: a sample needs apiVersion and kind"),
        (
            "kind: a\napiVersion: a/b/c\n",
            '{file}, document 1: "a/b/c", kind "a" does not name a kind: expected an '
            'apiVersion such as "v1" or "apps/v1" and a kind such as "Deployment"',
        ),
        ("\udcff", "{file}: not YAML: it is not UTF-8"),
        ("a: [\n", "{file}, document 1, line 2, column 1: not YAML: did not find expected node content"),
    ],
)
def test_a_sample_that_is_no_object_is_a_sentence(sample: str, sentence: str, project: Path) -> None:
    file = project / "ferryman/samples/ferry.yaml"
    file.write_bytes(sample.encode(errors="surrogateescape"))
    assert checked("ferryman", project).errors == f"kubewright: {sentence.format(file=file)}\n"


@pytest.mark.parametrize(
    ("right", "wrong", "sentence"),
    [
        ("12", "many", 'Ferry "big": not a valid Ferry: Expected `int`, got `str` - at `$.spec.seats`'),
        ("seats", "seets", 'Ferry big has no field spec.seets, did you mean "seats"?'),
        ("/v1", "/v2", "Ferry of ferryman.cli.test has no version v2 (versions: v1)"),
    ],
)
def test_a_sample_fits_its_type(right: str, wrong: str, sentence: str, project: Path) -> None:
    """A server would drop an unknown field, or refuse it when it is strict."""
    file = project / "ferryman/samples/ferry.yaml"
    file.write_text(file.read_text().replace(right, wrong))
    assert checked("ferryman", project).errors == f"kubewright: {file}, document 1: {sentence}\n"
