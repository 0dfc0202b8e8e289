"""Where a request goes: which endpoint an object has for a client, and how errors describe it."""

from __future__ import annotations

from msgspec import Struct

from kubewright.api.kinds import ObjectKey
from kubewright.api.owners import check_owners
from kubewright.api.resources import Object, ResourceInfo, resource_info
from kubewright.client.arguments import check_kind, check_name, check_scope, kind_and_name
from kubewright.client.mapping import Mapper
from kubewright.client.paths import Named, ObjectName, collection_path, object_path


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


class Endpoints(Struct, frozen=True, kw_only=True):
    """Where objects are, for a client with this default `namespace`.

    `scope` confines lists and watches to a namespace. With `names_namespaces` an object that is written must name its
    namespace.
    """

    mapper: Mapper
    namespace: str
    scope: str = ""
    names_namespaces: bool = False

    async def endpoint(
        self, target: Object | type[Object], name: ObjectName | None, namespace: str | None, subresource: str = ""
    ) -> Endpoint:
        """Where one object is: given itself, or by kind and name."""
        kind, which = kind_and_name(target, name)
        info = self.mapper.known(kind) or await self.mapper.info(kind)
        if isinstance(target, Object):
            which, namespace = target.metadata.name, namespace or self.namespace_of(target, info)
        return Endpoint(info, *self.key(info, which, namespace), subresource)

    def key(self, info: ResourceInfo, name: ObjectName, namespace: str | None) -> ObjectKey:
        """Which object of a kind whose scope is known. The client's namespace is the default."""
        if isinstance(name, str):
            called, where = name, namespace or self.namespace
        else:
            where, called = name if type(name) is ObjectKey else _key_of(info, name)
            where = namespace or where or self.namespace
        if not called or "/" in called or (namespace and not info.namespaced):
            check_name(info, called, namespace)
        if not info.namespaced:
            return ObjectKey("", called)
        if self.scope:
            self._stay(where)
        return ObjectKey(where, called)

    async def collection(self, kind: type[Object], namespace: str | None) -> Endpoint:
        """Where all objects of a kind are, in one namespace or in all."""
        check_kind(kind)
        # Of a kind whose type does not say its scope: a program confined to namespaces watches it once for each.
        check_scope(resource_info(kind), namespace)
        info = await self.mapper.info(kind)
        return Endpoint(info, self.scope_for(namespace) if info.namespaced else "")

    def scope_for(self, namespace: str | None) -> str:
        """The namespace a list or watch is confined to; empty for all."""
        self._stay(namespace)
        return namespace or self.scope

    def namespace_of(self, obj: Object, info: ResourceInfo) -> str:
        """The namespace of an object, which its owners are in; none for cluster-scoped kinds."""
        namespace, metadata = "", obj.metadata
        if info.namespaced:
            self._stay(metadata.namespace)
            namespace = metadata.namespace or self.scope or self._assumed_namespace(obj)
        if metadata.owner_references:
            check_owners(obj, namespace)
        return namespace

    def _assumed_namespace(self, obj: Object) -> str:
        """That of the client, as with kubectl, for an object that names none; but an owner's is not known."""
        if self.names_namespaces:
            raise ValueError(
                f"{obj.kind} {obj.metadata.name or obj.metadata.generate_name} names no namespace: set "
                f'metadata.namespace, or use client.in_namespace("{self.namespace}") where the namespace of this '
                "program is meant"
            )
        if obj.metadata.owner_references:
            raise ValueError(
                f"{obj.kind} {obj.metadata.name or obj.metadata.generate_name} has an owner and no namespace: set "
                "metadata.namespace to that of the owner, as the garbage collector deletes what is in another"
            )
        return self.namespace

    def _stay(self, namespace: str | None) -> None:
        if self.scope and namespace and namespace != self.scope:
            raise ValueError(f'this client stays in the namespace "{self.scope}" and does not go to "{namespace}"')


def _key_of(info: ResourceInfo, name: Named | Object) -> ObjectKey:
    if isinstance(name, Object):
        return name.key
    try:
        return ObjectKey(name.namespace, name.name)
    except AttributeError:
        check_name(info, name, None)
        raise
