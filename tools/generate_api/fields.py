"""One field of a structure as a line of Python: its type, its markers, its default."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from tools.generate_api.documents import Schema
from tools.generate_api.kinds import Kinds
from tools.generate_api.modules import Module

from kubewright.api.naming import json_name, python_name

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_SCALARS = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ("quantity", "Quantity"),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ("int_or_string", "IntOrString"),
    f"{_META}Time": ("time", "Time"),
    f"{_META}MicroTime": ("time", "MicroTime"),
}
# Their schemas are empty: OpenAPI has no way to describe them.
_UNIONS = {
    "JSONSchemaPropsOrArray": "JSONSchemaProps | list[JSONSchemaProps]",
    "JSONSchemaPropsOrBool": "JSONSchemaProps | bool",
    "JSONSchemaPropsOrStringArray": "JSONSchemaProps | list[str]",
}
_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_FORMATS = {"byte": "Base64", "int32": "Int32", "int64": "Int64", "double": "Double"}
_EMPTY = {"[]": "list", "{}": "dict"}
_ZEROS = {"string": '""', "integer": "0", "number": "0.0", "boolean": "False"}


class Imports:
    """What a module turns out to need, by the module it comes from."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}

    def use(self, module: str, name: str, alias: str = "") -> str:
        """Import `name` and return how it is called here."""
        self._names.setdefault(module, set()).add(f"{name} as {alias}" if alias else name)
        return alias or name

    def ours(self, module: str, name: str) -> str:
        """Import `name` from one of kubewright.api's modules."""
        return self.use(f"kubewright.api.{module}", name)

    def lines(self) -> list[str]:
        """The import statements, in the order that linters expect."""
        ours = sorted(module for module in self._names if module.startswith("kubewright."))
        blocks = [["from __future__ import annotations"]]
        blocks.append(["import builtins"] if "builtins" in self._names else [])
        blocks[-1] += [self._line("typing")] if "typing" in self._names else []
        blocks.append([self._line("msgspec")] if "msgspec" in self._names else [])
        blocks.append([self._line(module) for module in ours])
        return [line for block in blocks if block for line in (*block, "")]

    def _line(self, module: str) -> str:
        return f"from {module} import {', '.join(sorted(self._names[module], key=_import_order))}"


