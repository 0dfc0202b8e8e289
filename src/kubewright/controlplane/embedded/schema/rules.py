"""Validation rules (`x-kubernetes-validations`) of a schema, imported only for a schema that has some.

Expressions need a parser and a library of functions that most definitions have no use for.
"""

from __future__ import annotations

from typing import Protocol

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.status import FieldError


class Rules(Protocol):
    """The compiled rules of one schema."""

    def validate(self, new: JSONValue, old: JSONValue = None, at: str = "") -> list[FieldError]:
        """The rules that an object, or its change, does not keep. `at` is where it is."""


def has_rules(schema: JSONValue) -> bool:
    """Whether there are rules anywhere in a schema."""
    waiting: list[JSONValue] = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if value.get("x-kubernetes-validations"):
                return True
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return False


def compiled(schema: JSONObject, *, resource: bool = True) -> Rules | None:
    """The rules of the schema of a resource, or of a part of one; None when it has none."""
    if not has_rules(schema):
        return None
    from kubewright.controlplane.embedded.cel import compile_rules

    return compile_rules(schema, resource=resource)


def check_rules(schema: JSONObject, path: str) -> list[FieldError]:
    """What is wrong with the rules themselves."""
    if not has_rules(schema):
        return []
    from kubewright.controlplane.embedded.cel import check_rules

    return check_rules(schema, path)
