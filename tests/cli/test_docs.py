"""The documents: each command that they show exists, and so do its options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.command import command

ROOT = Path(__file__).parents[2]
SHOWN = sorted(
    {
        line.partition(" #")[0].strip()
        for document in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
        for line in re.findall(r"^ +(kubewright [a-z].*)", document.read_text(encoding="utf-8"), re.MULTILINE)
    }
)


def test_documents_show_commands() -> None:
    assert {line.split()[1] for line in SHOWN} >= {"controlplane", "deploy", "generate", "install", "roles", "types"}


@pytest.mark.parametrize("line", SHOWN)
def test_a_shown_command_has_its_options(line: str) -> None:
    words = line.split()[1:]
    shown = command(*words[: 2 if words[0] == "requests" else 1], "--help")
    assert shown.code == 0
    given = line.partition(" -- ")[0]
    assert not set(re.findall(r"(?<= )--?[a-z][a-z-]*", given)) - set(re.findall(r"--?[a-z][a-z-]*", shown.output))


def test_every_option_on_a_cluster_is_described() -> None:
    """But for those that help alone explains."""
    text = (ROOT / "docs/manifests.md").read_text(encoding="utf-8")
    for name in ("deploy", "undeploy"):
        options = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", command(name, "--help").output, re.MULTILINE))
        assert options - {"--help", "--kubeconfig", "--context"} <= set(re.findall(r"--[a-z-]+", text))
