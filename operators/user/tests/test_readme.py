from __future__ import annotations

from pathlib import Path

from operators.user import request_policy
from operators.user.deployed import POLICY
from operators.user.names import KEEP_WORKSPACE, ROLE_NAMES, SYSTEM_NAMESPACE, cluster_role_of
from operators.user.options import Options
from operators.user.steps import pipeline

from kubewright.manager.options import OptionFlags

TEXT = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_diagram_is_that_of_the_pipeline() -> None:
    """On failure, put what `pipeline.diagram()` returns into the file."""
    assert f"```mermaid\n{pipeline.diagram()}```\n" in TEXT


def test_names_and_flags_are_those_of_the_program() -> None:
    flags = [option.flag for option in OptionFlags(Options, "it").all]
    policies = (POLICY, request_policy.POLICY)
    for word in (*map(cluster_role_of, ROLE_NAMES), *ROLE_NAMES, *flags, *policies, KEEP_WORKSPACE, SYSTEM_NAMESPACE):
        assert f"`{word}" in TEXT, word
