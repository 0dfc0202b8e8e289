"""One request on its way through the handlers, and what every handler needs of the server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, Protocol, TypeAlias

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.auth.authenticate import Authenticator
from kubewright.controlplane.embedded.auth.rbac import Authorizer
from kubewright.controlplane.embedded.auth.token_request import TokenIssuer
from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.embedded.endpoints.request import QueryParameters, Target
from kubewright.controlplane.embedded.registry.catalog import Catalog
from kubewright.controlplane.embedded.registry.resources import ResourceType
from kubewright.controlplane.embedded.rest.presentation import EventLines
from kubewright.controlplane.embedded.rest.suspension import Settled
from kubewright.controlplane.embedded.storage.store import Range, StoreChange, StoredObject

Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class ChangeSubscription(Protocol):
    """A subscription to a store, as far as the handlers use it."""

    @property
    def closed(self) -> bool:
        """Whether it has ended."""

    async def changes(self) -> list[StoreChange]:
        """The changes since the last call; empty when it was interrupted, or has ended."""

    def interrupt(self) -> None:
        """Let `changes` return an empty list, once it has returned all there are."""

    def close(self) -> None:
        """End it."""


class ObjectStore(Protocol):
    """The store, as far as the handlers use it: in the version of the requested resource."""

    @property
    def revision(self) -> int:
        """The newest revision."""

    @property
    def compacted(self) -> int:
        """The oldest revision that is not forgotten."""

    def get(self, key: str) -> StoredObject | None:
        """See `MemoryStore`."""

    def range(self, prefix: str, *, start: str = "", limit: int = 0, revision: int | None = None) -> Range:
        """See `MemoryStore`."""

    def create(self, key: str, value: JSONObject) -> StoredObject:
        """See `MemoryStore`."""

    def update(self, key: str, value: JSONObject, *, expected: int) -> StoredObject:
        """See `MemoryStore`."""

    def delete(self, key: str, *, expected: int | None = None, final: JSONObject | None = None) -> StoredObject:
        """See `MemoryStore`."""

    def prepare(self, value: JSONObject) -> None:
        """Raise Suspended when a value cannot be created or updated at once, StatusError when it cannot at all."""

    def watch(self, prefix: str, after: int) -> ChangeSubscription:
        """See `MemoryStore`."""


class Admission(Protocol):
    """Changes or refuses a write after the rules of its kind, before it is validated and stored."""

    def enter(self, call: Call, new: JSONObject) -> None:
        """Raise StatusError when nothing may be created where the request leads."""

    def admit(self, call: Call, new: JSONObject, old: JSONObject | None, operation: Operation) -> bool:
        """Change `new` in place, or raise StatusError. True when policies ran, which may have changed anything."""

    def check(self, call: Call, new: JSONObject, old: JSONObject | None, operation: Operation) -> None:
        """Raise StatusError to refuse. Nothing may be changed here."""

    def charge(self, call: Call, new: JSONObject, old: JSONObject | None) -> None:
        """Count a write that nothing but the store can refuse any more. Raises StatusError when it is too much."""

    def prepare_deletions(self, call: Call, entries: Sequence[StoredObject]) -> None:
        """Raise Suspended when outsiders are to be asked about the deletion of any of several objects."""


@dataclass(slots=True)
class Services:
    """What the handlers work with."""

    store: ObjectStore
    catalog: Catalog
    admission: Admission
    authenticator: Authenticator
    authorizer: Authorizer
    token_issuer: TokenIssuer
    clock: Callable[[], float]
    """Seconds since the epoch."""
    new_uid: Callable[[], str]
    suffix: Callable[[], str]
    """Five random characters, for generated names."""
    event_lines: EventLines = field(default_factory=EventLines)
    patience: float = 3.0
    """How many seconds a read waits for a revision that is still to come."""

    def now(self) -> str:
        """The present, as metadata has it."""
        return self.moment().strftime("%Y-%m-%dT%H:%M:%SZ")

    def moment(self) -> datetime:
        """The present, in UTC."""
        return datetime.fromtimestamp(self.clock(), UTC)


@dataclass(slots=True)
class Call:
    """A request for one resource, authenticated and authorized."""

    services: Services
    resource: ResourceType
    target: Target
    query: QueryParameters
    user: UserInfo
    user_agent: str = ""
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    """What is noted in the audit log besides the request."""
    settled: Settled | None = None
    """The outcomes for which the request was suspended."""
    deletion: JSONObject | None = None
    """The options of a deletion, wherever they were sent."""

    @property
    def manager(self) -> str:
        """The field manager: the `fieldManager`, else the first word of the user agent."""
        return self.query.text("fieldManager") or self.user_agent.partition("/")[0] or "unknown"

    @property
    def is_status(self) -> bool:
        """Whether the request is for the status subresource."""
        return self.target.subresource == "status"
