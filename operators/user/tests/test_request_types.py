"""What the API server admits of requests, on both control planes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from operators.user import Deleterequest, Operationrequest
from operators.user.names import SYSTEM_NAMESPACE
from operators.user.tests.deploying import KINDS
from operators.user.tests.requesting import deletion, operation

from kubewright import Client, Invalid, ObjectMeta
from kubewright.api import Dynamic
from kubewright.api.core.v1 import Namespace
from kubewright.api.markers import JSONValue
from kubewright.client import MergePatch
from kubewright.testing import Install, unique_name

OPERATION: Mapping[str, JSONValue] = {"user": "bob", "namespace": "ns-alice", "action": "Grant", "role": "Owner"}


@pytest.fixture
async def client(admin: Client, install: Install) -> Client:
    """With all rights, in the namespace of requests."""
    await install(*KINDS)
    await admin.apply(Namespace(metadata=ObjectMeta(name=SYSTEM_NAMESPACE)))
    return admin.in_namespace(SYSTEM_NAMESPACE)


async def refusal(client: Client, kind: str, spec: Mapping[str, JSONValue]) -> str:
    """Why a request with that spec is not admitted; empty when it is."""
    request = Dynamic.of("user.sealos.io/v1", kind)(metadata=ObjectMeta(name=unique_name("request")))
    request["spec"] = dict(spec)
    try:
        await client.create(request, dry_run=True, field_validation="Strict")
    except Invalid as error:
        return error.status.message
    return ""


async def test_item_66_what_is_no_role_no_action_no_workspace_or_no_name_is_refused(client: Client) -> None:
    assert await refusal(client, "Operationrequest", OPERATION) == ""
    for change, expected in (
        ({"role": "King"}, 'spec.role: Unsupported value: "King"'),
        ({"action": "Promote"}, 'spec.action: Unsupported value: "Promote"'),
        ({"action": None}, "spec.action: Required value"),
        ({"user": None}, "spec.user: Required value"),
        ({"namespace": None}, "spec.namespace: Required value"),
        ({"role": None}, "role is required, unless the action is Deprive"),
        ({"namespace": "kube-system"}, "must be the namespace of a workspace, which begins with ns-"),
        ({"namespace": "ns-"}, "spec.namespace"),
        ({"user": "Bob"}, "spec.user in body should match"),
        ({"user": "system:admin"}, "spec.user in body should match"),
        ({"user": "x" * 61}, "spec.user: Too long"),
    ):
        spec = {name: value for name, value in {**OPERATION, **change}.items() if value is not None}
        assert expected in await refusal(client, "Operationrequest", spec)
    deprive = {"user": "bob", "namespace": "ns-alice", "action": "Deprive"}
    assert await refusal(client, "Operationrequest", deprive) == ""


async def test_item_66_nobody_asks_for_the_deletion_of_admin(client: Client) -> None:
    assert await refusal(client, "Deleterequest", {"user": "bob"}) == ""
    assert "the User admin cannot be deleted" in await refusal(client, "Deleterequest", {"user": "admin"})
    assert "spec.user: Required value" in await refusal(client, "Deleterequest", {})


async def test_item_66_tables_have_phase_and_age(client: Client) -> None:
    for kind, columns in (
        (Operationrequest, ["Name", "Action", "Namespace", "User", "Role", "Phase", "Age"]),
        (Deleterequest, ["Name", "User", "Phase", "Age"]),
    ):
        table = await client.table(kind)
        assert [column.name for column in table.column_definitions] == columns


async def test_item_67_a_new_request_is_pending_and_its_phase_is_one_of_four(client: Client) -> None:
    for request in (operation("Deprive", "bob", "ns-alice"), deletion("bob")):
        created = await client.create(request)
        assert created.status.phase == "Pending"
        assert (created.status.message, created.status.completion_time) == ("", None)
        change = MergePatch({"status": {"phase": "Sleeping"}})
        with pytest.raises(Invalid, match=r'status\.phase: Unsupported value: "Sleeping"'):
            await client.status.patch(type(request), request.metadata.name, change)
        await client.delete(created)


async def test_what_is_requested_cannot_be_changed(client: Client) -> None:
    for request, change in (
        (operation("Deprive", "bob", "ns-alice"), {"user": "eve"}),
        (operation("Deprive", "bob", "ns-alice"), {"role": "Owner"}),
        (deletion("bob"), {"user": "eve"}),
        (deletion("bob"), {"deleteDependents": False}),
    ):
        created = await client.create(request)
        with pytest.raises(Invalid, match="what is requested cannot be changed"):
            await client.patch(type(request), request.metadata.name, MergePatch({"spec": change}))
        await client.delete(created)


async def test_a_deletion_takes_dependents_along_unless_it_says_otherwise(client: Client) -> None:
    request = Dynamic.of("user.sealos.io/v1", "Deleterequest")(metadata=ObjectMeta(name=unique_name("request")))
    request["spec"] = {"user": "bob"}
    created = await client.create(request, dry_run=True)
    assert created["spec"] == {"user": "bob", "deleteDependents": True}


async def test_weakness_11_requests_can_be_selected_by_phase_and_user(client: Client) -> None:
    """A server knows such fields of a custom resource only if its definition declares them."""
    user = unique_name("bob")
    created = await client.create(operation("Deprive", user, "ns-alice"))
    for fields, is_found in (
        ({"status.phase": "Pending", "spec.user": user}, True),
        ({"status.phase": "Completed", "spec.user": user}, False),
    ):
        found = [each.metadata.uid for each in await client.list(Operationrequest, fields=fields)]
        assert (created.metadata.uid in found) == is_found
    await client.delete(created)


async def test_requests_are_a_category(client: Client) -> None:
    kinds = [each.kind for each in await client.discover("user.sealos.io/v1") if "requests" in (each.categories or ())]
    assert sorted(kinds) == ["Deleterequest", "Operationrequest"]
