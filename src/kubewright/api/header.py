"""What is decoded of an object on arrival: enough to find, index and order it. Everything else stays bytes."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from kubewright.api.kinds import ObjectKey


class OwnerHeader(Struct, rename="camel", gc=False):
    """An owner reference, as far as it decides whom to tell."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Header(Struct, rename="camel"):
    """The identifying part of an object's metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerHeader] | None = None
    finalizers: list[str] | None = None
    managed_fields: msgspec.Raw = msgspec.Raw(b"")  # where they are, so that they can be cut out; nobody reads them

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return ObjectKey(self.namespace, self.name)