class Fields:
    """Writes the fields of one module's structures. `modules` has the module of each structure."""

    def __init__(self, kinds: Kinds, modules: Mapping[str, Module], own: Module) -> None:
        self._kinds = kinds
        self._modules = modules
        self._own = own
        self._shadowed: frozenset[str] = frozenset()
        self.imports = Imports()

    def lines(self, structure: str, leave_out: Iterable[str] = ()) -> list[str]:
        """The fields of a structure, in the order of its schema."""
        properties = self._kinds.schemas[structure].properties
        # A class that has a field called `bool` cannot use `bool` in the types of its fields.
        self._shadowed = frozenset(python_name(name) for name in properties) & frozenset(_builtins())
        return [self._line(structure, name) for name in properties if name not in leave_out]

    def factory_of(self, structure: str, name: str) -> str:
        """The structure that makes the default of a field held by value; empty when it has no such default."""
        schema = self._kinds.schemas[structure].properties[name]
        if not self._kinds.is_by_value(schema) or self._kinds.must_be_given(structure, name):
            return ""
        return schema.target if self._kinds.can_be_empty(schema.target) else ""

    def _line(self, structure: str, name: str) -> str:
        schema = self._kinds.schemas[structure].properties[name]
        default = self._default(structure, name)
        annotation = self._type(schema)
        if default == "None":
            annotation = f"{annotation} | None"
        python = python_name(name)
        assignment = self._assignment(default, "" if json_name(python) == name else name)
        return f"{python}: {self._annotated(annotation, schema)}{assignment}"

    def _default(self, structure: str, name: str) -> str:
        """None, [], {}, or a callable that makes the default; empty when the field must be given."""
        schema = self._kinds.schemas[structure].properties[name]
        if self._kinds.must_be_given(structure, name):
            return ""
        if factory := self.factory_of(structure, name):
            return self._reference(factory)
        if schema.type == "array":
            return "[]"
        if schema.type == "object" and schema.additional_properties is not None:
            return "{}"
        if name in self._kinds.schemas[structure].required and schema.type in _ZEROS and not schema.enum:
            return f"{self.imports.ours('model', 'Default')}({_ZEROS[schema.type]})"
        return "None"

    def _assignment(self, default: str, name: str) -> str:
        if not name and default in ("", "None", "[]", "{}"):
            return f" = {default}" if default else ""
        arguments = [f"name={json.dumps(name)}"] if name else []
        if default == "None":
            arguments.append("default=None")
        elif default:
            arguments.append(f"default_factory={_EMPTY.get(default, default)}")
        return f" = {self.imports.use('msgspec', 'field')}({', '.join(arguments)})"

    def _type(self, schema: Schema) -> str:
        if schema.target:
            return self._reference(schema.target)
        if schema.type == "array" and schema.items is not None:
            return f"{self._builtin('list')}[{self._annotated(self._type(schema.items), schema.items)}]"
        if schema.type == "object":
            values = schema.additional_properties
            annotation = self._annotated(self._type(values), values) if values else self._json()
            return f"{self._builtin('dict')}[{self._builtin('str')}, {annotation}]"
        if schema.enum:
            literal = f"{self.imports.use('typing', 'Literal')}[{', '.join(map(json.dumps, schema.enum))}]"
            return f"{self.imports.ours('markers', 'Choice')}[{literal}]"
        if schema.format:
            return self.imports.ours("markers", _FORMATS[schema.format])
        return self._builtin(_PLAIN[schema.type])

    def _annotated(self, annotation: str, schema: Schema) -> str:
        """The type with its markers. List items and map values carry their own."""
        markers = self._markers(schema)
        return (
            f"{self.imports.use('typing', 'Annotated')}[{', '.join([annotation, *markers])}]" if markers else annotation
        )

    def _reference(self, target: str) -> str:
        short = target.rpartition(".")[2]
        if target in _SCALARS:
            return self.imports.ours(*_SCALARS[target])
        if short in _UNIONS:
            return _UNIONS[short]
        if not self._kinds.is_structure(target):
            free_form = self._kinds.schemas[target].type == "object"
            return f"{self._builtin('dict')}[{self._builtin('str')}, {self._json()}]" if free_form else self._json()
        if target.startswith(_META):
            return self.imports.ours("meta", short)
        module = self._modules[target]
        if module == self._own:
            return short
        # Not the structure itself: types are read when they are needed, and its module is imported only then.
        package, version, _ = module
        return f"{self.imports.use(f'kubewright.api.{package}', version, f'{package}_{version}')}.{short}"

    def _markers(self, schema: Schema) -> list[str]:
        markers = []
        if schema.list_type == "map":
            markers.append(self._marker("ListMap", *map(json.dumps, schema.list_map_keys)))
        elif schema.list_type == "set":
            markers.append(self._marker("ListSet"))
        elif "atomic" in (schema.list_type if schema.type == "array" else "", self._map_type(schema)):
            markers.append(self._marker("Atomic"))
        strategies = schema.patch_strategy.split(",")
        if "merge" in strategies or "retainKeys" in strategies:
            arguments = [json.dumps(schema.patch_merge_key)] if schema.patch_merge_key else []
            arguments += ["retain_keys=True"] if "retainKeys" in strategies else []
            markers.append(self._marker("StrategicMerge", *arguments))
        return markers

    def _map_type(self, schema: Schema) -> str:
        """A field's own map type or else that of the structure it holds."""
        return schema.map_type or (self._kinds.schemas[schema.target].map_type if schema.target else "")

    def _marker(self, name: str, *arguments: str) -> str:
        return f"{self.imports.ours('markers', name)}({', '.join(arguments)})"

    def _json(self) -> str:
        return self.imports.ours("markers", "JSONValue")

    def _builtin(self, name: str) -> str:
        if name not in self._shadowed:
            return name
        self.imports.use("builtins", name)
        return f"builtins.{name}"


def _builtins() -> tuple[str, ...]:
    return ("dict", "list", *_PLAIN.values())


def _import_order(name: str) -> tuple[bool, str]:
    """Classes before functions and modules."""
    return name[0].islower(), name
