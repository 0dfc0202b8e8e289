"""`Writer`: the half of a client that writes. Each write returns what the server made of it.

`Updater` is the part of it that subresources have, too.
"""

from __future__ import annotations

from typing import TypeVar, overload

from kubewright.api.meta import DeleteOptions, Preconditions
from kubewright.api.resources import Object
from kubewright.api.selectors import Fields, Labels
from kubewright.client.arguments import name_and_patch
from kubewright.client.errors import NotFound
from kubewright.client.operations import Operations, WriteOptions
from kubewright.client.patch import Patch
from kubewright.client.paths import FieldValidation, ObjectName, Propagation, query
from kubewright.client.selector_parameters import selector_parameters

T = TypeVar("T", bound=Object)


class Updater:
    """Changes objects, or just what belongs to one of their subresources. Base of `Client` and of `Subresource`."""

    _operations: Operations
    _subresource: str = ""

    async def update(
        self,
        obj: T,
        *,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> T:
        """Replace the object, or its subresource, by `obj`. Raises `Conflict` when it changed since it was read.

        What the Python type does not know is sent back as it was read. Status goes out by `client.status.update`:
        `client.update` of an object in which nothing else was changed is a ValueError.
        """
        options = WriteOptions(dry_run, field_manager, field_validation)
        return await self._operations.update(obj, self._subresource, options)

    @overload
    async def patch(
        self,
        target: T,
        patch: Patch | None = None,
        /,
        *,
        lock: bool | None = None,
        strategic: bool = False,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> T: ...

    @overload
    async def patch(
        self,
        target: type[T],
        name: ObjectName,
        patch: Patch,
        /,
        *,
        namespace: str | None = None,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> T: ...

    async def patch(
        self,
        target: T | type[T],
        name: ObjectName | Patch | None = None,
        patch: Patch | None = None,
        /,
        *,
        namespace: str | None = None,
        lock: bool | None = None,
        strategic: bool = False,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> T:
        """Change part of an object, given itself or by kind and name, and return what the server made of it.

        Without a patch, the difference between the object and what it was read as is sent: nothing at all when
        nothing changed. `patch_from(base)` is the difference to another copy. Status goes out by `client.status.patch`:
        if nothing else was changed, `client.patch` is a ValueError; otherwise `obj` keeps it, and what is returned is
        without it. `client.status.patch(Node, "node-1", MergePatch({"status": {...}}))` needs no object.

        What other clients have written meanwhile survives. Fields are sent as they are. Where a list was changed, the
        revision goes with it; if the server has a newer one, the object is read and the change made again on that,
        list items by their keys, a few times. `Conflict` is raised only where both sides changed a list without keys,
        or others are faster each time. `lock=True` sends the revision always and leaves every `Conflict` to the caller,
        which makes a claim of the change; `lock=False` never sends it, and replaces lists whatever they hold by now.

        `strategic=True` sends the difference as a strategic merge patch, which Kubernetes' own kinds take: lists with a
        merge key change item by item, so that neither a revision nor a retry is needed for them.
        """
        which, patch = name_and_patch(target, name, patch)
        endpoint = await self._operations.endpoint(target, which, namespace, self._subresource)
        options = WriteOptions(dry_run, field_manager, field_validation)
        return await self._operations.patch(target, patch, endpoint, options, lock, strategic)

    async def apply(
        self,
        obj: T,
        *,
        force: bool = False,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> T:
        """Server-side apply: the fields set in `obj` are ours from now on, those no longer set are given up.

        `kubewright.api.partial` makes an object in which only what is assigned is set.

        Raises `Conflict` naming the fields that another manager owns, unless `force` takes them over.
        """
        options = WriteOptions(dry_run, field_manager, field_validation)
        return await self._operations.apply(obj, self._subresource, force, options)


class Writer(Updater):
    """Writes objects of any kind. Base of `Client`."""

    _operations: Operations

    async def create(
        self,
        obj: T,
        *,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> T:
        """Create the object. Raises `AlreadyExists` when one of that name is there."""
        return await self._operations.create(obj, WriteOptions(dry_run, field_manager, field_validation))

    async def submit(self, obj: Object) -> None:
        """Create an object that is of no further interest, such as an Event: the answer is not decoded.

        Raises as `create` does.
        """
        await self._operations.submit(obj)

    @overload
    async def delete(
        self,
        target: Object,
        *,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool | None = None,
        missing_ok: bool = False,
    ) -> None: ...

    @overload
    async def delete(
        self,
        target: type[Object],
        name: ObjectName,
        *,
        namespace: str | None = None,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool | None = None,
        missing_ok: bool = False,
    ) -> None: ...

    async def delete(
        self,
        target: Object | type[Object],
        name: ObjectName | None = None,
        *,
        namespace: str | None = None,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool | None = None,
        missing_ok: bool = False,
    ) -> None:
        """Delete an object, given itself or by kind and name. Finalizers and grace periods may keep it a while.

        `uid` and `resource_version` are preconditions: the server answers Conflict when they do not match.
        """
        endpoint = await self._operations.endpoint(target, name, namespace)
        options = self._delete_options(propagation, grace_period, uid, resource_version, dry_run)
        try:
            await self._operations.delete(endpoint, options)
        except NotFound as error:
            if not missing_ok or not error.is_about(endpoint.name):
                raise

    async def delete_all(
        self,
        kind: type[Object],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        dry_run: bool | None = None,
    ) -> None:
        """Delete all objects of a kind that match. A namespaced kind needs `namespace=`: it is not done across them."""
        endpoint = await self._operations.collection(kind, namespace)
        if endpoint.info.namespaced and not endpoint.namespace:
            raise ValueError(f"delete_all({kind.__name__}) needs namespace=: the server deletes in one at a time")
        options = self._delete_options(propagation, grace_period, None, None, dry_run)
        await self._operations.delete(endpoint, options, query(selector_parameters(kind, labels, fields)))

    def _delete_options(
        self,
        propagation: Propagation | None,
        grace_period: int | None,
        uid: str | None,
        resource_version: str | None,
        dry_run: bool | None,
    ) -> DeleteOptions:
        guarded = uid is not None or resource_version is not None
        return DeleteOptions(
            api_version="v1",
            kind="DeleteOptions",
            propagation_policy=propagation,
            grace_period_seconds=grace_period,
            preconditions=Preconditions(uid=uid, resource_version=resource_version) if guarded else None,
            dry_run=["All"] if self._operations.dry_run(WriteOptions(dry_run)) else [],
        )
