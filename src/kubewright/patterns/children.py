"""The objects that an object owns: `ensure` them as a whole, or `create_or_update` from their present state.

    role = await ensure(client, Role(metadata=ObjectMeta(name="viewer"), rules=[...]), owner=user)
    role.object, role.outcome                         # "created", "updated" or "unchanged"

    async with create_or_update(client, Secret(metadata=ObjectMeta(name="key")), owner=user) as secret:
        if "key" not in secret.data:
            secret.data["key"] = new_key()

A child without a namespace is in that of its owner. An owner that the garbage collector would not find, and a second
controller, are refused with a ValueError that says why (`set_controller_reference`). What is there without a controller
is adopted, unless the owner is being deleted (`check_adoption`).
"""

from __future__ import annotations

from copy import copy, deepcopy
from types import TracebackType
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar

from kubewright.api import Object, set_controller_reference
from kubewright.api.owners import check_controller
from kubewright.api.resources import resource_info
from kubewright.cache import CachedClient
from kubewright.client import Client
from kubewright.client.errors import AlreadyExists
from kubewright.client.patch import patch_from
from kubewright.patterns.not_yet import NotYet

C = TypeVar("C", bound=Object)

Outcome: TypeAlias = Literal["created", "updated", "unchanged"]


class Ensured(NamedTuple, Generic[C]):
    """The object as the server has it, and what had to be done."""

    object: C
    outcome: Outcome


async def ensure(client: Client, wanted: C, *, owner: Object | None = None, force: bool = True) -> Ensured[C]:
    """Apply the fields that are set in `wanted`, server-side; what others have set besides is left alone.

    Through a `CachedClient` it costs no request when it is so already and the kind is watched. With `force` fields are
    taken over from other managers, as a controller should for what it owns; without it that is a `Conflict`.
    `kubewright.partial` makes an object in which nothing but what is assigned is set. `wanted` is not changed.
    """
    if owner is not None:
        wanted = _with_namespace(wanted, owner)
        set_controller_reference(owner, wanted)
    if isinstance(client, CachedClient) and (applied := await client.applied(wanted)) is not None:
        return Ensured(applied, "unchanged")
    before = await client.find(wanted)
    if before is not None and owner is not None:
        # Applied by one field manager, a reference would just replace the one to the other owner.
        check_controller(owner, before)
        await check_adoption(client, owner, before)
    answer = await client.apply(wanted, force=force)
    if before is None or before.metadata.uid != answer.metadata.uid:
        return Ensured(answer, "created")
    is_same = before.metadata.resource_version == answer.metadata.resource_version
    return Ensured(answer, "unchanged" if is_same else "updated")


class create_or_update(Generic[C]):  # noqa: N801  # used as a function, in `async with`
    """Read the object, let the block change it, and create it or send the changes of the block.

    `initial` is what the block gets when there is no such object yet; otherwise only its kind, namespace and name
    matter. Nothing is written when the block raises or changes nothing. Name, namespace and kind must stay the same.
    After the block `object` is what the server has, and `outcome` what was done.

    What others write at the same time survives, as with `client.patch`. If the object turns up between reading and
    creating it, what the block did to `initial` is done to that.
    """

    object: C
    outcome: Outcome

    def __init__(self, client: Client, initial: C, *, owner: Object | None = None) -> None:
        self._client = client
        self._initial = initial
        self._owner = owner
        self._found = False

    async def __aenter__(self) -> C:
        """The object as it is, to be changed in place."""
        self._initial = _with_namespace(self._initial, self._owner)
        found = await self._client.find(self._initial)
        self._found = found is not None
        self._key = self._initial.key
        self.object = found if found is not None else deepcopy(self._initial)
        return self.object

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Write it, unless the block raised."""
        if error is not None:
            return
        obj, client = self.object, self._client
        if obj.key != self._key:
            raise ValueError(f"{obj.kind} {self._key} became {obj.key} in the block: create_or_update does not rename")
        if self._owner is not None:
            if self._found:
                await check_adoption(client, self._owner, obj)
            set_controller_reference(self._owner, obj)
        if self._found:
            self._conclude(await client.patch(obj))
            return
        try:
            self.object, self.outcome = await client.create(obj), "created"
        except AlreadyExists:  # created by others, and not seen in the cache yet
            answer = await client.patch(obj, patch_from(self._initial))
            self._conclude(answer if answer is not obj else await Client.get(client, obj))

    def _conclude(self, answer: C) -> None:
        is_same = answer.metadata.resource_version == self.object.metadata.resource_version
        self.object, self.outcome = answer, "unchanged" if is_same else "updated"


async def check_adoption(client: Client, owner: Object, child: Object) -> None:
    """Return when the object is controlled by its owner, or may be: the owner is there, and not being deleted.

    The server is asked, as controllers of Kubernetes do. With `--cascade=orphan` the garbage collector takes the owner
    from its objects, and a watch may report that before the deletion. Given it again, they would be deleted, too.
    """
    uid = owner.metadata.uid
    if any(each.controller and each.uid == uid for each in child.metadata.owner_references):
        return
    there = await Client.find(client, owner)
    if there is None or there.metadata.uid != uid or there.metadata.deletion_timestamp is not None:
        raise NotYet(f"the {owner.kind} {owner.key} is being deleted")


def _with_namespace(child: C, owner: Object | None) -> C:
    """A copy of the child in its namespace, which is that of the owner when it names none."""
    child = copy(child)
    child.metadata = copy(child.metadata)
    if owner is not None and not child.metadata.namespace and resource_info(type(child)).namespaced is not False:
        child.metadata.namespace = owner.metadata.namespace
    return child
