"""Label and field selectors, written as Python values.

    labels={"app": "web", "tier": ["front", "back"], "canary": False}    app=web,tier in (front,back),!canary
    fields={"spec.nodeName": "node-1"}                                   spec.nodeName=node-1

A string is sent as it is; a `LabelSelector`, as Deployments have it, is translated.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TypeAlias

from kubewright.api.meta import LabelSelector

Labels: TypeAlias = str | LabelSelector | Mapping[str, str | bool | Collection[str]]
Fields: TypeAlias = str | Mapping[str, str]


_LABEL_TEXT = re.compile(r"[-A-Za-z0-9_./]*")


def label_selector(labels: Labels) -> str:
    """The query form. In a mapping a list means any of the values, True that the label exists, False that not."""
    if isinstance(labels, str):
        return labels
    if isinstance(labels, LabelSelector):
        return ",".join(_requirements(labels))
    return ",".join(_requirement(name, value) for name, value in labels.items())


def field_selector(fields: Fields) -> str:
    """The query form; all fields must be equal."""
    if isinstance(fields, str):
        return fields
    return ",".join(f"{path}={_escaped(value)}" for path, value in fields.items())


def _requirement(name: str, value: str | bool | Collection[str]) -> str:
    if isinstance(value, bool):
        return _plain(name) if value else f"!{_plain(name)}"
    if isinstance(value, str):
        return f"{_plain(name)}={_plain(value)}"
    return f"{_plain(name)} in {_any_of(name, value)}"


def _requirements(selector: LabelSelector) -> list[str]:
    parts = [_requirement(name, value) for name, value in sorted(selector.match_labels.items())]
    for expression in selector.match_expressions:
        match expression.operator:
            case "In":
                parts.append(_requirement(expression.key, expression.values))
            case "NotIn":
                parts.append(f"{_plain(expression.key)} notin {_any_of(expression.key, expression.values)}")
            case "Exists":
                parts.append(_requirement(expression.key, True))
            case "DoesNotExist":
                parts.append(_requirement(expression.key, False))
            case other:
                raise ValueError(
                    f'matchExpressions: "{other}" is not an operator of a label selector '
                    "(In, NotIn, Exists, DoesNotExist)"
                )
    return parts


def _any_of(name: str, values: Collection[str]) -> str:
    if not values:
        raise ValueError(f'the label selector for "{name}" names no value: give at least one')
    return f"({','.join(_plain(value) for value in sorted(values))})"


def _plain(text: str) -> str:
    """Label selectors have no escapes, so a comma or a bracket in a value would silently select something else."""
    if not _LABEL_TEXT.fullmatch(text):
        raise ValueError(f'"{text}" cannot be in a label selector: expected letters, digits and - _ . / only')
    return text


def _escaped(value: str) -> str:
    """Field selectors take any value, with their own separators escaped."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
