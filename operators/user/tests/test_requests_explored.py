"""Whatever fails at whichever API call: requests come to the same end, with a record of each of their phases."""

from __future__ import annotations

from dataclasses import dataclass, field

from operators.user import Deleterequest, Operationrequest, Options, User
from operators.user.deployed import required_objects
from operators.user.names import CREATOR, OWNER, STATUS, SYSTEM_NAMESPACE, role_reference, workspace_of
from operators.user.program import add_users
from operators.user.request_controllers import add_requests
from operators.user.tests.deploying import KINDS
from operators.user.tests.requesting import deletion, operation

from kubewright import Field, Manager, ObjectMeta, condition
from kubewright.api import Object
from kubewright.api.core.v1 import Namespace, Secret
from kubewright.api.rbac.v1 import RoleBinding
from kubewright.patterns import AuditRecord
from kubewright.testing import World, explore
from kubewright.testing.exploration import FaultKind

SYSTEM = Namespace(metadata=ObjectMeta(name=SYSTEM_NAMESPACE))
# How often something was tried, and whether it was found done already.
IGNORED: dict[type[Object], list[str]] = {
    Operationrequest: ["status.attempts", "status.message"],
    Deleterequest: ["status.attempts", "status.message"],
}
# What depends on a token, which is another one in each world.
TOKENS: dict[type[Object], list[str]] = {
    Secret: ["data", "metadata.annotations"],
    User: ["status.kubeConfigSecret.hash"],
}


@dataclass
class Trail:
    """An audit trail that outlives processes."""

    records: list[AuditRecord] = field(default_factory=list)

    async def write(self, record: AuditRecord, request: object) -> None:
        self.records.append(record)


def requests_only(manager: Manager, trail: Trail) -> None:
    """Without the policy, which would be read and evaluated in every world."""
    add_requests(manager, Options(guard_requests=False), trail)


def everything(manager: Manager, trail: Trail) -> None:
    add_users(manager, Options(), None)
    requests_only(manager, trail)


def reported(world: World[Trail]) -> set[tuple[str, str]]:
    """The records of phases, each counted once: a process that takes over may repeat one."""
    return {(record.name, record.phase) for record in world.outside.records}


async def people(world: World[Trail], *names: str) -> None:
    """Users and their workspaces, without the half of the operator that makes them."""
    for name in names:
        user = await world.create(User(metadata=ObjectMeta(name=name, labels={STATUS: "Deleted"})))
        metadata = ObjectMeta(
            name=workspace_of(name),
            labels={OWNER: name},
            annotations={CREATOR: name},
            owner_references=[user.as_owner()],
        )
        await world.create(Namespace(metadata=metadata))


USER = User(metadata=ObjectMeta(name="alice"))
DEVELOPER = operation("Grant", "bob", "ns-alice", "Developer", name="first")
OWNS = operation("Update", "bob", "ns-alice", "Owner", name="second")
NO_MORE = operation("Deprive", "bob", "ns-alice", name="third")
REFUSED = operation("Deprive", "alice", "ns-alice", name="fourth")
COMPLETED = Field("status.phase").equals("Completed")


# The others strike connections and watches, whatever is written: one scenario is enough for them.
WRITING: list[FaultKind] = [
    "crash-before",
    "crash-after",
    "conflict",
    "errors",
    "lost-answer",
    "late",
    "takeover",
    "stale",
]


async def promote(world: World[Trail]) -> None:
    await people(world, "alice", "bob")
    metadata = ObjectMeta(name="bob-Developer", namespace="ns-alice", labels={OWNER: "bob"})
    await world.create(RoleBinding(metadata=metadata, role_ref=role_reference("Developer")))
    await world.create(OWNS)


def keeps_a_role(world: World[Trail]) -> None:
    """Nothing is done before it is claimed, and a user who is promoted is never without a role."""
    roles = [each.metadata.name for each in world.list(RoleBinding) if each.metadata.namespace == "ns-alice"]
    request = world.get(OWNS)
    if request is not None:
        assert roles == ["bob-Developer"] if request.status.phase == "Pending" else roles


