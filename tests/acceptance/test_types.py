"""Acceptance items about what types give: definitions, copies, a status from the first moment."""

from __future__ import annotations

import copy
from typing import Annotated, Literal

from kubewright import Client, Column, Condition, Meta, Model, ObjectMeta, Resource, definition_of, resource
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json, to_json
from kubewright.api.markers import JSONValue
from kubewright.manifest.crd import crd_of
from kubewright.manifest.documents import documents
from kubewright.manifest.yaml import to_yaml
from kubewright.testing import Install


class AccountSpec(Model):
    email: Annotated[str, Meta(pattern="@")]
    quota: Annotated[int, Meta(ge=1)] = 5
    labels: dict[str, str] = {}


class AccountStatus(Model):
    phase: Literal["Pending", "Active"] = "Pending"
    conditions: list[Condition] = []


@resource("types.acceptance.kubewright.test/v1", columns=[Column("Phase", ".status.phase")])
class Account(Resource[AccountSpec, AccountStatus]):
    """Somebody's account."""


def contains(actual: JSONValue, expected: JSONValue) -> bool:
    """Whether all of `expected` is in `actual`, which may have more."""
    match actual, expected:
        case dict(), dict():
            return all(name in actual and contains(actual[name], value) for name, value in expected.items())
        case list(), list():
            return len(actual) == len(expected) and all(map(contains, actual, expected))
    return actual == expected


async def test_item_21_the_definition_that_is_generated_is_the_one_that_is_applied(
    admin: Client, install: Install
) -> None:
    (document,) = documents(to_yaml(crd_of(Account)), "account.yaml")
    assert document.value == crd_of(Account)
    await install(Account)
    applied = await admin.get(definition_of(Account))
    generated = from_json(CustomResourceDefinition, document.value)
    assert contains(to_json(applied.spec), to_json(generated.spec))


async def test_item_21_a_deep_copy_is_independent(admin: Client, namespace: str, install: Install) -> None:
    await install(Account)
    spec = AccountSpec(email="a@example.com", labels={"team": "blue"})
    created = await admin.create(Account(metadata=ObjectMeta(name="a", namespace=namespace), spec=spec))
    before = to_json(created)
    changed = copy.deepcopy(created)
    changed.spec.labels["team"] = "red"
    changed.metadata.annotations["x"] = "y"
    changed.status.phase = "Active"
    assert to_json(created) == before
    patched = await admin.patch(changed)
    assert (patched.spec.labels, patched.metadata.annotations) == ({"team": "red"}, {"x": "y"})
    assert to_json(created) == before


async def test_item_51_a_new_object_shows_pending_before_anything_has_reconciled_it(
    admin: Client, namespace: str, install: Install
) -> None:
    await install(Account)
    spec = AccountSpec(email="a@example.com")
    created = await admin.create(Account(metadata=ObjectMeta(name="a", namespace=namespace), spec=spec))
    assert (created.status.phase, created.status.conditions) == ("Pending", [])
    assert (await admin.in_namespace(namespace).table(Account)).column("Phase") == ["Pending"]
