"""Objects of kinds that have no Python type, and the metadata of objects alone."""

from __future__ import annotations

from functools import cache
from typing import cast

from msgspec import field

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONValue
from kubewright.api.naming import default_plural
from kubewright.api.resources import Object, ObjectType, ResourceInfo, resource_info


class Dynamic(Object):
    """An object whose fields are plain JSON: `widget["spec"]["size"]`. Metadata is typed as everywhere.

    `Dynamic.of("example.com/v1", "Widget")` is a type like any other: `await client.get(Widget, "big")`.
    """

    content: dict[str, JSONValue] = field(default_factory=dict)

    @staticmethod
    def of(api_version: str, kind: str, *, plural: str | None = None, namespaced: bool | None = None) -> type[Dynamic]:
        """The type for a kind known only by name. What is not given is read from discovery when first needed."""
        if api_version[:1].isupper():
            raise ValueError(f'Dynamic.of("{api_version}", "{kind}"): write Dynamic.of("{kind}", "{api_version}")')
        return _dynamic(GroupVersionKind.parse(api_version, kind), plural, namespaced)

    def __getitem__(self, name: str) -> JSONValue:
        return self.content[name]

    def __setitem__(self, name: str, value: JSONValue) -> None:
        self.content[name] = value

    def get(self, *path: str | int) -> JSONValue:
        """The value at a path such as `("spec", "ports", 0)`; None when any step of it is absent."""
        value: JSONValue = self.content
        for step in path:
            if isinstance(value, dict) and isinstance(step, str):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
                value = value[step]
            else:
                return None
        return value


class PartialObject(Object):
    """The metadata of an object, without its body: what `metadata_only` types decode to."""


@cache
def metadata_only(cls: type[Object]) -> type[PartialObject]:
    """The view of a kind that requests only metadata from the server: `client.list(metadata_only(Secret))`."""
    info = resource_info(cls)
    view = ObjectType(f"{cls.__name__}Metadata", (PartialObject,), {"__module__": cls.__module__})
    view.__naming__.info = info
    return cast(type[PartialObject], view)


@cache
def _dynamic(gvk: GroupVersionKind, plural: str | None, namespaced: bool | None) -> type[Dynamic]:
    cls = ObjectType(gvk.kind, (Dynamic,), {"__module__": __name__})
    known = plural is not None and namespaced is not None
    cls.__naming__.info = ResourceInfo(
        gvk=gvk,
        plural=plural or default_plural(gvk.kind),
        namespaced=namespaced if known else None,
        singular=gvk.kind.lower(),
        # Nothing is known of subresources: the server decides what it ignores.
    )
    return cast(type[Dynamic], cls)
