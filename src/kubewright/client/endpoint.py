"""Where a request goes, and how errors describe it."""

from __future__ import annotations

from msgspec import Struct

from kubewright.api.resources import ResourceInfo
from kubewright.client.paths import collection_path, object_path


class RequestDescription(Struct, frozen=True, gc=False):
    """Verb, kind and name of a request; its text is `update Pod default/web-1`, made only when an error needs it."""

    verb: str
    endpoint: Endpoint
    name: str

    def __str__(self) -> str:
        info, subresource = self.endpoint.info, self.endpoint.subresource
        kind = f"{info.gvk.kind}/{subresource}" if subresource else info.gvk.kind
        name, namespace = self.endpoint.name or self.name, self.endpoint.namespace
        where = f"{namespace}/{name}" if namespace and name else name or namespace
        if not where and info.namespaced:
            where = "in all namespaces"
        elif namespace and not name:
            where = f"in {namespace}"
        return f"{self.verb} {kind} {where}".rstrip()


class Endpoint(Struct, frozen=True, gc=False):
    """Where a request goes: the kind, the namespace if any, the name if any."""

    info: ResourceInfo
    namespace: str
    name: str = ""
    subresource: str = ""

    @property
    def path(self) -> str:
        """The path on the server."""
        if self.name:
            return object_path(self.info, self.namespace, self.name, self.subresource)
        return collection_path(self.info, self.namespace)

    def request(self, verb: str, name: str = "") -> RequestDescription:
        """The description for errors; `name` for objects that have none yet."""
        return RequestDescription(verb, self, name)
