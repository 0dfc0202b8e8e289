"""Which kinds there are, which structures they are made of, and which fields of those may be left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tools.generate_api.documents import APIResource, Document, Schema, all_schemas

from kubewright.api.kinds import GroupVersionKind

_META = "io.k8s.apimachinery."
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_TIMES = ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime")


@dataclass(frozen=True)
class Kind:
    """A kind and how it is served. `resource` is None for kinds that are only the body of a subresource."""

    gvk: GroupVersionKind
    resource: APIResource | None
    subresources: list[str] = field(default_factory=list)


class Kinds:
    """The kinds of all documents by the name of their schema, and every structure they reach.

    A kind has a schema with metadata: lists, options and the types of `meta` are none.
    """

    def __init__(self, documents: list[Document]) -> None:
        self.schemas: Mapping[str, Schema] = all_schemas(documents)
        self.by_schema = _kinds(documents, self.schemas)
        self.structures = sorted(_reachable(self.by_schema, self.schemas))
        self._zeroed = self._find_zeroed()
        self._can_be_empty: dict[str, bool] = {}

    def is_structure(self, name: str) -> bool:
        """True for schemas with fields of their own; false for scalars and free-form objects."""
        return bool(self.schemas[name].properties)

    def parts(self, name: str) -> set[str]:
        """The structure and all that it is made of."""
        return _reachable([name], self.schemas)

    def is_by_value(self, schema: Schema) -> bool:
        """True for structures that Go holds by value: never nil there, and so never None here where that can be."""
        return bool(schema.target) and self.is_structure(schema.target) and schema.default == {}

    def is_zeroed(self, name: str) -> bool:
        """True for statuses and what only they hold by value: they can be made empty, whatever is required of them."""
        return name in self._zeroed

    def can_be_empty(self, name: str) -> bool:
        """True when the structure can be made without giving any field."""
        if name not in self._can_be_empty:
            self._can_be_empty[name] = True  # what contains itself does so through fields that may be absent
            schema = self.schemas[name]
            self._can_be_empty[name] = not any(self.must_be_given(name, field) for field in schema.properties)
        return self._can_be_empty[name]

    def must_be_given(self, name: str, field: str) -> bool:
        """True when a structure cannot be made without this field."""
        schema = self.schemas[name]
        if self.is_zeroed(name):
            return False
        held = schema.properties[field]
        if held.target in _TIMES:
            return False  # Go writes a zero time as null, also where a time is required.
        by_value = held.target if self.is_by_value(held) else ""
        if field == "spec" and by_value:
            return not self.can_be_empty(by_value)
        if field == "template" and by_value and not self.can_be_empty(by_value):
            # Optional on paper only: validation refuses a pod template without containers.
            return True
        return field in schema.required and not (name in self.by_schema and field == "metadata")

    def _find_zeroed(self) -> set[str]:
        holders: dict[str, set[str]] = defaultdict(set)
        held_otherwise: set[str] = set()
        for name in self.structures:
            for property_ in self.schemas[name].properties.values():
                if self.is_by_value(property_):
                    holders[property_.target].add(name)
                else:
                    held_otherwise.update(_targets(property_))
        zeroed: set[str] = set()
        more = {
            self.schemas[name].properties["status"].target
            for name in self.by_schema
            if "status" in self.schemas[name].properties
        }
        while more:
            zeroed |= more
            more = {name for name, by in holders.items() if by <= zeroed} - held_otherwise - zeroed
        return zeroed


def _kinds(documents: list[Document], schemas: Mapping[str, Schema]) -> dict[str, Kind]:
    names = {
        GroupVersionKind(**kind): name
        for name, schema in schemas.items()
        if "metadata" in schema.properties and schema.properties["metadata"].target == _OBJECT_META
        for kind in schema.kinds
    }
    kinds: dict[str, Kind] = {}
    bodies: set[GroupVersionKind] = set()
    for document in documents:
        subresources: dict[str, list[str]] = defaultdict(list)
        for entry in document.resources:
            plural, slash, subresource = entry.name.partition("/")
            if slash:
                subresources[plural].append(subresource)
                bodies.add(_gvk(document, entry))
        for entry in document.resources:
            if "/" not in entry.name:
                gvk = _gvk(document, entry)
                kinds[names[gvk]] = Kind(gvk, entry, sorted(subresources[entry.name]))
    for gvk in bodies:
        if gvk in names and names[gvk] not in kinds:
            kinds[names[gvk]] = Kind(gvk, None)
    return dict(sorted(kinds.items()))


def _gvk(document: Document, entry: APIResource) -> GroupVersionKind:
    own = GroupVersionKind.parse(document.api_version, entry.kind)
    return GroupVersionKind(entry.group, entry.version, entry.kind) if entry.version else own


def _reachable(names: Iterable[str], schemas: Mapping[str, Schema]) -> set[str]:
    """The structures that these are made of, themselves included; those of `meta` are written by hand."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found or name.startswith(_META) or not schemas[name].properties:
            continue
        found.add(name)
        for property_ in schemas[name].properties.values():
            waiting.extend(_targets(property_))
    return found


def _targets(schema: Schema) -> Iterator[str]:
    """The schemas that a field refers to, directly or as its items or values."""
    if schema.target:
        yield schema.target
    for nested in (schema.items, schema.additional_properties):
        if nested is not None:
            yield from _targets(nested)
