from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operators.devbox.env_profile import env_profile, is_exportable

SHELLS = [shell for shell in ("sh", "bash", "dash") if shutil.which(shell)]
NASTY = {
    "QUOTES": 'it\'s "quoted" `backquoted`',
    "SUBSTITUTION": "$(touch /tmp/owned) ${HOME} $HOME `id`",
    "LINES": "one\ntwo\n\nthree\n",
    "BACKSLASHES": "\\ \\\\ \\n \\' '",
    "SEPARATORS": "a; b & c | d > /dev/null < x # y",
    "GLOBS": "* ? [a-z] ~ ~root {a,b} !history ^a",
    "SPACES": "  two  spaces\t and a tab ",
    "DASH": "-n -e --",
    "EMPTY": "",
    "UNICODE": "äöü 漢字 🦊",
    "CONTROL": "\x01\x1b[31m\x7f\r",
    "EQUALS": "a=b=c",
}
# Prints the environment, whatever is in it.
PRINT = "import json, os, sys; json.dump({k: os.environ.get(k) for k in sys.argv[1:]}, sys.stdout)"


def exported(shell: str, profile: str, names: list[str], tmp_path: Path, **env: str) -> dict[str, str | None]:
    """What a program sees that a shell starts after it has read the profile."""
    file = tmp_path / "env-profile.sh"
    file.write_text(profile, newline="")
    command = [shell, "-eu", "-c", '. "$1"; shift; exec "$@"', shell, str(file), sys.executable, "-c", PRINT, *names]
    done = subprocess.run(
        command, check=True, capture_output=True, cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "PYTHONUTF8": "1", **env}
    )
    found: dict[str, str | None] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("shell", SHELLS)
def test_every_value_survives_a_shell(shell: str, tmp_path: Path) -> None:
    assert exported(shell, env_profile(NASTY), list(NASTY), tmp_path) == NASTY
    assert {path.name for path in tmp_path.iterdir()} == {"env-profile.sh"}


@settings(max_examples=1, derandomize=True, deadline=None, database=None)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
        min_size=150,
        max_size=150,
    )
)
def test_any_text_survives_a_shell(values: list[str]) -> None:
    """One shell for all of them."""
    variables = {f"V{number}": value for number, value in enumerate(values)}
    with tempfile.TemporaryDirectory() as directory:
        assert exported("sh", env_profile(variables), list(variables), Path(directory)) == variables


def test_names_that_a_shell_cannot_export_are_left_out_and_break_nothing(tmp_path: Path) -> None:
    names = ["a-b", "a.b", "1st", "$(touch owned)", "", "a b", "x;touch owned", "é"]
    profile = env_profile({**dict.fromkeys(names, "value"), "LAST": "there"})
    assert profile == "export LAST='there'\n"
    assert exported("sh", profile, ["LAST"], tmp_path) == {"LAST": "there"}
    assert not [name for name in names if is_exportable(name)]


def test_values_that_no_process_can_have_are_left_out() -> None:
    assert env_profile({"A": "a\0b", "B": "b"}) == "export B='b'\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_variables_that_a_shell_keeps_for_itself_do_not_end_a_login(shell: str, tmp_path: Path) -> None:
    """They are read-only in a bash that is called sh, as on many images: the first one ended the shell.

    To those that are numbers it assigns what their value evaluates to, and runs the commands in that.
    """
    kept = subprocess.run(
        ["bash", "--posix", "-c", "readonly -p"],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    names = ["UID", "HISTCMD", "OPTIND", "RANDOM", "SRANDOM", *re.findall(r"(\w+)=", kept.stdout)]
    profile = env_profile({**dict.fromkeys(names, "PATH[$(touch owned)]"), "LAST": "there"})
    assert exported(shell, profile, ["LAST"], tmp_path, POSIXLY_CORRECT="1") == {"LAST": "there"}
    assert [path.name for path in tmp_path.iterdir()] == ["env-profile.sh"]
