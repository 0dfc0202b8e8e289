"""The options of a cache, checked for the mistakes that a type checker would find. Imported where there are any."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.resources import Object, resource_info
from kubewright.cache.selection import matcher
from kubewright.client.arguments import check_kind, check_namespace
from kubewright.client.selector_parameters import check_selectors

if TYPE_CHECKING:
    from kubewright.cache.cache import CacheOptions

_EXAMPLE = 'cache={Pod: CacheOptions(labels={"app": "web"})}'


def options_by_kind(given: Mapping[type[Object], CacheOptions]) -> dict[GroupVersionKind, CacheOptions]:
    """The options of a cache by kind; a TypeError or ValueError that names the fix when they cannot be meant so."""
    options: object = given
    if not isinstance(options, Mapping):
        raise TypeError(f"the options of a cache are by kind: write {_EXAMPLE}")
    for kind, each in options.items():
        check_kind(kind, "the options of a cache")
        _check(kind, each)
    return {resource_info(kind).gvk: each for kind, each in given.items()}


def _check(kind: type[Object], options: object) -> None:
    from kubewright.cache.cache import CacheOptions

    if not isinstance(options, CacheOptions):
        raise TypeError(f"the cache options of {kind.__name__} are {options!r}: write {_EXAMPLE}")
    check_selectors(kind, options.labels, options.fields)
    matcher(options.labels, options.fields, resource_info(kind).gvk)
    namespaces: object = options.namespaces
    if isinstance(namespaces, str) or not isinstance(namespaces, Collection):
        raise TypeError(f"CacheOptions(namespaces={namespaces!r}) of {kind.__name__}: expected a list of names")
    for namespace in namespaces:
        check_namespace(namespace, "namespaces")
    if namespaces and resource_info(kind).namespaced is False:
        raise ValueError(f"{kind.__name__} is cluster-scoped and in no namespace: leave out namespaces=")
    if options.transform is not None and not callable(options.transform):
        raise TypeError(
            f"CacheOptions(transform={options.transform!r}) of {kind.__name__}: expected a function that takes the "
            "JSON of an object and returns the JSON to keep, both as bytes"
        )
