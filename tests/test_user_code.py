"""What users write is typed: programs of README and docs, the operators, `tests/user_code`, by both type checkers."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's project: nothing of ours but the installed package, and no configuration but the strictest."""
    for document, programs in (("README.md", 1), ("docs/patterns.md", 2)):
        found = re.findall(r"^```python\n(.*?)^```", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)
        assert len(found) == programs
        for number, program in enumerate(found, 1):
            (tmp_path / f"{Path(document).stem.lower()}_program_{number}.py").write_text(program)
    for folder in (ROOT / "examples", ROOT / "operators", ROOT / "tests/user_code"):
        left_out = shutil.ignore_patterns("__pycache__", "tests", "conftest.py")
        shutil.copytree(folder, tmp_path / folder.name, ignore=left_out)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict", "pythonVersion": "3.11"}')
    return tmp_path


def test_mypy_passes_in_strict_mode(project: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--explicit-package-bases", "."]
    answer = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert answer.stdout.startswith("Success"), answer.stdout + answer.stderr


def test_pyright_passes_in_strict_mode(project: Path) -> None:
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    answer = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert answer.stdout.startswith("0 errors"), answer.stdout + answer.stderr
