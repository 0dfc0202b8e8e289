"""Checks of what is written out in an expression: patterns, durations, timestamps, formats, lists and maps."""

from __future__ import annotations

from collections.abc import Iterator

from kubewright.controlplane.embedded.cel.library.formatting import ALLOWED, FormatError, clauses, refused
from kubewright.controlplane.embedded.cel.library.times import (
    SECOND,
    checked_timestamp,
    parsed_duration,
    parsed_timestamp,
)
from kubewright.controlplane.embedded.cel.source import Issue
from kubewright.controlplane.embedded.cel.syntax import FunctionCall, ListLiteral, Literal_, MapLiteral, Node, children
from kubewright.controlplane.embedded.cel.types import CelType, unwrapped_optional
from kubewright.controlplane.embedded.cel.values import EvaluationError, Timestamp
from kubewright.controlplane.embedded.schema.patterns import go_pattern


def literal_issues(node: Node) -> list[Issue]:
    """What is wrong with the literals of a checked expression."""
    return [*_of_calls(node), *_of_aggregates(node)]


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from _walk(child)


def _of_calls(node: Node) -> Iterator[Issue]:
    for call in _walk(node):
        if not isinstance(call, FunctionCall) or not call.arguments:
            continue
        argument = call.arguments[0]
        if isinstance(argument, Literal_):
            if not _is_valid(call.function, argument.value):
                yield Issue(argument.at, f"invalid {call.function} argument")
        elif call.function == "format" and isinstance(argument, ListLiteral):
            yield from _of_format(call, argument)


def _is_valid(function: str, value: object) -> bool:
    try:
        match function, value:
            case "duration", str():
                parsed_duration(value)
            case "timestamp", str():
                checked_timestamp(parsed_timestamp(value))
            case "timestamp", int():
                checked_timestamp(Timestamp(value * SECOND))
            case "matches", str():
                go_pattern(value)
    except (ValueError, EvaluationError):
        return False
    return True


def _of_format(call: FunctionCall, arguments: ListLiteral) -> Iterator[Issue]:
    if not isinstance(call.target, Literal_) or not isinstance(call.target.value, str):
        return
    used = 0
    try:
        for clause in clauses(call.target.value, len(arguments.elements)):
            if clause.letter:
                used += 1
                wrong = _unfit(arguments.elements[clause.index], clause.letter)
                if wrong is not None:
                    yield Issue(wrong.at, str(refused(clause.letter, wrong.type.runtime_name)))
                    return
    except FormatError as error:
        yield Issue(call.at, str(error))
        return
    if len(arguments.elements) > used:
        count = f"(expected {used}, got {len(arguments.elements)})"
        yield Issue(call.at, f"too many arguments supplied to string.format {count}")


def _unfit(node: Node, letter: str) -> Node | None:
    if node.type.kind != "dyn" and node.type.runtime_name not in ALLOWED[letter][0]:
        return node
    if letter != "s" or not isinstance(node, ListLiteral | MapLiteral):
        return None
    return next((wrong for child in children(node) if (wrong := _unfit(child, letter)) is not None), None)


def _of_aggregates(node: Node) -> Iterator[Issue]:
    # The arguments of a format may be of any types.
    nested = [node.target] if isinstance(node, FunctionCall) and node.function == "format" else children(node)
    match node:
        case ListLiteral():
            types = [
                unwrapped_optional(element.type)[0] if position in node.optional else element.type
                for position, element in enumerate(node.elements)
            ]
            for element, type_ in zip(node.elements, types, strict=True):
                if not _equivalent(types[0], type_):
                    yield _mismatch(element, types[0], type_)
                    break
        case MapLiteral() if node.entries:
            first = node.entries[0]
            for entry in node.entries[1:]:
                if not _equivalent(first.key.type, entry.key.type):
                    yield _mismatch(entry.key, first.key.type, entry.key.type)
                value = unwrapped_optional(entry.value.type)[0] if entry.optional else entry.value.type
                wanted = unwrapped_optional(first.value.type)[0] if first.optional else first.value.type
                if not _equivalent(wanted, value):
                    yield _mismatch(entry.value, wanted, value)
    for child in nested:
        if child is not None:
            yield from _of_aggregates(child)


def _equivalent(left: CelType, right: CelType) -> bool:
    if left.kind == "type" and right.kind == "type":
        return True
    return (
        left.kind == right.kind and left.name == right.name and all(map(_equivalent, left.parameters, right.parameters))
    )


def _mismatch(node: Node, wanted: CelType, found: CelType) -> Issue:
    return Issue(node.at, f"expected type '{wanted}' but found '{found}'")
