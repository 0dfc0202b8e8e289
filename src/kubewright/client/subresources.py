"""Endpoints below an object: status and scale, eviction, tokens, bindings, and any other by name."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar, overload

from kubewright.api.errors import refusing
from kubewright.api.meta import DeleteOptions, ObjectMeta
from kubewright.api.resources import Object
from kubewright.client.arguments import kind_and_name
from kubewright.client.endpoint import Endpoint
from kubewright.client.operations import Operations, WriteOptions
from kubewright.client.patch import MergePatch
from kubewright.client.paths import Named, ObjectName
from kubewright.client.writer import Updater

if TYPE_CHECKING:
    from kubewright.api.authentication.v1 import TokenRequest
    from kubewright.api.autoscaling.v1 import Scale

T = TypeVar("T", bound=Object)
BodyT = TypeVar("BodyT", bound=Object)


class Subresource(Updater):
    """One subresource of every kind, such as status: the verbs of the client, for just that part."""

    def __init__(self, operations: Operations, name: str) -> None:
        self._operations = operations
        self._subresource = name

    if not TYPE_CHECKING:
        __call__ = refusing("client.status is not called: write client.status.update(obj)")

    @overload
    async def get(self, target: T, /) -> T: ...

    @overload
    async def get(self, target: type[T], /, name: ObjectName, *, namespace: str | None = None) -> T: ...

    async def get(self, target: T | type[T], /, name: ObjectName | None = None, *, namespace: str | None = None) -> T:
        """Read it where it is answered as the kind itself, as status is; else see `read`."""
        kind, which = kind_and_name(target, name)
        if self._subresource == "scale":  # which may well look like the kind, and be another
            raise TypeError(f"the scale of a {kind.__name__} is a Scale: write client.get_scale(...) for it")
        endpoint = await self._operations.endpoint(kind, which, namespace, self._subresource)
        return await self._operations.get(kind, endpoint)

    async def read(
        self,
        answer: type[BodyT],
        of: Object | type[Object],
        name: ObjectName | None = None,
        *,
        namespace: str | None = None,
    ) -> BodyT:
        """Read it where its answer is of another kind than the object, as `Scale` is."""
        endpoint = await self._operations.endpoint(of, name, namespace, self._subresource)
        return await self._operations.get(answer, endpoint)

    async def create(
        self,
        body: BodyT,
        of: Object | type[Object],
        name: ObjectName | None = None,
        *,
        namespace: str | None = None,
        dry_run: bool | None = None,
    ) -> BodyT:
        """POST `body` to it, as evictions, bindings and token requests are made.

        Returns what the server made of it; `body` itself where the answer is only a Status.
        """
        endpoint = await self._operations.endpoint(of, name, namespace, self._subresource)
        return await self._operations.post(body, endpoint, WriteOptions(dry_run))


class Subresources:
    """The endpoints below objects. Base of `Client`."""

    _operations: Operations

    @property
    def status(self) -> Subresource:
        """Status, written apart from the rest: `await client.status.update(obj)`."""
        return Subresource(self._operations, "status")

    def subresource(self, name: str) -> Subresource:
        """Any subresource by name: `await client.subresource("approval").update(request)`."""
        return Subresource(self._operations, name)

    async def get_scale(
        self, target: Object | type[Object], name: ObjectName | None = None, *, namespace: str | None = None
    ) -> Scale:
        """The wanted and the actual number of replicas of anything that scales."""
        from kubewright.api.autoscaling.v1 import Scale

        return await self.subresource("scale").read(Scale, target, name, namespace=namespace)

    async def scale(
        self,
        target: Object | type[Object],
        name: ObjectName | None = None,
        *,
        replicas: int,
        namespace: str | None = None,
        dry_run: bool | None = None,
    ) -> Scale:
        """Set the wanted number of replicas: `await client.scale(Deployment, "web", replicas=3)`."""
        from kubewright.api.autoscaling.v1 import Scale

        endpoint = await self._operations.endpoint(target, name, namespace, "scale")
        patch = MergePatch({"spec": {"replicas": replicas}})
        return await self._operations.patch(Scale, patch, endpoint, WriteOptions(dry_run))

    async def evict(
        self,
        pod: Object | str | Named,
        *,
        namespace: str | None = None,
        grace_period: int | None = None,
        dry_run: bool | None = None,
    ) -> None:
        """Evict a pod. Raises `TooManyRequests` when that would break its disruption budget."""
        from kubewright.api.policy.v1 import Eviction

        endpoint = await self._of_pod(pod, namespace, "eviction")
        body = Eviction(
            metadata=ObjectMeta(name=endpoint.name, namespace=endpoint.namespace),
            delete_options=None if grace_period is None else DeleteOptions(grace_period_seconds=grace_period),
        )
        await self._operations.post(body, endpoint, WriteOptions(dry_run))

    async def bind(self, pod: Object | str | Named, node: str, *, namespace: str | None = None) -> None:
        """Bind a pod to a node, as a scheduler does."""
        from kubewright.api.core.v1 import Binding, ObjectReference

        endpoint = await self._of_pod(pod, namespace, "binding")
        body = Binding(
            metadata=ObjectMeta(name=endpoint.name, namespace=endpoint.namespace),
            target=ObjectReference(api_version="v1", kind="Node", name=node),
        )
        await self._operations.post(body, endpoint, WriteOptions())

    async def token(
        self,
        service_account: Object | str | Named,
        *,
        namespace: str | None = None,
        audiences: Sequence[str] = (),
        expiration_seconds: int | None = None,
        bound_to: Object | None = None,
    ) -> TokenRequest:
        """A fresh token of a service account, in `.status.token`; it expires with the object it is `bound_to`."""
        from kubewright.api.authentication.v1 import BoundObjectReference, TokenRequest, TokenRequestSpec
        from kubewright.api.core.v1 import ServiceAccount

        target, name = _target(ServiceAccount, service_account)
        endpoint = await self._operations.endpoint(target, name, namespace, "token")
        reference = None
        if bound_to is not None:
            owner = bound_to.metadata
            reference = BoundObjectReference(
                api_version=bound_to.api_version, kind=bound_to.kind, name=owner.name, uid=owner.uid
            )
        spec = TokenRequestSpec(
            audiences=list(audiences), expiration_seconds=expiration_seconds, bound_object_ref=reference
        )
        return await self._operations.post(TokenRequest(spec=spec), endpoint, WriteOptions())

    async def logs(
        self,
        pod: str | Named | Object,
        *,
        namespace: str | None = None,
        container: str | None = None,
        follow: bool = False,
        previous: bool = False,
        timestamps: bool = False,
        since: datetime | timedelta | int | None = None,
        tail: int | None = None,
        limit_bytes: int | None = None,
    ) -> AsyncGenerator[str, None]:
        """The log of a container, line by line: `async for line in client.logs("web-1", follow=True)`.

        `since` is a time, or how long ago; `tail` starts that many lines before the end.
        """
        from kubewright.client.logs import log_lines  # for scripts and tests

        endpoint = await self._of_pod(pod, namespace, "log")
        lines = log_lines(
            self._operations.session,
            endpoint,
            container=container,
            follow=follow,
            previous=previous,
            timestamps=timestamps,
            since=since,
            tail=tail,
            limit_bytes=limit_bytes,
        )
        async with aclosing(lines):
            async for line in lines:
                yield line

    async def _of_pod(self, pod: Object | str | Named, namespace: str | None, subresource: str) -> Endpoint:
        from kubewright.api.core.v1 import Pod

        return await self._operations.endpoint(*_target(Pod, pod), namespace, subresource)


def _target(kind: type[Object], target: Object | str | Named) -> tuple[Object | type[Object], str | Named | None]:
    return (target, None) if isinstance(target, Object) else (kind, target)
