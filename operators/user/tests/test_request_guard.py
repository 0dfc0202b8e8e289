"""Requests are carried out only if they were created under the policy, as it is deployed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias, TypeVar

import pytest
from operators.user import Operationrequest, Options, request_guard
from operators.user.names import SYSTEM_NAMESPACE
from operators.user.request_guard import ENFORCED_AFTER, RECORD
from operators.user.request_policy import POLICY, checks_all, denies, request_policy
from operators.user.tests.deploying import vacant
from operators.user.tests.requesting import MAY_ASK, deletion, desk, operation, prepared, virtual_desk

from kubewright import Client, Forbidden, ObjectMeta
from kubewright.api import Object, to_json
from kubewright.api.admissionregistration.v1 import (
    MatchCondition,
    MatchResources,
    NamedRuleWithOperations,
    ParamKind,
    ParamRef,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpec,
    ValidatingAdmissionPolicySpec,
    Validation,
    Variable,
)
from kubewright.api.codec import decode, encode
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.meta import LabelSelector
from kubewright.client import JSONPatch, MergePatch
from kubewright.testing import count_requests, restricted_client, virtual

TOO_EARLY = (
    f"it was created before the ValidatingAdmissionPolicy {POLICY}, or its last change, was in force: create it again"
)

WeakenPolicy: TypeAlias = Callable[[ValidatingAdmissionPolicySpec], object]
Part = TypeVar("Part", bound=Object)


def deployed(kind: type[Part]) -> Part:
    """A copy of what the operator deploys."""
    return next(decode(kind, encode(each)) for each in request_policy() if isinstance(each, kind))


def _no_checks(spec: ValidatingAdmissionPolicySpec) -> None:
    spec.validations = [Validation(expression="true")]


def _trusts_everybody(spec: ValidatingAdmissionPolicySpec) -> None:
    """All expressions are there, one of them by another name."""
    trusted = next(each for each in spec.variables if each.name == "is_trusted")
    spec.variables.append(Variable(name="unused", expression=trusted.expression))
    trusted.expression = "true"


def _matching(change: Callable[[MatchResources, NamedRuleWithOperations], object]) -> WeakenPolicy:
    def weaken(spec: ValidatingAdmissionPolicySpec) -> None:
        assert spec.match_constraints is not None
        change(spec.match_constraints, spec.match_constraints.resource_rules[0])

    return weaken


SOME = LabelSelector(match_labels={"checked": "yes"})
WEAK_POLICIES: dict[str, WeakenPolicy] = {
    "checks nothing": _no_checks,
    "trusts everybody": _trusts_everybody,
    "ignores its errors": lambda spec: setattr(spec, "failure_policy", "Ignore"),
    "has exceptions": lambda spec: spec.match_conditions.append(MatchCondition(name="none", expression="false")),
    "needs parameters": lambda spec: setattr(spec, "param_kind", ParamKind(api_version="v1", kind="ConfigMap")),
    "matches nothing": lambda spec: setattr(spec, "match_constraints", None),
    "matches updates": _matching(lambda _, rule: rule.operations.remove("CREATE")),
    "matches one kind": _matching(lambda _, rule: rule.resources.remove("operationrequests")),
    "matches some names": _matching(lambda _, rule: rule.resource_names.append("a")),
    "matches one scope": _matching(lambda _, rule: setattr(rule, "scope", "Cluster")),
    "matches some objects": _matching(lambda match, _: setattr(match, "object_selector", SOME)),
    "matches some namespaces": _matching(lambda match, _: setattr(match, "namespace_selector", SOME)),
    "excludes requests": _matching(lambda match, rule: match.exclude_resource_rules.append(rule)),
}
WEAK_BINDINGS: dict[str, Callable[[ValidatingAdmissionPolicyBindingSpec], object]] = {
    "audits only": lambda spec: setattr(spec, "validation_actions", ["Audit"]),
    "is for others": lambda spec: setattr(spec, "match_resources", MatchResources(namespace_selector=SOME)),
    "is of another policy": lambda spec: setattr(spec, "policy_name", "another"),
    "has parameters": lambda spec: setattr(spec, "param_ref", ParamRef(parameter_not_found_action="Allow")),
}


@pytest.mark.parametrize("weakness", WEAK_POLICIES)
def test_a_policy_that_checks_less_is_not_the_one_that_is_deployed(weakness: str) -> None:
    policy = deployed(ValidatingAdmissionPolicy)
    assert checks_all(policy)
    WEAK_POLICIES[weakness](policy.spec)
    assert not checks_all(policy)


@pytest.mark.parametrize("weakness", WEAK_BINDINGS)
def test_a_binding_that_denies_less_is_not_the_one_that_is_deployed(weakness: str) -> None:
    binding = deployed(ValidatingAdmissionPolicyBinding)
    assert denies(binding)
    WEAK_BINDINGS[weakness](binding.spec)
    assert not denies(binding)


def test_a_policy_may_check_more() -> None:
    policy, binding = deployed(ValidatingAdmissionPolicy), deployed(ValidatingAdmissionPolicyBinding)
    policy.spec.validations.append(Validation(expression="object.spec.user != 'root'"))
    policy.spec.variables.append(Variable(name="more", expression="true"))
    binding.spec.validation_actions.append("Audit")
    assert checks_all(policy)
    assert denies(binding)


@virtual
async def test_nothing_is_carried_out_while_the_policy_is_not_enforced() -> None:
    async with virtual_desk() as at:
        for name in ("alice", "bob"):
            await at.user(name)
        policy = await at.admin.get(ValidatingAdmissionPolicyBinding, POLICY)
        await at.admin.delete(policy)
        await asyncio.sleep(5)
        unguarded = await at.ask("Grant", "bob", "ns-alice", "Owner")
        removal = await at.admin.create(deletion("bob"))
        await asyncio.sleep(60)
        for request in (unguarded, removal):
            status = (await at.admin.get(request)).status
            assert status.phase == "Processing"
            assert f"the ValidatingAdmissionPolicy {POLICY}" in status.message
        policy.metadata = ObjectMeta(name=POLICY)
        await at.admin.create(policy)
        for request in (unguarded, removal):
            ended = await at.finished(request)
            assert (ended.status.phase, ended.status.message) == (
                "Failed",
                TOO_EARLY,
            )
        assert await at.roles("ns-alice") == {}


@virtual
async def test_what_was_created_while_the_policy_was_a_weaker_one_is_never_carried_out() -> None:
    async with virtual_desk() as at, restricted_client(at.plane, [MAY_ASK]) as stranger:
        for name in ("alice", "bob"):
            await at.user(name)
        await asyncio.sleep(5)
        strong = to_json((await at.admin.get(ValidatingAdmissionPolicyBinding, POLICY)).spec)
        audits = MergePatch({"spec": {"validationActions": ["Audit"]}})
        await at.admin.patch(ValidatingAdmissionPolicyBinding, POLICY, audits)
        await asyncio.sleep(5)
        unchecked = await stranger.create(operation("Grant", "bob", "ns-alice", "Owner"))
        await asyncio.sleep(5)
        status = (await at.admin.get(unchecked)).status
        assert status.phase == "Failed"
        assert "is not enforced as the operator deploys it" in status.message
        mended = JSONPatch([{"op": "replace", "path": "/spec", "value": strong}])
        await at.admin.patch(ValidatingAdmissionPolicyBinding, POLICY, mended)
        await asyncio.sleep(60)
        assert await at.roles("ns-alice") == {}
        with pytest.raises(Forbidden):
            await stranger.create(operation("Grant", "bob", "ns-alice", "Owner"))
        assert (await at.carried_out("Grant", "bob", "ns-alice", "Owner")).status.phase == "Completed"


async def weaken_and_mend(admin: Client, by: Client) -> Operationrequest:
    """Change the policy and take the change back, which leaves no trace but the generation.

    Returns a request that was created meanwhile.
    """
    before = await admin.get(ValidatingAdmissionPolicy, POLICY)
    checks_nobody = MergePatch({"spec": {"matchConditions": [{"name": "nobody", "expression": "false"}]}})
    await admin.patch(ValidatingAdmissionPolicy, POLICY, checks_nobody)
    await asyncio.sleep(5)
    created = await by.create(operation("Grant", "bob", "ns-alice", "Owner"))
    await asyncio.sleep(5)
    undone = JSONPatch([{"op": "remove", "path": "/spec/matchConditions"}])
    await admin.patch(ValidatingAdmissionPolicy, POLICY, undone)
    after = await admin.get(ValidatingAdmissionPolicy, POLICY)
    assert (after.spec, after.metadata.managed_fields) == (before.spec, before.metadata.managed_fields)
    assert after.metadata.generation == before.metadata.generation + 2
    return created


@virtual
async def test_what_was_created_while_no_operator_saw_a_weaker_policy_is_not_carried_out() -> None:
    async with vacant(prepared) as (plane, admin, own), restricted_client(plane, [MAY_ASK]) as stranger:
        async with desk(plane, admin, own) as at:
            for name in ("alice", "bob"):
                await at.user(name)
            assert (await at.carried_out("Grant", "bob", "ns-alice", "Developer")).status.phase == "Completed"
        unchecked = await weaken_and_mend(admin, stranger)
        async with desk(plane, admin, own) as at:
            assert (await at.finished(unchecked)).status.message == TOO_EARLY
            assert await at.roles("ns-alice") == {"bob-Developer": "workspace-developer"}
        # This policy is known by now: what is created before the next start is carried out.
        await asyncio.sleep(60)
        checked = await admin.create(operation("Update", "bob", "ns-alice", "Manager"))
        async with desk(plane, admin, own) as at:
            assert (await at.finished(checked)).status.phase == "Completed"


@virtual
async def test_a_changed_policy_is_recorded_at_once_so_that_the_next_request_is_carried_out() -> None:
    async with virtual_desk() as at:
        for name in ("alice", "bob"):
            await at.user(name)
        stricter = MergePatch({"spec": {"validationActions": ["Deny", "Audit"]}})
        await at.admin.patch(ValidatingAdmissionPolicyBinding, POLICY, stricter)
        await asyncio.sleep(60)
        with count_requests(at.own) as requests:
            assert (await at.carried_out("Grant", "bob", "ns-alice", "Owner")).status.phase == "Completed"
        assert not [path for path in requests.by_path if "configmaps" in path]


@virtual
async def test_a_record_that_can_be_changed_is_none() -> None:
    """It may have been changed since its creation."""
    async with vacant(prepared) as (plane, admin, own), restricted_client(plane, [MAY_ASK]) as stranger:
        record = await admin.create(ConfigMap(metadata=ObjectMeta(name=RECORD, namespace=SYSTEM_NAMESPACE)))
        await asyncio.sleep(60)
        unchecked = await weaken_and_mend(admin, stranger)
        policy = (await admin.get(ValidatingAdmissionPolicy, POLICY)).metadata
        binding = (await admin.get(ValidatingAdmissionPolicyBinding, POLICY)).metadata
        record.data = {"policy": f"{policy.uid}/{policy.generation}", "binding": f"{binding.uid}/{binding.generation}"}
        await admin.update(record)
        async with desk(plane, admin, own) as at:
            for name in ("alice", "bob"):
                await at.user(name)
            assert (await at.finished(unchecked)).status.message == TOO_EARLY
            there = await admin.get(record)
            assert (there.data, there.immutable) == (record.data, True)


@virtual
async def test_what_was_created_before_api_servers_knew_the_policy_is_not_carried_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with virtual_desk() as at:
        monkeypatch.setattr(request_guard, "ENFORCED_AFTER", ENFORCED_AFTER)
        for name in ("alice", "bob"):
            await at.user(name)
        early = await at.carried_out("Grant", "bob", "ns-alice", "Owner")
        assert early.status.message == TOO_EARLY
        await asyncio.sleep(ENFORCED_AFTER.total_seconds())
        assert (await at.carried_out("Grant", "bob", "ns-alice", "Owner")).status.phase == "Completed"


@virtual
async def test_without_the_guard_rbac_alone_says_who_may_create_requests() -> None:
    async with virtual_desk(Options(guard_requests=False)) as at:
        for name in ("alice", "bob"):
            await at.user(name)
        await at.admin.delete(ValidatingAdmissionPolicyBinding, POLICY)
        await asyncio.sleep(5)
        async with restricted_client(at.plane, [MAY_ASK]) as stranger:
            created = await stranger.create(operation("Grant", "bob", "ns-alice", "Owner"))
        assert (await at.finished(created)).status.phase == "Completed"
