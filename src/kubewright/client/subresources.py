"""Endpoints below an object: status and scale, eviction, tokens, bindings, and any other by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from kubewright.api.meta import DeleteOptions, ObjectMeta
from kubewright.api.resources import Object
from kubewright.client.operations import Operations, Place, WriteOptions
from kubewright.client.patch import MergePatch, Patch
from kubewright.client.paths import FieldValidation, Named

if TYPE_CHECKING:
    from kubewright.api.authentication.v1 import TokenRequest
    from kubewright.api.autoscaling.v1 import Scale

T = TypeVar("T", bound=Object)
BodyT = TypeVar("BodyT", bound=Object)


class Subresource:
    """One subresource of every kind, such as status: the verbs of the client, for just that part."""

    def __init__(self, operations: Operations, name: str) -> None:
        self._operations = operations
        self.name = name

    async def get(self, kind: type[T], name: str | Named, *, namespace: str | None = None) -> T:
        """Read it, as the kind it is answered as: for status the kind itself."""
        return await self._operations.get(kind, await self._operations.place(kind, name, namespace, self.name))

    async def read(
        self,
        answer: type[BodyT],
        of: Object | type[Object],
        name: str | Named | None = None,
        *,
        namespace: str | None = None,
    ) -> BodyT:
        """Read it where its answer is of another kind than the object, as `Scale` is."""
        return await self._operations.get(answer, await self._operations.place(of, name, namespace, self.name))

    async def create(
        self,
        body: BodyT,
        of: Object | type[Object],
        name: str | Named | None = None,
        *,
        namespace: str | None = None,
        dry_run: bool | None = None,
    ) -> BodyT:
        """POST `body` to it, as evictions, bindings and token requests are made.

        Returns what the server made of it; `body` itself where the server only says that it is done.
        """
        place = await self._operations.place(of, name, namespace, self.name)
        return await self._operations.post(body, place, WriteOptions(dry_run))

    async def update(
        self,
        obj: T,
        *,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> T:
        """Replace it by what `obj` has. Raises `Conflict` when the object changed since it was read."""
        return await self._operations.update(obj, self.name, WriteOptions(dry_run, field_manager, field_validation))

    async def patch(
        self,
        obj: T,
        patch: Patch | None = None,
        *,
        lock: bool | None = None,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> T:
        """Send what changed in it since `obj` was read, or an explicit patch; nothing when nothing changed.

        `lock` is that of `Client.patch`: conditions and other list items that somebody else wrote meanwhile survive.
        """
        return await self._operations.patch(
            obj,
            patch,
            await self._operations.place(obj, None, None, self.name),
            WriteOptions(dry_run, field_manager, field_validation),
            lock,
        )

    async def apply(
        self,
        obj: T,
        *,
        force: bool = False,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> T:
        """Server-side apply of just this part."""
        return await self._operations.apply(
            obj, self.name, force, WriteOptions(dry_run, field_manager, field_validation)
        )


async def get_scale(
    operations: Operations, target: Object | type[Object], name: str | Named | None, namespace: str | None
) -> Scale:
    """The wanted and the actual number of replicas."""
    from kubewright.api.autoscaling.v1 import Scale

    return await operations.get(Scale, await operations.place(target, name, namespace, "scale"))


async def set_scale(
    operations: Operations,
    target: Object | type[Object],
    replicas: int,
    name: str | Named | None,
    namespace: str | None,
    options: WriteOptions,
) -> Scale:
    """Ask for that many replicas, whatever else is changed at the same time."""
    from kubewright.api.autoscaling.v1 import Scale

    place = await operations.place(target, name, namespace, "scale")
    return await operations.patch(Scale, MergePatch({"spec": {"replicas": replicas}}), place, options)


async def pod_place(
    operations: Operations, pod: Object | str | Named, namespace: str | None, subresource: str
) -> Place:
    """Where a subresource of a pod is; the pod given itself or by name."""
    from kubewright.api.core.v1 import Pod

    return await operations.place(*_target(Pod, pod), namespace, subresource)


async def evict(
    operations: Operations,
    pod: Object | str | Named,
    namespace: str | None,
    grace_period: int | None,
    options: WriteOptions,
) -> None:
    """Ask for a pod to go, within its disruption budgets."""
    from kubewright.api.policy.v1 import Eviction

    place = await pod_place(operations, pod, namespace, "eviction")
    body = Eviction(
        metadata=ObjectMeta(name=place.name, namespace=place.namespace),
        delete_options=None if grace_period is None else DeleteOptions(grace_period_seconds=grace_period),
    )
    await operations.post(body, place, options)


async def bind(operations: Operations, pod: Object | str | Named, node: str, namespace: str | None) -> None:
    """Place a pod on a node, as a scheduler does."""
    from kubewright.api.core.v1 import Binding, ObjectReference

    place = await pod_place(operations, pod, namespace, "binding")
    body = Binding(
        metadata=ObjectMeta(name=place.name, namespace=place.namespace),
        target=ObjectReference(api_version="v1", kind="Node", name=node),
    )
    await operations.post(body, place, WriteOptions())


async def token(
    operations: Operations,
    service_account: Object | str | Named,
    namespace: str | None,
    audiences: Sequence[str],
    expiration_seconds: int | None,
    bound_to: Object | None,
) -> TokenRequest:
    """A fresh token of a service account."""
    from kubewright.api.authentication.v1 import BoundObjectReference, TokenRequest, TokenRequestSpec
    from kubewright.api.core.v1 import ServiceAccount

    place = await operations.place(*_target(ServiceAccount, service_account), namespace, "token")
    reference = None
    if bound_to is not None:
        name, uid = bound_to.metadata.name, bound_to.metadata.uid
        reference = BoundObjectReference(api_version=bound_to.api_version, kind=bound_to.kind, name=name, uid=uid)
    spec = TokenRequestSpec(
        audiences=list(audiences), expiration_seconds=expiration_seconds, bound_object_ref=reference
    )
    return await operations.post(TokenRequest(spec=spec), place, WriteOptions())


def _target(kind: type[Object], target: Object | str | Named) -> tuple[Object | type[Object], str | Named | None]:
    return (target, None) if isinstance(target, Object) else (kind, target)
