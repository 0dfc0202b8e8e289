from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

from operators.user import User, request_policy
from operators.user.deployed import POLICY
from operators.user.names import KEEP_WORKSPACE, ROLE_NAMES, SYSTEM_NAMESPACE, cluster_role_of
from operators.user.options import Options
from operators.user.steps import pipeline
from operators.user.tests.deploying import vacant

from kubewright import Field, Manager, ObjectMeta
from kubewright.api.batch.v1 import CronJob
from kubewright.api.rbac.v1 import ClusterRole
from kubewright.deployment import Operator, objects_of
from kubewright.manager.options import OptionFlags
from kubewright.testing import virtual

TEXT = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_diagram_is_that_of_the_pipeline() -> None:
    """On failure, put what `pipeline.diagram()` returns into the file."""
    assert f"```mermaid\n{pipeline.diagram()}```\n" in TEXT


def test_names_and_flags_are_those_of_the_program() -> None:
    flags = [option.flag for option in OptionFlags(Options, "it").all]
    policies = (POLICY, request_policy.POLICY)
    for word in (*map(cluster_role_of, ROLE_NAMES), *ROLE_NAMES, *flags, *policies, KEEP_WORKSPACE, SYSTEM_NAMESPACE):
        assert f"`{word}" in TEXT, word


@virtual
async def test_the_example_of_a_quota_admits_as_many_users_and_others_when_they_are_gone() -> None:
    """They are created within a second, so that neither times nor names show who was the first."""
    example: dict[str, Callable[[Manager, Options], None]] = {}
    [text] = re.findall(r"```python\n# limited\.py\n(.*?)```", TEXT, re.DOTALL)
    exec(text.replace("kubewright_operators", "operators").replace("100", "1"), example)
    async with vacant() as (_, admin, own):
        manager = Manager(own, webhook_address="0")
        example["limited"](manager, Options())

        async def phases() -> list[str]:
            await asyncio.sleep(120)
            return sorted(user.status.phase for user in await admin.list(User))

        async with manager.running():
            for name in ("c", "b", "a"):
                last = await admin.create(User(metadata=ObjectMeta(name=name)))
                await admin.wait_for(last, Field("status.conditions").satisfies(bool, "is set"), timeout=60)
            assert await phases() == ["Active", "Pending", "Pending"]
            await admin.delete(User, "c")
            assert await phases() == ["Active", "Pending"]


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
