"""Which entries a read or a watch is about: selectors evaluated here, as the server evaluates them there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from kubewright.api.kinds import GroupVersionKind
from kubewright.cache.entry import Entry
from kubewright.cache.index import field_reader
from kubewright.client.selectors import Fields, Labels, field_selector, label_selector

Matches: TypeAlias = Callable[[Entry], bool]
_LabelTest: TypeAlias = Callable[[Mapping[str, str]], bool]

# Compiled when first used, and kept by `re`: most operators watch all there is.
_REQUIREMENT = (
    r"\s*(?:(?P<absent>!)\s*)?(?P<name>[-A-Za-z0-9_./]+)\s*"
    r"(?:(?P<operator>==|=|!=|>|<)\s*(?P<value>[-A-Za-z0-9_.]*)|(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?\s*(?:,|$)"
)
_FIELD = r"(?P<path>[^=!,\\]+)(?P<operator>==|=|!=)(?P<value>(?:\\.|[^,\\])*)(?:,|$)"


def matcher(
    labels: Labels | None = None, fields: Fields | None = None, gvk: GroupVersionKind | None = None
) -> Matches | None:
    """A test for both selectors; None when there is nothing to test. Some kinds name fields in their own way."""
    tests = [*_label_tests(label_selector(labels) if labels is not None else "")]
    reads = [*_field_tests(field_selector(fields) if fields is not None else "", gvk)]
    if not tests and not reads:
        return None

    def matches(entry: Entry) -> bool:
        if tests:
            own = entry.labels
            if not all(test(own) for test in tests):
                return False
        return all(read(entry) for read in reads)

    return matches


def simple_fields(fields: Fields) -> dict[str, str]:
    """The fields a selector wants to be equal to something; those an index can answer."""
    return {path: value for path, operator, value in _field_requirements(field_selector(fields)) if operator != "!="}


def _label_tests(selector: str) -> list[_LabelTest]:
    tests: list[_LabelTest] = []
    position = 0
    while position < len(selector):
        found = re.compile(_REQUIREMENT).match(selector, position)
        if found is None or (found["absent"] and (found["operator"] or found["set"])):
            raise ValueError(
                f'"{selector}" is not a label selector, from "{selector[position:]}" on: expected requirements such as '
                "app=web, tier in (front,back), !canary"
            )
        tests.append(_label_test(found))
        position = found.end()
    return tests


def _label_test(found: re.Match[str]) -> _LabelTest:
    name, value = found["name"], found["value"]
    if found["absent"]:
        return lambda labels: name not in labels
    match found["operator"] or found["set"]:
        case "=" | "==":
            return lambda labels: labels.get(name) == value
        case "!=":
            return lambda labels: labels.get(name) != value
        case "in":
            values = _values(found)
            return lambda labels: labels.get(name) in values
        case "notin":
            values = _values(found)
            return lambda labels: labels.get(name) not in values
        case ">" | "<" as operator:
            return lambda labels: _compares(labels.get(name), operator, int(value))
        case _:
            return lambda labels: name in labels


def _values(found: re.Match[str]) -> frozenset[str]:
    return frozenset(value.strip() for value in found["values"].split(","))


def _compares(label: str | None, operator: str, bound: int) -> bool:
    try:
        number = int(label or "")
    except ValueError:
        return False
    return number > bound if operator == ">" else number < bound


def _field_tests(selector: str, gvk: GroupVersionKind | None) -> list[Matches]:
    return [_field_test(*requirement, gvk) for requirement in _field_requirements(selector)]


def _field_test(path: str, operator: str, value: str, gvk: GroupVersionKind | None) -> Matches:
    read = field_reader(path, gvk)
    if operator == "!=":
        return lambda entry: read(entry) != value
    return lambda entry: read(entry) == value


def _field_requirements(selector: str) -> list[tuple[str, str, str]]:
    requirements: list[tuple[str, str, str]] = []
    position = 0
    while position < len(selector):
        found = re.compile(_FIELD).match(selector, position)
        if found is None:
            raise ValueError(
                f'"{selector}" is not a field selector, from "{selector[position:]}" on: expected something like '
                "spec.nodeName=node-1,status.phase!=Failed"
            )
        requirements.append((found["path"].strip(), found["operator"], re.sub(r"\\(.)", r"\1", found["value"])))
        position = found.end()
    return requirements
