"""Selectors as the parameters of a request."""

from __future__ import annotations

from collections.abc import Sequence

from kubewright.api.selectors import Fields, Labels, field_selector, label_selector
from kubewright.client.paths import Parameter


def selector_parameters(labels: Labels | None, fields: Fields | None) -> Sequence[Parameter]:
    """What confines a list, a watch or a deletion to some objects."""
    return [
        ("labelSelector", None if labels is None else label_selector(labels)),
        ("fieldSelector", None if fields is None else field_selector(fields)),
    ]
