"""The classes of one kind: a structure for each object in its schema, and the kind itself."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from kubewright.api.markers import JSONValue, Rule
from kubewright.api.naming import default_plural
from kubewright.manifest.constraints import EXTRA_KEYWORDS
from kubewright.manifest.keywords import (
    OBJECT_FIELDS,
    PROSE,
    RULES,
    Schema,
    described,
    fields,
    inner,
    is_said,
    required,
    rules,
)
from kubewright.manifest.rules import removal_rule
from kubewright.typegen.annotations import IMMUTABLE, Annotations, is_nullable, is_structure, structure_key
from kubewright.typegen.canonical import canonical
from kubewright.typegen.definitions import APPROVED, DefinedVersion, Definition
from kubewright.typegen.layout import INDENT, Bracket, Expression, assignment, call, literal, statement, subscript, text
from kubewright.typegen.names import Path, class_names, field_names, needs_json_name
from kubewright.typegen.prose import docstring
from kubewright.typegen.unions import members_of
from kubewright.typegen.values import NoExpression, default_value


@dataclass(slots=True)
class _Structure:
    """An object in a schema, by the fields that lead to it; those of equal schemas are one."""

    path: Path
    schema: Schema
    uses: list[Schema]

    def found(self, path: Path, schema: Schema) -> None:
        """It was found at another path as well."""
        self.uses.append(schema)
        if (len(path), path) < (len(self.path), self.path):
            self.path, self.schema = path, schema

    @property
    def description(self) -> str:
        """The docstring of its class. Where one use is not described, each other describes itself."""
        return described(self.schema) if all(map(described, self.uses)) else ""


class Kind:
    """Writes the classes of one version of a kind. The kind itself is the class `name`."""

    def __init__(
        self,
        definition: Definition,
        version: DefinedVersion,
        name: str,
        taken: Container[str],
        width: int,
        *,
        storage: bool = True,
    ) -> None:
        self._definition = definition
        self._spec = definition.spec
        self._version = version
        self._name = name
        self._storage = storage
        self._width = width
        self._schema = version.schema.open_api_v3_schema
        self._own_fields = {name: field for name, field in fields(self._schema).items() if name not in OBJECT_FIELDS}
        self._structures: dict[str, _Structure] = {}
        self._tag_fields: dict[str, str] = {}
        for field, schema in self._own_fields.items():
            self._collect(schema, (field,))
        self._names = class_names(name, {key: one.path for key, one in self._structures.items()}, taken)
        descriptions = {key: one.description for key, one in self._structures.items()}
        self._annotations = Annotations(self._names, descriptions, self._tag_fields)
        self.classes = [*map(self._class, self._structures), self._kind()]

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
        members = members_of(schema)
        if members is not None:
            for tag, member in members.schemas.items():
                self._tag_fields[structure_key(member)] = members.tag_field
                self._collect(member, (*path, tag))
        elif is_structure(schema):
            for name, field in fields(schema).items():
                self._collect(field, (*path, name))
            self._structures.setdefault(structure_key(schema), _Structure(path, schema, [])).found(path, schema)
        elif nested is not None and not schema.get("properties"):
            self._collect(nested, path)

    def _class(self, key: str) -> list[str]:
        structure = self._structures[key]
        own, needed = fields(structure.schema), required(structure.schema)
        immutable, own_rules = _immutable(structure.schema)
        options = self._tag(own, self._tag_fields.get(key, ""))
        if own_rules:
            options["rules"] = self._annotations.rules(own_rules)
        header = call(self._names[key], self._annotations.use("Model"), **options)
        return self._statement(
            statement("class ", header, ":", "", self._width),
            structure.description,
            self._body(own, needed, field_names(own), immutable),
        )

    def _tag(self, own: dict[str, Schema], tag_field: str) -> dict[str, Expression]:
        """The options of a class that is a member of a union. Its tag is no field of it."""
        if not tag_field:
            return {}
        options: dict[str, Expression] = {"tag": text(str(own.pop(tag_field)["default"]))}
        return options if tag_field == "type" else {**options, "tag_field": text(tag_field)}

    def _statement(self, header: list[str], description: str, fields: list[list[str]]) -> list[str]:
        """A class: its header, its docstring and its fields, with blank lines around those that are described."""
        prose = docstring(description, INDENT, self._width)
        lines = [*header, *prose]
        was_described = bool(prose)
        for number, field in enumerate(fields):
            is_described = field[-1].endswith('"""')
            lines += [""] * (was_described or (is_described and number > 0)) + field
            was_described = is_described
        return lines if prose or fields else [*lines, f"{INDENT}pass"]

    def _body(
        self, own: dict[str, Schema], needed: set[str], names: dict[str, str], immutable: Container[str] = ()
    ) -> list[list[str]]:
        return [
            self._field(names[name], name, field, name in needed, is_immutable=name in immutable)
            for name, field in own.items()
        ]

    def _field(
        self, python: str, name: str, schema: Schema, is_required: bool, *, is_immutable: bool = False
    ) -> list[str]:
        """The lines of a field, its docstring included."""
        default, extra = self._default(schema)
        arguments: dict[str, Expression] = {} if default is None else {"default": default}
        absent: Expression | None = None
        if schema is self._own_fields.get("status") and self._is_by_value(schema):
            arguments, extra = {"default_factory": self._annotations.class_of(schema)}, {}
        elif default is None and (extra or not is_required):
            arguments = {"default": self._annotations.use("UNSET") if is_nullable(schema) else "None"}
            absent = self._annotations.use("UnsetType") if is_nullable(schema) else "None"
        annotation = self._annotations.of(schema, absent=absent, immutable=is_immutable, extra=extra)
        return self._assignment(python, name, annotation, arguments, schema)

    def _assignment(
        self, python: str, name: str, annotation: Expression, arguments: dict[str, Expression], schema: Schema
    ) -> list[str]:
        value = self._value(python, name, arguments)
        prose = docstring(self._annotations.description(schema), INDENT, self._width)
        return [*assignment(python, annotation, value, INDENT, self._width), *prose]

    def _default(self, schema: Schema) -> tuple[Expression | None, dict[str, JSONValue]]:
        """The default in Python, None without one; and what the schema says besides: a default of the server alone."""
        if schema.get("default") is None:
            return None, {}
        try:
            return default_value(schema["default"], schema, self._annotations), {}
        except NoExpression:
            return None, {"default": schema["default"]}

    def _value(self, python: str, name: str, arguments: dict[str, Expression]) -> Expression | None:
        """What is assigned to a field."""
        if needs_json_name(python, name):
            return call(self._annotations.use("field"), **{"name": text(name), **arguments})
        if "default_factory" in arguments:
            return call(self._annotations.use("field"), **arguments)
        return arguments.get("default")

    def _kind(self) -> list[str]:
        own = self._own_fields
        base: Expression = "Object"
        lines: list[list[str]] = []
        resource = self._as_resource(own.get("spec"), own.get("status"))
        subresources = ["status"] if self._version.subresources.status is not None else []
        if resource is not None:
            base, lines = resource
            subresources = []
            own = {name: field for name, field in own.items() if name not in ("spec", "status")}
        else:
            self._annotations.use("Object")
        lines += self._body(own, required(self._schema), field_names(own, of_object=True))
        decorator = statement("@", self._decorator(subresources), "", "", self._width)
        header = statement(
            "class ", Bracket(f"{self._name}(", (base,), "):", trailing_comma=False), "", "", self._width
        )
        return self._statement([*decorator, *header], described(self._schema), lines)

    def _as_resource(self, spec: Schema | None, status: Schema | None) -> tuple[Expression, list[list[str]]] | None:
        """`Resource[Spec, Status]`, and the lines of what differs from it; None where that says something else.

        A `Resource` has a status endpoint if it has a status, and an empty status where none is.
        """
        has_status = self._version.subresources.status is not None
        if spec is None or not is_structure(spec) or is_nullable(spec) or (status is None) == has_status:
            return None
        if status is not None and not self._is_by_value(status):
            return None
        own: list[list[str]] = []
        names: list[Expression] = [self._annotations.type_of(spec), "None"]
        arguments: dict[str, Expression] = {}
        if spec.get("default") is not None:
            default, _ = self._default(spec)
            if default is None:
                return None
            arguments = {"default": default}
        elif "spec" not in required(self._schema):
            if not _can_be_empty(spec):
                return None
            arguments = {"default_factory": names[0]}
        annotation = self._annotations.of(spec)
        if arguments or annotation != names[0] or self._annotations.description(spec):
            own.append(self._assignment("spec", "spec", annotation, arguments, spec))
        if status is not None:
            names[1] = self._annotations.class_of(status)
            annotation = self._annotations.of(status)
            if annotation != names[1] or self._annotations.description(status):
                own.append(self._assignment("status", "status", annotation, {"default_factory": names[1]}, status))
        return subscript(self._annotations.use("Resource"), *names), own

    def _is_by_value(self, status: Schema) -> bool:
        """Whether an absent status is as good as an empty one.

        One whose fields have defaults is filled in by the server, as a definition says that is made of such a class.
        """
        if "status" in required(self._schema) or not is_structure(status) or is_nullable(status) or required(status):
            return False
        form = canonical({keyword: value for keyword, value in status.items() if keyword != "default"})
        has_defaults = any("default" in field for field in fields(form).values())
        filled = canonical({**form, "default": {}})["default"] if has_defaults else None
        return canonical(status).get("default") == filled

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
            if all(column.name != "Age" for column in version.additional_printer_columns):
                options["age_column"] = "False"
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
        if rules(self._schema):
            options["rules"] = self._annotations.rules(rules(self._schema))
        extra = self._extra()
        if extra:
            options["extra_json_schema"] = literal(extra)
        approved = self._definition.approved
        if approved:
            options["definition_annotations"] = literal({APPROVED: approved})
        options["external"] = "True"
        return call(self._annotations.use("resource"), text(f"{self._spec.group}/{version.name}"), **options)

    def _extra(self) -> Schema:
        """What the schema of the whole object says besides its fields and rules."""
        extra: Schema = {
            keyword: value
            for keyword, value in self._schema.items()
            if keyword in EXTRA_KEYWORDS - {"description", RULES} and is_said(keyword, value)
        }
        restricted = {
            name: {keyword: value for keyword, value in field.items() if keyword not in PROSE}
            for name, field in fields(self._schema).items()
            if name in OBJECT_FIELDS and field.keys() - PROSE - {"type"}
        }
        return {**extra, "properties": {**restricted}} if restricted else extra

    def _columns(self) -> Iterator[Expression]:
        for column in self._version.additional_printer_columns:
            options: dict[str, Expression] = {"type": text(column.type)}
            for option, value in (("description", column.description), ("format", column.format)):
                if value:
                    options[option] = text(value)
            if column.priority:
                options["priority"] = repr(column.priority)
            yield call(self._annotations.use("Column"), text(column.name), text(column.json_path), **options)


def _immutable(schema: Schema) -> tuple[set[str], list[Schema]]:
    """The fields of a structure that are `Immutable()`, and the rules of the structure that these do not give."""
    own, needed = rules(schema), required(schema)
    marked = {name: field for name, field in fields(schema).items() if IMMUTABLE in rules(field)}
    removable = [name for name, field in marked.items() if name not in needed and field.get("default") is None]
    removals = [_rendered(removal_rule(name)) for name in removable]
    if removals and own[-len(removals) :] != removals:
        return {*marked} - {*removable}, own
    return {*marked}, own[: len(own) - len(removals)]


def _rendered(rule: Rule) -> Schema:
    return {"rule": rule.rule, "message": rule.message}


def _can_be_empty(schema: Schema) -> bool:
    return not any("default" not in fields(schema).get(name, {}) for name in required(schema))
