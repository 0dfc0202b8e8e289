"""Finds the type of every part of an expression and the overloads that fit, and reports what does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubewright.controlplane.embedded.cel.environment import RULES, TYPES, Environment
from kubewright.controlplane.embedded.cel.escaping import RESERVED
from kubewright.controlplane.embedded.cel.library.lists import COMPARABLE
from kubewright.controlplane.embedded.cel.library.overload import Overload
from kubewright.controlplane.embedded.cel.parser import qualified_name
from kubewright.controlplane.embedded.cel.source import Issue
from kubewright.controlplane.embedded.cel.syntax import (
    Comprehension,
    FunctionCall,
    Ident,
    ListLiteral,
    Literal_,
    MapLiteral,
    MessageLiteral,
    Node,
    OptionalMap,
    Select,
    SortBy,
    children,
)
from kubewright.controlplane.embedded.cel.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    CelType,
    Substitution,
    is_dynamic,
    list_of,
    map_of,
    most_general,
    optional_of,
    signature,
    type_of_type,
    unwrapped_optional,
)


class Checker:
    """Checks one expression; afterwards `issues` has what is wrong, and every node its type."""

    def __init__(self, variables: Mapping[str, CelType], environment: Environment = RULES) -> None:
        self.issues: list[Issue] = []
        self._functions = environment.functions
        self._message_type = environment.message_type
        self._scopes: list[Mapping[str, CelType]] = [variables]
        self._types = Substitution()

    def run(self, node: Node) -> CelType:
        """The type of the whole expression."""
        self._check(node)
        self._settle(node)
        return node.type

    def _settle(self, node: Node) -> None:
        node.type = self._types.solved(node.type, parameters_to_dyn=True)
        for child in children(node):
            self._settle(child)

    def _report(self, at: int, message: str) -> None:
        self.issues.append(Issue(at, message))

    def _check(self, node: Node) -> CelType:
        match node:
            case Literal_():
                pass
            case Ident():
                node.type = self._ident(node)
            case Select():
                node.type = self._types.solved(self._select(node))
            case FunctionCall():
                node.type = self._call(node)
            case ListLiteral():
                node.type = list_of(self._elements(node))
            case MapLiteral():
                node.type = self._entries(node)
            case MessageLiteral():
                node.type = self._message(node)
            case Comprehension():
                node.type = self._types.solved(self._comprehension(node))
            case OptionalMap():
                node.type = self._optional_map(node)
            case SortBy():
                node.type = self._sort_by(node)
        return node.type

    def _undeclared(self, at: int, name: str) -> None:
        self._report(at, f"undeclared reference to '{name}' (in container '')")

    def _found(self, name: str) -> tuple[CelType, CelType | None] | None:
        """The type of what a name stands for, and the type itself when it names one."""
        name = name.removeprefix(".")
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name], None
        named = TYPES.get(name)
        return None if named is None else (type_of_type(named), named)

    def _ident(self, node: Ident) -> CelType:
        found = self._found(node.name)
        if found is None:
            self._undeclared(node.at, node.name)
            return ERROR
        node.type_value = found[1]
        return found[0]

    def _select(self, node: Select) -> CelType:
        name = qualified_name(node)
        if name is not None and name in TYPES:
            node.type_value = TYPES[name]
            return type_of_type(node.type_value)
        if name is not None and name in self._scopes[0]:
            node.variable = name
            return self._scopes[0][name]
        operand = self._types.solved(self._check(node.operand))
        target, is_optional = unwrapped_optional(operand)
        result = self._field(node, target)
        if node.test:
            return BOOL
        return optional_of(result) if is_optional or node.optional else result

    def _field(self, node: Select, target: CelType) -> CelType:
        match target.kind:
            case "map":
                return target.parameters[1]
            case "struct":
                if target.fields is None:
                    self._report(node.at, f"unexpected failed resolution of '{target}'")
                    return ERROR
                if node.field in RESERVED and f"__{node.field}__" in target.fields:
                    node.field = f"__{node.field}__"
                if node.field not in target.fields:
                    self._report(node.at, f"undefined field '{node.field}'")
                    return ERROR
                return target.fields[node.field]
            case "parameter":
                self._types.assign([(DYN, target)])
            case "dyn" | "error":
                pass
            case _:
                self._report(node.at, f"type '{target}' does not support field selection")
        return DYN

    def _call(self, node: FunctionCall) -> CelType:
        types = [self._check(argument) for argument in node.arguments]
        if node.target is None:
            overloads = self._functions.get(node.function.removeprefix("."))
            if overloads is None:
                self._undeclared(node.at, node.function)
                return ERROR
            return self._resolved(node, overloads, types)
        prefix = qualified_name(node.target)
        qualified = f"{prefix}.{node.function}".removeprefix(".")
        if prefix is not None and qualified in self._functions:
            node.function, node.target = qualified, None
            return self._resolved(node, self._functions[qualified], types)
        types.insert(0, self._check(node.target))
        overloads = self._functions.get(node.function)
        if overloads is None:
            self._undeclared(node.at, node.function)
            return ERROR
        return self._resolved(node, overloads, types)

    def _resolved(self, node: FunctionCall, overloads: Sequence[Overload], types: list[CelType]) -> CelType:
        if node.function in ("_&&_", "_||_"):
            return self._logical(node, types)
        found: list[Overload] = []
        result: CelType | None = None
        for overload in overloads:
            if overload.member is (node.target is None) or len(overload.parameters) != len(types):
                continue
            wanted = self._types.instantiated([overload.result, *overload.parameters], overload.type_names)
            if self._types.assign(list(zip(types, wanted[1:], strict=True))):
                found.append(overload)
                outcome = self._types.solved(wanted[0])
                result = outcome if result is None or result == outcome else DYN
        node.overloads = found
        if result is None:
            self._no_overload(node.at, node.function, types, member=node.target is not None)
            return ERROR
        return result

    def _no_overload(self, at: int, function: str, types: Sequence[CelType], *, member: bool = False) -> None:
        shown = signature([self._types.solved(type_, parameters_to_dyn=True) for type_ in types], member=member)
        self._report(at, f"found no matching overload for '{function}' applied to '{shown}'")

    def _logical(self, node: FunctionCall, types: Sequence[CelType]) -> CelType:
        fits = [self._is_bool(argument, type_) for argument, type_ in zip(node.arguments, types, strict=True)]
        return BOOL if all(fits) else ERROR

    def _is_bool(self, node: Node, type_: CelType) -> bool:
        if self._types.assign([(type_, BOOL)]):
            return True
        self._report(node.at, f"expected type 'bool' but found '{type_}'")
        return False

    def _elements(self, node: ListLiteral) -> CelType:
        joined: CelType | None = None
        for index, element in enumerate(node.elements):
            type_ = self._unwrapped(element, self._check(element), optional=index in node.optional)
            joined = self._joined(joined, type_)
        return joined or self._types.new_parameter()

    def _unwrapped(self, node: Node, type_: CelType, *, optional: bool) -> CelType:
        if not optional:
            return type_
        inner, is_optional = unwrapped_optional(type_)
        if not is_optional and type_ != DYN:
            self._report(node.at, f"expected type '{optional_of(type_)}' but found '{type_}'")
        return inner

    def _joined(self, before: CelType | None, type_: CelType) -> CelType:
        if before is None:
            return type_
        # Elements of different types are refused later, and only outside of the arguments of a format.
        return most_general(before, type_) if self._types.assign([(before, type_)]) else DYN

    def _entries(self, node: MapLiteral) -> CelType:
        keys: CelType | None = None
        values: CelType | None = None
        for entry in node.entries:
            keys = self._joined(keys, self._check(entry.key))
            type_ = self._unwrapped(entry.value, self._check(entry.value), optional=entry.optional)
            values = self._joined(values, type_)
        return map_of(keys or self._types.new_parameter(), values or self._types.new_parameter())

    def _message(self, node: MessageLiteral) -> CelType:
        made = self._message_type(node.name.removeprefix("."))
        if made is None or made.fields is None:
            self._undeclared(node.at, node.name)
            return ERROR
        for field in node.fields:
            given = self._unwrapped(field.value, self._check(field.value), optional=field.optional)
            if field.name not in made.fields:
                self._report(field.at, f"undefined field '{field.name}'")
            elif not self._types.assign([(given, made.fields[field.name])]):
                expected = f"expected type of field '{field.name}' is '{made.fields[field.name]}'"
                self._report(field.at, f"{expected} but provided type is '{given}'")
        return made

    def _variables(self, names: Sequence[str], range_: Node, at: int) -> Mapping[str, CelType]:
        type_ = self._types.solved(self._check(range_))
        two = len(names) == 2
        match type_.kind:
            case "list":
                types = [INT, type_.parameters[0]] if two else [type_.parameters[0]]
            case "map":
                types = list(type_.parameters) if two else [type_.parameters[0]]
            case "dyn" | "error" | "parameter":
                self._types.assign([(DYN, type_)])
                types = [DYN, DYN]
            case _:
                allowed = "(must be list, map, or dynamic)"
                self._report(at, f"expression of type '{type_}' cannot be range of a comprehension {allowed}")
                types = [ERROR, ERROR]
        return dict(zip(names, types, strict=False))

    def _comprehension(self, node: Comprehension) -> CelType:
        self._scopes.append(self._variables(node.variables, node.range, node.range.at))
        condition = self._check(node.condition) if node.condition is not None else BOOL
        body = self._check(node.body)
        result = self._comprehended(node, condition, body)
        self._scopes.pop()
        return result

    def _comprehended(self, node: Comprehension, condition: CelType, body: CelType) -> CelType:
        match node.macro:
            case "all" | "exists":
                self._is_bool(node.body, body)
                return BOOL
            case "exists_one":
                self._is_condition(node, body, INT)
                return BOOL
            case "map" | "filter" | "transformList":
                result = list_of(body)
            case "transformMap":
                result = map_of(self._scopes[-1][node.variables[0]], body)
            case "transformMapEntry":
                key, value = self._types.new_parameter(), self._types.new_parameter()
                result = map_of(key, value)
                if not self._types.assign([(body, result)]):
                    self._no_overload(node.at, "cel.@mapInsert", [result, body])
        self._is_condition(node, condition, result)
        return result

    def _is_condition(self, node: Comprehension, type_: CelType, result: CelType) -> None:
        if not self._types.assign([(type_, BOOL)]):
            self._no_overload(node.at, "_?_:_", [type_, result, result])

    def _optional_map(self, node: OptionalMap) -> CelType:
        target = self._types.solved(self._check(node.target))
        inner, is_optional = unwrapped_optional(target)
        if not is_optional:
            if not is_dynamic(target):
                self._no_overload(node.at, "hasValue", [target], member=True)
            inner = DYN
        self._scopes.append({node.variable: inner})
        body = self._check(node.body)
        self._scopes.pop()
        if not node.flat:
            return optional_of(body)
        result = optional_of(self._types.new_parameter())
        if not self._types.assign([(body, result)]):
            self._no_overload(node.at, "_?_:_", [BOOL, body, result])
            return ERROR
        return self._types.solved(result)

    def _sort_by(self, node: SortBy) -> CelType:
        self._scopes.append(self._variables([node.variable], node.target, node.at))
        key = self._types.solved(self._check(node.key))
        self._scopes.pop()
        target = self._types.solved(node.target.type)
        if target.kind == "list" and (is_dynamic(key) or key.kind == "parameter" or key in COMPARABLE):
            return target
        if not is_dynamic(target):
            self._no_overload(node.at, "@sortByAssociatedKeys", [target, list_of(key)], member=True)
        return DYN
