"""Objects in a custom resource that an apply left with nothing.

To the real server they are null then, not empty, and null is what its validation complains about.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import mapping
from kubewright.controlplane.embedded.apimachinery.status import FieldError, wrong_type


def emptied_objects(configuration: JSONObject, result: JSONObject, schema: JSONObject) -> list[FieldError]:
    """What was applied as `{}` and lost its last field by that, unless the schema is nullable there."""
    content = {name: value for name, value in configuration.items() if name != "metadata"}
    return [*_emptied(content, result, schema, "")]


def _emptied(configuration: JSONObject, result: JSONObject, schema: JSONObject, path: str) -> Iterator[FieldError]:
    properties, others = mapping(schema, "properties"), schema.get("additionalProperties")
    for name, value in configuration.items():
        nested, left = properties.get(name, others), result.get(name)
        if not isinstance(value, dict) or not isinstance(nested, dict):
            continue
        where = f"{path}.{name}" if path else name
        if isinstance(left, dict):
            yield from _emptied(value, left, nested, where)
        elif not value and name in result and nested.get("nullable") is not True and "default" not in nested:
            yield wrong_type(where, "null", f'{where} in body must be of type object: "null"')
