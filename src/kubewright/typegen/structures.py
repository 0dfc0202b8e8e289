"""The classes of one kind: a structure for each object in its schema, and the kind itself."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from kubewright.api.naming import default_plural
from kubewright.manifest.schema import Schema
from kubewright.typegen.annotations import Annotations, is_structure, structure_key
from kubewright.typegen.definitions import Definition, Version
from kubewright.typegen.keywords import described, fields, inner, required
from kubewright.typegen.layout import INDENT, Bracket, Expression, assignment, call, literal, statement, subscript, text
from kubewright.typegen.names import Path, class_names, field_names, needs_json_name
from kubewright.typegen.prose import docstring
from kubewright.typegen.values import NoExpression, default_value

_OBJECT_FIELDS = ("apiVersion", "kind", "metadata")


@dataclass(slots=True)
class _Structure:
    """An object in a schema, by the fields that lead to it; those of equal schemas are one."""

    path: Path
    schema: Schema

    def found(self, path: Path, schema: Schema) -> None:
        """It was found at another path as well."""
        if (len(path), path) < (len(self.path), self.path):
            self.path, self.schema = path, schema


class Kind:
    """Writes the classes of one version of a kind. The kind itself is the class `name`."""

    def __init__(
        self,
        definition: Definition,
        version: Version,
        name: str,
        taken: Container[str],
        width: int,
        *,
        storage: bool = True,
    ) -> None:
        self._spec = definition.spec
        self._version = version
        self._name = name
        self._storage = storage
        self._width = width
        self._schema = version.schema.open_api_v3_schema
        self._structures: dict[str, _Structure] = {}
        for field, schema in self._own_fields.items():
            self._collect(schema, (field,))
        self._names = class_names(name, {key: one.path for key, one in self._structures.items()}, taken)
        self._annotations = Annotations(self._names)
        self.classes = [*map(self._class, self._structures), self._kind()]

    @property
    def _own_fields(self) -> dict[str, Schema]:
        return {name: field for name, field in fields(self._schema).items() if name not in _OBJECT_FIELDS}

    @property
    def class_names(self) -> list[str]:
        """The names of all classes, that of the kind last."""
        return [*self._names.values(), self._name]

    @property
    def imports(self) -> set[str]:
        """The names that the classes use and that are not theirs."""
        return self._annotations.used

    def _collect(self, schema: Schema, path: Path) -> None:
        """Find the structures in a schema. Those within another come before it."""
        nested = inner(schema)
        if is_structure(schema):
            for name, field in fields(schema).items():
                self._collect(field, (*path, name))
            self._structures.setdefault(structure_key(schema), _Structure(path, schema)).found(path, schema)
        elif nested is not None and not schema.get("properties"):
            self._collect(nested, path)

    def _class(self, key: str) -> list[str]:
        structure = self._structures[key]
        prose = described(structure.schema) or f"{'.'.join(structure.path)} of {self._name}."
        base = self._annotations.use("Model")
        return [
            *_header(self._names[key], base, self._width),
            *docstring(prose, INDENT, self._width),
            *self._body(fields(structure.schema), required(structure.schema)),
        ]

    def _body(self, own: dict[str, Schema], needed: set[str], *, of_object: bool = False) -> Iterator[str]:
        names = field_names(own, of_object=of_object)
        was_described = True
        for name, field in own.items():
            prose = self._described(field)
            if prose or was_described:
                yield ""
            yield from self._field(names[name], name, field, name in needed)
            yield from prose
            was_described = bool(prose)

    def _field(self, python: str, name: str, schema: Schema, is_required: bool) -> list[str]:
        given, arguments = self._default(schema)
        if schema is self._own_fields.get("status") and self._is_by_value(schema):
            given, arguments = "", {"default_factory": self._annotations.class_of(schema)}
        if given is None and not is_required:
            nullable = bool(schema.get("nullable")) and not _is_any(schema)
            arguments = {"default": self._annotations.use("UNSET") if nullable else "None"}
            absent = self._annotations.use("UnsetType") if nullable else "None"
            annotation = self._annotations.of(schema, absent=absent)
        else:
            annotation = self._annotations.of(schema)
        return assignment(python, annotation, self._value(python, name, arguments), INDENT, self._width)

    def _default(self, schema: Schema) -> tuple[Expression | None, dict[str, Expression]]:
        if schema.get("default") is None:
            return None, {}
        try:
            value = default_value(schema["default"], schema, self._annotations)
        except NoExpression:
            return None, {}
        return value, {"default": value}

    def _value(self, python: str, name: str, arguments: dict[str, Expression]) -> Expression | None:
        """What is assigned to a field."""
        if needs_json_name(python, name):
            return call(self._annotations.use("field"), **{"name": text(name), **arguments})
        if "default_factory" in arguments:
            return call(self._annotations.use("field"), **arguments)
        return arguments.get("default")

    def _described(self, schema: Schema) -> list[str]:
        """The docstring of a field, unless it is that of its class."""
        if is_structure(schema) and self._structures[structure_key(schema)].schema is schema:
            return []
        return docstring(described(schema), INDENT, self._width)

    def _kind(self) -> list[str]:
        own = self._own_fields
        base: Expression = "Object"
        lines: list[str] = []
        resource = self._as_resource(own.get("spec"), own.get("status"))
        if resource is not None:
            base, lines = resource
            own = {name: field for name, field in own.items() if name not in ("spec", "status")}
        else:
            self._annotations.use("Object")
        subresources = ["status"] if self._has_status and "status" in own else []
        return [
            *statement("@", self._decorator(subresources), "", "", self._width),
            *_header(self._name, base, self._width),
            *docstring(described(self._schema) or f"{self._name} of {self._spec.group}.", INDENT, self._width),
            *lines,
            *self._body(own, required(self._schema), of_object=True),
        ]

    @property
    def _has_status(self) -> bool:
        return self._version.subresources.status is not None and "status" in self._own_fields

    def _as_resource(self, spec: Schema | None, status: Schema | None) -> tuple[Expression, list[str]] | None:
        """`Resource[Spec, Status]`, and the lines of a spec that may be absent; None where that says something else.

        A `Resource` has a status endpoint if it has a status, and an empty status where none is.
        """
        if spec is None or not _is_bare_structure(spec) or (status is None) == self._has_status:
            return None
        if status is not None and not self._is_by_value(status):
            return None
        needed = required(self._schema)
        names = [self._annotations.class_of(spec), self._annotations.class_of(status) if status is not None else "None"]
        own: list[str] = []
        if "default" in spec or "spec" not in needed:
            value = self._absent_spec(spec, names[0])
            if value is None:
                return None
            own = ["", *assignment("spec", names[0], value, INDENT, self._width), *self._described(spec)]
        return subscript(self._annotations.use("Resource"), *names), own

    def _is_by_value(self, status: Schema) -> bool:
        """Whether an absent status is as good as an empty one.

        One whose fields have defaults is not: rendered again, the definition would have the server fill it in.
        """
        is_optional = "status" not in required(self._schema) and "default" not in status
        has_defaults = any("default" in field for field in fields(status).values())
        return is_optional and not has_defaults and _is_bare_structure(status) and not required(status)

    def _absent_spec(self, spec: Schema, name: str) -> Expression | None:
        """The default of a spec; None when it cannot be an empty or a default one."""
        if "default" in spec:
            return self._default(spec)[0]
        return call(self._annotations.use("field"), default_factory=name) if _can_be_empty(spec) else None

    def _decorator(self, subresources: list[str]) -> Bracket:
        names, version = self._spec.names, self._version
        options: dict[str, Expression] = {}
        if names.kind != self._name:
            options["kind"] = text(names.kind)
        if names.plural != default_plural(names.kind):
            options["plural"] = text(names.plural)
        if names.singular and names.singular != names.kind.lower():
            options["singular"] = text(names.singular)
        if self._spec.scope == "Cluster":
            options["namespaced"] = "False"
        for option, values in (("short_names", names.short_names), ("categories", names.categories)):
            if values:
                options[option] = literal(values)
        if subresources:
            options["subresources"] = literal(subresources)
        columns = [*self._columns()]
        if columns:
            options["columns"] = Bracket("[", tuple(columns), "]")
        scale = version.subresources.scale
        if scale is not None:
            paths = [scale.spec_replicas_path, scale.status_replicas_path]
            selector = {"selector": text(scale.label_selector_path)} if scale.label_selector_path else {}
            options["scale"] = call(self._annotations.use("Scale"), *map(text, paths), **selector)
        if version.selectable_fields:
            options["selectable_fields"] = literal([field.json_path for field in version.selectable_fields])
        if not version.served:
            options["served"] = "False"
        if not self._storage:
            options["storage"] = "False"
        if version.deprecated:
            options["deprecated"] = text(version.deprecation_warning)
        return call(self._annotations.use("resource"), text(f"{self._spec.group}/{version.name}"), **options)

    def _columns(self) -> Iterator[Expression]:
        for column in self._version.additional_printer_columns:
            options: dict[str, Expression] = {"type": text(column.type)}
            for option, value in (("description", column.description), ("format", column.format)):
                if value:
                    options[option] = text(value)
            if column.priority:
                options["priority"] = repr(column.priority)
            yield call(self._annotations.use("Column"), text(column.name), text(column.json_path), **options)


def _header(name: str, base: Expression, width: int) -> list[str]:
    return statement("class ", Bracket(f"{name}(", (base,), "):", trailing_comma=False), "", "", width)


def _is_any(schema: Schema) -> bool:
    return "type" not in schema and not schema.get("properties") and not schema.get("x-kubernetes-int-or-string")


def _is_bare_structure(schema: Schema) -> bool:
    """Whether the class of a structure expresses all of its schema."""
    said = {"type", "properties", "required", "description", "title", "default"}
    return is_structure(schema) and {name for name in schema if schema[name] not in (False, None)} <= said


def _can_be_empty(schema: Schema) -> bool:
    return not any("default" not in fields(schema).get(name, {}) for name in required(schema))
