"""The README's program does what the README says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.fixture(scope="module")
def program() -> str:
    (found,) = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    assert isinstance(found, str)
    return found


def test_the_program_prints_what_the_readme_says(program: str) -> None:
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (answer.stderr, answer.stdout) == ("", "[3]\n")


def test_the_program_is_typed(program: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program)
    answer = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path}", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert answer.stdout.startswith("Success"), answer.stdout


@pytest.mark.usefixtures("real_control_plane")
def test_it_prints_the_same_on_the_real_server(program: str) -> None:
    real = program.replace("ControlPlane.embedded()", "ControlPlane.real(controller_manager=True)")
    assert real != program
    answer = subprocess.run([sys.executable, "-c", real], capture_output=True, text=True, timeout=60)
    assert (answer.stderr, answer.stdout) == ("", "[3]\n")
