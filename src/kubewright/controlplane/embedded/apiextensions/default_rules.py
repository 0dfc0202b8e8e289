"""The rules that the defaults in a schema keep: they are valid themselves and have no field that pruning would drop."""

from __future__ import annotations

from collections.abc import Iterator

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import copied, mapping
from kubewright.controlplane.embedded.apimachinery.status import FieldError, invalid_value
from kubewright.controlplane.embedded.schema.prune import ValuePruner
from kubewright.controlplane.embedded.schema.rules import compiled
from kubewright.controlplane.embedded.schema.validation import Validator

_META = ("metadata", "kind", "apiVersion")


def check_defaults(schema: JSONObject, path: str, *, root: bool = True) -> Iterator[FieldError]:
    """What is wrong with the defaults of a structural schema, below `additionalProperties` excepted."""
    default = schema.get("default")
    if default is not None:
        if ValuePruner(schema).prune(copied(default)):
            yield invalid_value(f"{path}.default", default, "must not have unknown fields")
        yield from Validator(schema).validate(default, f"{path}.default") or _broken_rules(schema, f"{path}.default")
    if isinstance(schema.get("items"), dict):
        yield from check_defaults(mapping(schema, "items"), f"{path}.items", root=False)
    properties = mapping(schema, "properties")
    for name in properties:
        # Defaults of a resource's own metadata are refused by another rule.
        if not (root and name in _META):
            yield from check_defaults(mapping(properties, name), f"{path}.properties[{name}]", root=False)


def _broken_rules(schema: JSONObject, path: str) -> list[FieldError]:
    """What the rules of a schema find wrong with its default: when it is new, and when it stays."""
    rules = compiled(schema, resource=schema.get("x-kubernetes-embedded-resource") is True)
    if rules is None:
        return []
    default = schema["default"]
    return rules.validate(default, at=path) or [
        error for error in rules.validate(default, default, at=path) if not error.tolerated
    ]
