from __future__ import annotations

from tests.deployment.ferries import ferries

from kubewright.deployment.access import bindings, roles, service_account


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