def test_item_76_a_role_is_given_and_changed_whatever_fails() -> None:
    explore(
        requests_only,
        outside=Trail,
        kinds=KINDS,
        given=[SYSTEM],
        when=promote,
        until=lambda world: world.wait(OWNS, COMPLETED),
        always=keeps_a_role,
        compare=reported,
        ignore=IGNORED,
        events=0,
        seeds=2,
    ).same_end()


async def take_back(world: World[Trail]) -> None:
    await people(world, "alice", "bob")
    for name in ("alice", "bob-Owner"):
        metadata = ObjectMeta(name=name, namespace="ns-alice")
        await world.create(RoleBinding(metadata=metadata, role_ref=role_reference("Owner")))
    await world.change(USER, lambda user: user.metadata.annotations.update({OWNER: "bob"}))
    await world.create(NO_MORE)
    await world.create(REFUSED)


async def taken_back(world: World[Trail]) -> None:
    await world.wait(NO_MORE, COMPLETED)
    await world.wait(REFUSED, Field("status.phase").equals("Failed"))


def test_item_76_a_role_is_taken_and_another_one_is_not_whatever_fails() -> None:
    explore(
        requests_only,
        outside=Trail,
        kinds=KINDS,
        given=[SYSTEM],
        when=take_back,
        until=taken_back,
        compare=reported,
        ignore=IGNORED,
        events=0,
        faults=WRITING,
        seeds=2,
    ).same_end()


GO = deletion("bob", name="go")
LEAVE = deletion("bob", dependents=False, name="leave")


async def delete(world: World[Trail]) -> None:
    await people(world, "alice", "bob")
    labels = {OWNER: "bob"}
    await world.create(Secret(metadata=ObjectMeta(name="token-of-bob", namespace=SYSTEM_NAMESPACE, labels=labels)))
    metadata = ObjectMeta(name="bob-Owner", namespace="ns-alice", labels=labels)
    await world.create(RoleBinding(metadata=metadata, role_ref=role_reference("Owner")))
    await world.change(USER, lambda user: user.metadata.annotations.update(labels))
    await world.settled()
    await world.create(GO)
    await world.create(operation("Grant", "bob", "ns-alice", "Manager", name="late"))


def leaves_nothing(world: World[Trail]) -> None:
    """No right outlives the User, and a request is completed only when everything is gone."""
    found = world.get(GO)
    is_gone = not any(user.metadata.name == "bob" for user in world.list(User))
    if found is not None and found.status.phase == "Completed":
        assert is_gone
        assert "ns-bob" not in [each.metadata.name for each in world.list(Namespace)]
    if found is not None and is_gone:
        assert not [each for each in world.list(RoleBinding) if each.metadata.labels.get(OWNER) == "bob"]
        assert not [each for each in world.list(Secret) if each.metadata.labels.get(OWNER) == "bob"]


def test_a_user_is_deleted_by_a_request_whatever_fails() -> None:
    explore(
        requests_only,
        outside=Trail,
        kinds=KINDS,
        given=[SYSTEM],
        when=delete,
        until=lambda world: world.wait(GO, COMPLETED),
        always=leaves_nothing,
        # Whether a request that comes at the same time is still carried out depends on who is faster.
        ignore={**IGNORED, Operationrequest: ["status.attempts", "status.message", "status.phase"]},
        faults=WRITING,
        seeds=2,
    ).same_end()


async def leave(world: World[Trail]) -> None:
    for name in ("alice", "bob"):
        user = User(metadata=ObjectMeta(name=name, labels={STATUS: "Deleted"}))
        await world.create(user)
        await world.wait(user, condition("Ready"))
    await world.create(DEVELOPER)
    await world.wait(DEVELOPER, COMPLETED)
    await world.create(LEAVE)


def test_a_user_goes_without_its_workspace_whenever_the_operator_is_killed() -> None:
    """By the whole operator: its finalizer has a part in it. Everything else that may fail is explored elsewhere."""
    explore(
        everything,
        outside=Trail,
        kinds=KINDS,
        given=required_objects(),
        when=leave,
        until=lambda world: world.wait(LEAVE, COMPLETED),
        compare=reported,
        ignore={**IGNORED, **TOKENS},
        faults=["crash-after"],
        seeds=0,
    ).same_end()
