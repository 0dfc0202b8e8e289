"""Holding a value to a schema.

A valid object costs one fast check. Only for a value that it refuses the errors are computed, keyword by keyword in
the order of the real server, so that their texts, paths and numbers are the same.
"""

from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.status import FieldError
from kubewright.controlplane.embedded.schema.acceptance import SchemaNode
from kubewright.controlplane.embedded.schema.depth import check_depth
from kubewright.controlplane.embedded.schema.findings import UNCORRELATED, Findings, Old, explain


class Validator:
    """Validates values of one schema, which is read once."""

    def __init__(self, schema: JSONObject) -> None:
        check_depth(schema)
        self._root = SchemaNode(schema)

    def accepts(self, value: JSONValue) -> bool:
        """Whether the value is valid."""
        return self._root.accepts(value)

    def validate(self, value: JSONValue, at: str = "") -> list[FieldError]:
        """All that is wrong with a value; `at` is the field that holds it, empty for a whole object."""
        if self._root.accepts(value):
            return []
        return self._explained(value, UNCORRELATED, at)

    def validate_update(self, new: JSONValue, old: JSONValue, at: str = "") -> list[FieldError]:
        """What is wrong with a new value, except for what was wrong before and is the same."""
        if self._root.accepts(new):
            return []
        return self._explained(new, old, at)

    def _explained(self, value: JSONValue, old: Old, at: str) -> list[FieldError]:
        return explain(self._root, value, Findings(at), "", old).errors
