"""Which requests a policy, a binding or a webhook is about: rules, selectors, and whether other versions count.

The fields are the same for all of them, so that one matcher reads them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.admission.request import AdmissionRequest
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.builtins.label_selectors import is_empty, matcher_of, texts
from kubewright.controlplane.embedded.registry.catalog import Catalog
from kubewright.controlplane.embedded.registry.resources import ResourceType

NamespaceLabels: TypeAlias = Callable[[AdmissionRequest], JSONObject]


class _Rule(NamedTuple):
    """Operations on resources, by group, version and scope, and by name where it names any."""

    operations: frozenset[JSONValue]
    groups: frozenset[JSONValue]
    versions: frozenset[JSONValue]
    resources: tuple[tuple[str, str], ...]
    scope: str
    names: frozenset[JSONValue]

    @classmethod
    def of(cls, rule: JSONValue) -> _Rule:
        pairs = [str(resource).partition("/") for resource in items(rule, "resources")]
        return cls(
            frozenset(map(str, items(rule, "operations"))),
            frozenset(map(str, items(rule, "apiGroups"))),
            frozenset(map(str, items(rule, "apiVersions"))),
            tuple((resource, subresource) for resource, _, subresource in pairs),
            text(rule, "scope") or "*",
            frozenset(map(str, items(rule, "resourceNames"))),
        )

    def matches(self, request: AdmissionRequest, resource: ResourceType) -> bool:
        """Whether it is about the request, were it sent to this resource."""
        return (
            _has(self.operations, request.operation)
            and _has(self.groups, resource.gvk.group)
            and _has(self.versions, resource.gvk.version)
            and any(
                plural in ("*", resource.plural) and subresource in ("*", request.subresource)
                for plural, subresource in self.resources
            )
            and (self.scope == "*" or (self.scope == "Namespaced") is _is_namespaced(request))
            and (not self.names or request.name in self.names)
        )


def _has(values: frozenset[JSONValue], value: str) -> bool:
    return value in values or "*" in values


def _is_namespaced(request: AdmissionRequest) -> bool:
    return bool(request.namespace) and not request.is_namespace


class Equivalents:
    """The other versions in which the objects of a resource are served."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._generation = -1
        self._by_prefix: dict[str, list[ResourceType]] = {}

    def of(self, resource: ResourceType) -> Sequence[ResourceType]:
        """All of them, without the resource itself."""
        if self._generation != self._catalog.generation:
            self._generation = self._catalog.generation
            self._by_prefix = {}
            for served in self._catalog.all():
                self._by_prefix.setdefault(served.prefix, []).append(served)
        return [other for other in self._by_prefix.get(resource.prefix, ()) if other.gvk != resource.gvk]


class RequestMatcher:
    """The rules and selectors of one object that says which requests it is for."""

    def __init__(self, constraints: JSONObject, *, rules: str = "resourceRules") -> None:
        """`rules` is the name of the field with the rules; without any, every request matches."""
        self._rules = [_Rule.of(rule) for rule in items(constraints, rules)]
        self._excluded = [_Rule.of(rule) for rule in items(constraints, "excludeResourceRules")]
        self._by_version = text(constraints, "matchPolicy") == "Exact"
        namespaces, objects = mapping(constraints, "namespaceSelector"), mapping(constraints, "objectSelector")
        self._namespaces = None if is_empty(namespaces) else matcher_of(namespaces)
        self._objects = None if is_empty(objects) else matcher_of(objects)

    def match(
        self, request: AdmissionRequest, labels_of: NamespaceLabels, equivalents: Equivalents
    ) -> ResourceType | None:
        """The resource that matched, which may be another version of the requested one; None when nothing does."""
        requested = request.call.resource
        matched: ResourceType | None = requested
        if self._rules:
            matched = self._matched(self._rules, request, equivalents)
        if matched is None or not self._selects(request, labels_of):
            return None
        return None if self._matched(self._excluded, request, equivalents) is not None else matched

    def _matched(
        self, rules: Sequence[_Rule], request: AdmissionRequest, equivalents: Equivalents
    ) -> ResourceType | None:
        if not rules:
            return None
        requested = request.call.resource
        if any(rule.matches(request, requested) for rule in rules):
            return requested
        if self._by_version:
            return None
        others = equivalents.of(requested)
        return next((other for rule in rules for other in others if rule.matches(request, other)), None)

    def _selects(self, request: AdmissionRequest, labels_of: NamespaceLabels) -> bool:
        if self._objects is not None and not any(
            self._objects.matches(texts(mapping(obj, "metadata", "labels")))
            for obj in (request.new, request.old)
            if obj is not None
        ):
            return False
        # What is in no namespace is never exempt by one.
        if self._namespaces is None or not (request.namespace or request.is_namespace):
            return True
        return self._namespaces.matches(texts(labels_of(request)))
