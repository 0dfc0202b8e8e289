"""The command itself: its help, and what it says of a wrong use."""

from __future__ import annotations

import subprocess
import sys

import pytest

COMMANDS = "controlplane, deploy, generate, install, requests, roles, types, undeploy, uninstall"
COMMAND = [sys.executable, "-m", "kubewright"]
WITHOUT_EXTRAS = """
import sys
sys.modules |= dict.fromkeys(["cryptography", "re2", "uvicorn", "pytest"])
from kubewright.cli.main import main
main()
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("arguments", "example"),
    [
        ([], "example: kubewright controlplane --kubeconfig ./kubeconfig"),
        (["controlplane"], "  kubewright controlplane --kubeconfig ./kubeconfig --nodes 3"),
        (["deploy"], "  kubewright deploy podmanager --image example.com/podmanager:1.0"),
        (["generate"], "  kubewright generate podmanager --check"),
        (["install"], "  kubewright install podmanager"),
        (["requests"], "  kubewright requests list -A --phase Failed"),
        (["requests", "list"], "  kubewright requests list"),
        (["requests", "show"], "  kubewright requests show operationrequest/grant-alice"),
        (["requests", "cleanup"], "  kubewright requests cleanup --older-than 24h --dry-run"),
        (["roles"], "  kubewright roles podmanager"),
        (["types"], "  kubewright types crd.yaml -o widgets.py"),
        (["undeploy"], "  kubewright undeploy podmanager --dry-run"),
        (["uninstall"], "  kubewright uninstall podmanager --dry-run"),
    ],
)
def test_each_help_has_an_example(arguments: list[str], example: str) -> None:
    shown = run(*arguments, "--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert example in shown.stdout.splitlines()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["typs", "crd.yaml"],
            f'there is no command "typs", did you mean "types"? (commands: {COMMANDS}); see kubewright --help',
        ),
        (["paint"], f'there is no command "paint" (commands: {COMMANDS}); see kubewright --help'),
        (
            ["types", "crd.yaml", "--outptu=x.py"],
            'types has no option "--outptu", did you mean "--output"?; see kubewright types --help',
        ),
        (["controlplane", "--tls"], 'controlplane has no option "--tls"; see kubewright controlplane --help'),
        (
            ["undeploy", "x", "--ye"],
            'undeploy has no option "--ye", did you mean "--yes"?; see kubewright undeploy --help',
        ),
        (["types", "a.yaml", "--", "b.yaml"], '"b.yaml" is one argument too many; see kubewright types --help'),
        (["types", "a.yaml", "b.yaml"], '"b.yaml" is one argument too many; see kubewright types --help'),
    ],
)
def test_an_unknown_command_or_option_is_answered_with_a_sentence(arguments: list[str], sentence: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"kubewright: {sentence}\n")


@pytest.mark.parametrize("arguments", [["controlplane"], ["controlplane", "--nodes", "3"]])
def test_without_its_packages_controlplane_names_the_extra(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.startswith("kubewright: an embedded control plane needs the package ")
    assert done.stderr.endswith(": pip install 'kubewright[controlplane]'\n")
