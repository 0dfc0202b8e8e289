from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

from operators.user import request_policy
from operators.user.deployed import POLICY
from operators.user.names import KEEP_WORKSPACE, ROLE_NAMES, SYSTEM_NAMESPACE, cluster_role_of
from operators.user.options import Options
from operators.user.steps import pipeline

from kubewright.api.batch.v1 import CronJob
from kubewright.api.rbac.v1 import ClusterRole
from kubewright.deployment import Operator, objects_of
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


async def test_the_example_deploys_a_clean_up_with_the_image_of_the_operator() -> None:
    example: dict[str, Callable[[], Awaitable[Operator]]] = {}
    [text] = re.findall(r"```python\n# deployment\.py\n(.*?)```", TEXT, re.DOTALL)
    exec(text.replace("kubewright_operators", "operators"), example)
    operator = await example["operator"]()
    found = {type(each): each for each in objects_of(operator) if each.metadata.name == "user-operator-cleanup"}
    job, role = found[CronJob], found[ClusterRole]
    assert isinstance(job, CronJob)
    assert isinstance(role, ClusterRole)
    [container] = job.spec.job_template.spec.template.spec.containers
    assert container.image == operator.image
    assert container.command[-4:] == [
        "deleterequests.v1.user.sealos.io",
        "operationrequests.v1.user.sealos.io",
        "--all-namespaces",
        "--older-than=168h",
    ]
    [rule] = role.rules
    assert (rule.resources, rule.verbs) == (["deleterequests", "operationrequests"], ["delete", "get", "list"])
