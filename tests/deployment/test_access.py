from __future__ import annotations

from tests.deployment.ferries import GROUP, Ferry, FerrySpec, ferries

from kubewright import ObjectMeta, Resource, resource
from kubewright.api.rbac.v1 import Role
from kubewright.deployment import Operator
from kubewright.deployment.access import bindings, roles, service_account, user_roles


def test_every_role_is_bound_to_the_service_account_of_the_pods() -> None:
    operator = ferries()
    account = service_account(operator)
    found = {(role.kind, role.metadata.namespace, role.metadata.name) for role in roles(operator)}
    bound = set()
    for binding in bindings(operator):
        [subject] = binding.subjects
        assert (subject.kind, subject.namespace, subject.name) == ("ServiceAccount", *account.key)
        assert binding.kind == f"{binding.role_ref.kind}Binding"
        bound.add((binding.role_ref.kind, binding.metadata.namespace, binding.role_ref.name))
    assert bound == found
    assert len(found) == 2


def test_roles_that_were_given_are_not_changed() -> None:
    operator = ferries()
    assert roles(operator)[0].metadata.labels == operator.labels
    assert all(not role.metadata.labels for role in operator.roles)


def test_a_role_without_a_namespace_is_in_that_of_the_operator() -> None:
    """`kubectl apply` would put it into the one of the context."""
    here, there = Role(metadata=ObjectMeta(name="it")), Role(metadata=ObjectMeta(name="it", namespace="quay"))
    operator = Operator(name="ferries", image="ferries:1", roles=[there, here])
    assert [role.metadata.namespace for role in roles(operator)] == ["ferries-system", "quay"]
    assert [binding.metadata.namespace for binding in bindings(operator)] == ["ferries-system", "quay"]
    assert not here.metadata.namespace


def test_every_kind_has_roles_for_its_users_which_are_not_the_operators() -> None:
    operator = ferries()
    found = user_roles(operator)
    assert [*found] == [f"{kind}-{role}" for kind in ("anchorage", "ferry") for role in ("admin", "editor", "viewer")]
    assert {rule.resources[0] for rule in found["ferry-viewer"].rules} == {"ferries", "ferries/status"}
    assert found["ferry-viewer"].rules[0].verbs == ["get", "list", "watch"]
    editing, administering = (set(found[f"ferry-{role}"].rules[0].verbs) for role in ("editor", "admin"))
    assert administering - editing == {"deletecollection"}, "and no verb that means more, as * would"
    bound = {binding.role_ref.name for binding in bindings(operator)}
    assert bound.isdisjoint(role.metadata.name for role in found.values())
    assert len({role.metadata.name for role in found.values()}) == 6


def test_kinds_of_one_name_in_two_groups_share_their_roles() -> None:
    @resource("other.deployment.test/v1", kind="Ferry")
    class OtherFerry(Resource[FerrySpec, None]): ...

    operator = Operator(name="ferries", image="ferries:1", kinds=[Ferry, OtherFerry])
    groups = [rule.api_groups[0] for rule in user_roles(operator)["ferry-editor"].rules]
    assert groups == [GROUP, GROUP, "other.deployment.test", "other.deployment.test"]
