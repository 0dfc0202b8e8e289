"""Label and field selectors, evaluated on entries as the server evaluates them on objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.selectors import Fields, Labels, field_matcher, label_matcher
from kubewright.cache.entry import CacheEntry
from kubewright.cache.index import field_reader

Matches: TypeAlias = Callable[[CacheEntry], bool]


def matcher(
    labels: Labels | None = None, fields: Fields | None = None, gvk: GroupVersionKind | None = None
) -> Matches | None:
    """A test for both selectors; None when there is nothing to test. Some kinds name fields in their own way."""
    by_label = label_matcher(labels or {})
    by_field = [
        (requirement.matches, field_reader(requirement.field, gvk))
        for requirement in field_matcher(fields or {}).requirements
    ]
    if by_label.matches_all and not by_field:
        return None
    if not by_field:
        return lambda entry: by_label.matches(entry.labels)

    def matches(entry: CacheEntry) -> bool:
        if not by_label.matches_all and not by_label.matches(entry.labels):
            return False
        return all(matches(read(entry)) for matches, read in by_field)

    return matches


def simple_fields(fields: Fields) -> dict[str, str]:
    """The fields a selector requires to be equal to something; those an index can answer."""
    requirements = field_matcher(fields).requirements
    return {requirement.field: requirement.value for requirement in requirements if requirement.operator == "="}
