"""What the steps for one User share."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol, TypeVar

from kubewright import Client, Config, ObjectMeta
from kubewright.api import Object
from kubewright.api.core.v1 import ServiceAccount
from kubewright.patterns import Context

from .names import CREATOR, OWNER, workspace_of
from .types import User

T = TypeVar("T", bound=Object)


class Quota(Protocol):
    """Decides whether there may be one more user."""

    async def __call__(self, user: User, /) -> str | None:
        """None to admit a new User, or the reason why not. It is asked again until it admits, and never after."""


class UserContext(Context[User]):
    """One reconcile of one User."""

    config: Config
    """The server and the authority in kubeconfigs."""
    quota: Quota | None = None
    is_privileged = False
    service_account: ServiceAccount
    """Set by the step `service_account`."""
    next_change: datetime | None = None
    """When something is due without any event; set by the step `kubeconfig`."""

    @property
    def name(self) -> str:
        """That of the User."""
        return self.object.metadata.name

    @property
    def workspace(self) -> str:
        """The namespace of the User."""
        return workspace_of(self.name)

    @property
    def owner(self) -> str:
        """Who owns the workspace: the User, unless an annotation says otherwise. Webhooks may be off."""
        return self.object.metadata.annotations.get(OWNER) or self.name

    async def find(self, wanted: T) -> T | None:
        """The object, asking the server for one that the cache does not show: it may be there and not be ours."""
        return await self.client.find(wanted) or await Client.find(self.client, wanted)

    @property
    def annotations(self) -> dict[str, str]:
        """Those of every object that is made for the User."""
        return {CREATOR: self.name, OWNER: self.owner}

    def metadata(self, name: str, namespace: str = "") -> ObjectMeta:
        """That of an object that is made for the User."""
        return ObjectMeta(name=name, namespace=namespace, annotations=self.annotations)
