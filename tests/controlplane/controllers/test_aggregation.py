from __future__ import annotations

from collections.abc import Callable

from kubewright.api.meta import LabelSelector, ObjectMeta
from kubewright.api.rbac.v1 import AggregationRule, ClusterRole, PolicyRule
from kubewright.client import Client, MergePatch
from kubewright.client.wait import Field
from kubewright.controlplane.controllers.aggregation import ClusterRoleAggregation
from kubewright.controlplane.controllers.clock import SystemClock
from kubewright.controlplane.controllers.runtime import BuiltInController

Start = Callable[[BuiltInController], None]

READ_GADGETS = PolicyRule(api_groups=["example.com"], resources=["gadgets"], verbs=["get"])
READ_WIDGETS = PolicyRule(api_groups=["example.com"], resources=["widgets"], verbs=["get"])


def role(name: str, *rules: PolicyRule, labels: dict[str, str] | None = None, of: str = "") -> ClusterRole:
    selector = LabelSelector(match_labels={"part-of": of})
    return ClusterRole(
        metadata=ObjectMeta(name=name, labels=labels or {}),
        rules=list(rules),
        aggregation_rule=AggregationRule(cluster_role_selectors=[selector]) if of else None,
    )


async def test_rules_follow_the_roles_that_are_selected(client: Client, namespace: str, start: Start) -> None:
    start(ClusterRoleAggregation(client, SystemClock()))
    whole = await client.create(role(f"{namespace}-whole", of=namespace))
    part = await client.create(role(f"{namespace}-part", READ_GADGETS, labels={"part-of": namespace}))
    await client.wait_for(whole, Field("rules[0].resources").equals(["gadgets"]))
    part.rules = [READ_WIDGETS, READ_GADGETS]
    part = await client.update(part)
    await client.wait_for(whole, Field("rules[1].resources").equals(["gadgets"]))
    assert (await client.get(ClusterRole, whole.key)).rules == [READ_WIDGETS, READ_GADGETS]
    await client.delete(part)
    await client.wait_for(whole, Field("rules[0]").equals(None))


async def test_a_role_that_is_made_of_others_may_be_part_of_another_one(
    client: Client, namespace: str, start: Start
) -> None:
    start(ClusterRoleAggregation(client, SystemClock()))
    outer = await client.create(role(f"{namespace}-outer", of=f"{namespace}-outer"))
    await client.create(role(f"{namespace}-inner", labels={"part-of": f"{namespace}-outer"}, of=f"{namespace}-inner"))
    await client.create(role(f"{namespace}-part", READ_GADGETS, labels={"part-of": f"{namespace}-inner"}))
    await client.wait_for(outer, Field("rules[0].resources").equals(["gadgets"]))


async def test_rules_that_others_wrote_are_replaced_and_owned_by_the_controller(
    client: Client, namespace: str, start: Start
) -> None:
    start(ClusterRoleAggregation(client, SystemClock()))
    await client.create(role(f"{namespace}-part", READ_GADGETS, labels={"part-of": namespace}))
    whole = await client.create(role(f"{namespace}-whole", READ_WIDGETS, of=namespace))
    await client.wait_for(whole, Field("rules[0].resources").equals(["gadgets"]))
    applied = await client.get(ClusterRole, whole.key)
    assert ("clusterrole-aggregation-controller", "Apply") in {
        (entry.manager, entry.operation) for entry in applied.metadata.managed_fields
    }


async def test_the_roles_of_the_server_itself_are_filled(client: Client, start: Start) -> None:
    """`admin` is made of `edit`, which is made of `view` among others: all three are empty in a fresh server."""
    for name in ("admin", "edit", "view"):
        await client.patch(ClusterRole, name, MergePatch({"rules": []}))
    start(ClusterRoleAggregation(client, SystemClock()))
    for name in ("admin", "edit", "view"):
        await client.wait_for(ClusterRole, name, Field("rules[0]").satisfies(bool, "is there"))


async def test_rules_that_are_right_are_not_written_again(
    client: Client, namespace: str, start: Start, writes: list[str]
) -> None:
    await client.create(role(f"{namespace}-part", READ_GADGETS, labels={"part-of": namespace}))
    right = await client.create(role(f"{namespace}-a-right", READ_GADGETS, of=namespace))
    wrong = await client.create(role(f"{namespace}-b-wrong", of=namespace))
    start(ClusterRoleAggregation(client, SystemClock()))
    await client.wait_for(wrong, Field("rules[0].resources").equals(["gadgets"]))
    assert not any(write.endswith(f"/{right.metadata.name}") for write in writes)


async def test_roles_that_select_each_other_settle(
    client: Client, namespace: str, start: Start, writes: list[str]
) -> None:
    """Each is made of the other: if both took the rules of the other at once, they would exchange them for ever."""
    one, other = f"{namespace}-one", f"{namespace}-other"
    await client.create(role(one, READ_GADGETS, READ_WIDGETS, labels={"part-of": other}, of=one))
    await client.create(role(other, READ_WIDGETS, READ_GADGETS, labels={"part-of": one}, of=other))
    start(ClusterRoleAggregation(client, SystemClock()))
    # Whoever sees this has seen the two before, several times.
    for number in range(3):
        await client.create(role(f"{namespace}-part{number}", READ_GADGETS, labels={"part-of": f"{namespace}{number}"}))
        whole = await client.create(role(f"{namespace}-z{number}", of=f"{namespace}{number}"))
        await client.wait_for(whole, Field("rules[0].resources").equals(["gadgets"]))
    assert (await client.get(ClusterRole, one)).rules == (await client.get(ClusterRole, other)).rules
    assert sum(write.endswith((f"/{one}", f"/{other}")) for write in writes) == 1
