"""Selectors as the parameters of a request, checked against the kind that they are for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kubewright.api.dynamic import Dynamic, PartialObject
from kubewright.api.meta import LabelSelector
from kubewright.api.resources import Object, resource_info
from kubewright.api.selectors import Fields, Labels, field_selector, label_selector
from kubewright.api.shape import Shape
from kubewright.client.paths import Parameter


def selector_parameters(kind: type[Object], labels: Labels | None, fields: Fields | None) -> Sequence[Parameter]:
    """What confines a list, a watch or a deletion to some objects. See `check_selectors`."""
    if labels is not None or fields is not None:
        check_selectors(kind, labels, fields)
    return [
        ("labelSelector", None if labels is None else label_selector(labels)),
        ("fieldSelector", None if fields is None else field_selector(fields)),
    ]


def check_selectors(kind: type[Object], labels: object, fields: object) -> None:
    """Raise a TypeError for what is no selector, and a ValueError for a field that the kind has by another name."""
    if labels is not None and not isinstance(labels, str | LabelSelector):
        _check_mapping(labels, "labels", '{"app": "web"} or "app=web"', (str, bool, Collection))
    if isinstance(fields, Mapping):
        _check_mapping(fields, "fields", '{"spec.nodeName": "node-1"}', (str,))
        for path in fields:
            check_field(kind, path)
    elif fields is not None and not isinstance(fields, str):
        _check_mapping(fields, "fields", '{"spec.nodeName": "node-1"}', (str,))


def _check_mapping(selector: object, name: str, example: str, values: tuple[type, ...]) -> None:
    if not isinstance(selector, Mapping):
        raise TypeError(f"{name}= expects {example}, not a {type(selector).__name__}")
    for key, value in selector.items():
        if not isinstance(key, str) or not isinstance(value, values) or isinstance(value, bytes):
            raise TypeError(f"{name}={{{key!r}: {value!r}}}: names and values are strings, as in {name}={example}")


def check_field(kind: type[Object], path: str) -> None:
    """Raise a ValueError for a field that `kind` has by another name, in snake_case or in the wrong case.

    Unknown names are left to the server: it also selects by names that are no fields.
    """
    if issubclass(kind, Dynamic | PartialObject) or path in resource_info(kind).selectable_fields:
        return
    shape = Shape("model", model=kind)
    steps = path.removeprefix(".").split(".")
    for number, step in enumerate(steps):
        known = shape.fields
        if not known:
            return
        if step not in known:
            fitting = next((name for name in known if name.lower() == step.replace("_", "").lower()), None)
            if fitting is not None:
                meant = ".".join([*steps[:number], fitting, *steps[number + 1 :]])
                raise ValueError(f'{kind.__name__} has no field "{path}": did you mean "{meant}"?')
            return
        shape = known[step]
