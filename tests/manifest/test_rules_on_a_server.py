"""Rules and defaults of definitions, enforced by both servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

import pytest

from kubewright.api.codec import origin
from kubewright.api.markers import AtLeastOneOf, AtMostOneOf, ExactlyOneOf, Immutable, ListMap, Rule
from kubewright.api.meta import Condition, ObjectMeta
from kubewright.api.model import Model
from kubewright.api.resources import Object, Resource, resource
from kubewright.api.time import now
from kubewright.client import Client
from kubewright.client.errors import Invalid
from kubewright.client.patch import MergePatch


class Target(
    Model,
    rules=[ExactlyOneOf("file", "namespace"), AtMostOneOf("soft", "hard"), AtLeastOneOf("hard", "soft", "file")],
):
    file: str | None = None
    namespace: str | None = None
    soft: int | None = None
    hard: int | None = None


class RuledSpec(Model, rules=[Rule("self.minSize <= self.maxSize", message="minSize must not exceed maxSize")]):
    zone: Annotated[str, Immutable()]
    min_size: int = 1
    max_size: int = 5
    storage_class: Annotated[str | None, Immutable()] = None
    target: Target | None = None


class RuledStatus(Model, rules=[Rule("self.phase != 'Forbidden'", message="has another phase")]):
    phase: str = "Pending"
    conditions: Annotated[list[Condition], ListMap("type")] = []


@resource(
    "rules.kubewright.test/v1",
    plural="ruled",
    rules=[Rule("self.metadata.name != 'admin'", message="this name is reserved", field_path=".spec.zone")],
)
class Ruled(Resource[RuledSpec, RuledStatus]):
    """A kind with rules."""


@pytest.fixture
async def ruled(admin: Client, namespace: str, install: Callable[[type[Object]], Awaitable[None]]) -> Ruled:
    await install(Ruled)
    return await admin.create(made("one", namespace))


def made(name: str, namespace: str) -> Ruled:
    return Ruled(metadata=ObjectMeta(name=name, namespace=namespace), spec=RuledSpec(zone="a"))


async def test_rules_of_structures_and_kinds_are_enforced(admin: Client, ruled: Ruled) -> None:
    ruled.spec.min_size = 9
    with pytest.raises(Invalid, match="minSize must not exceed maxSize"):
        await admin.update(ruled)
    with pytest.raises(Invalid, match=r"spec\.zone: Invalid value: .*this name is reserved"):
        await admin.create(made("admin", ruled.metadata.namespace))


async def test_unions_of_fields_are_enforced(admin: Client, ruled: Ruled) -> None:
    for target, complaint in (
        ({"file": "a", "namespace": "b"}, r"spec\.target: Invalid value: .*exactly one of file, namespace must be set"),
        ({"soft": 1}, "exactly one of file, namespace must be set"),
        ({"file": "a", "soft": 1, "hard": 2}, "at most one of soft, hard may be set"),
        ({"namespace": "b"}, "at least one of hard, soft, file must be set"),
    ):
        with pytest.raises(Invalid, match=complaint):
            await admin.patch(ruled, MergePatch({"spec": {"target": target}}))
    for accepted in ({"file": "a"}, {"file": None, "namespace": "b", "soft": 0}):
        await admin.patch(ruled, MergePatch({"spec": {"target": accepted}}))


async def test_an_immutable_field_cannot_be_changed(admin: Client, ruled: Ruled) -> None:
    with pytest.raises(Invalid, match=r"spec\.zone: Invalid value: .*field is immutable"):
        await admin.patch(ruled, MergePatch({"spec": {"zone": "b"}}))


async def test_an_optional_immutable_field_can_be_set_once_and_neither_changed_nor_removed(
    admin: Client, ruled: Ruled
) -> None:
    await admin.patch(ruled, MergePatch({"spec": {"storageClass": "fast"}}))

    with pytest.raises(Invalid, match=r"spec\.storageClass: Invalid value: .*field is immutable"):
        await admin.patch(ruled, MergePatch({"spec": {"storageClass": "slow"}}))
    with pytest.raises(Invalid, match="storageClass is immutable once it is set"):
        await admin.patch(ruled, MergePatch({"spec": {"storageClass": None}}))
    assert (await admin.get(Ruled, "one", namespace=ruled.metadata.namespace)).spec.storage_class == "fast"


async def test_the_defaults_of_a_status_show_at_once(admin: Client, ruled: Ruled) -> None:
    read = await admin.get(Ruled, "one", namespace=ruled.metadata.namespace)

    for answer in (ruled, read):
        assert b'"phase":"Pending"' in (origin(answer) or b"")


async def test_conditions_have_the_bounds_of_kubernetes(admin: Client, ruled: Ruled) -> None:
    condition = Condition(type="Ready", status="True", reason="AllGood", last_transition_time=now())
    for type_, reason in (("not ready", "AllGood"), ("Ready", ""), ("Ready", "all good"), ("Ready", "A" * 1025)):
        condition.type, condition.reason = type_, reason
        ruled.status.conditions = [condition]
        with pytest.raises(Invalid, match=r"status\.conditions\[0\]\.(type|reason): "):
            await admin.status.update(ruled)

    condition.type, condition.reason = "example.com/Ready", "AllGood:Really"
    updated = await admin.status.update(ruled)
    assert updated.status.conditions == [condition]


async def test_a_status_that_shows_by_default_is_stored_by_the_first_write(admin: Client, ruled: Ruled) -> None:
    """It is filled in when the object is read, so that even a write that changes nothing is a change to the storage."""
    once = await admin.update(ruled)
    twice = await admin.update(once)

    assert ruled.metadata.resource_version != once.metadata.resource_version == twice.metadata.resource_version
    assert once.metadata.generation == ruled.metadata.generation
