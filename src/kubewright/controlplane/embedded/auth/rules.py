"""Policy rules: what one rule of a role allows, and whether some rules cover others.

An `RBACRule` is the compiled form of `rbac.authorization.k8s.io/v1 PolicyRule`. It does not know its holders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items
from kubewright.controlplane.embedded.auth.quoting import quoted_list

_ALL = "*"


@dataclass(frozen=True)
class RBACRule:
    """One policy rule, its lists in the order of the role."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @cached_property
    def _verbs(self) -> frozenset[str]:
        return frozenset(self.verbs)

    @cached_property
    def _groups(self) -> frozenset[str]:
        return frozenset(self.groups)

    @cached_property
    def _resources(self) -> frozenset[str]:
        return frozenset(self.resources)

    @cached_property
    def _prefixes(self) -> tuple[str, ...]:
        return tuple(url.rstrip(_ALL) for url in self.urls if url.endswith(_ALL))

    def allows_resource(self, verb: str, group: str, resource: str, subresource: str) -> bool:
        """Whether the rule covers this resource; which names it allows is in `names` (none: all)."""
        verbs, groups, resources = self._verbs, self._groups, self._resources
        if (verb not in verbs and _ALL not in verbs) or (group not in groups and _ALL not in groups):
            return False
        if _ALL in resources:
            return True
        if not subresource:
            return resource in resources
        return f"{resource}/{subresource}" in resources or f"*/{subresource}" in resources

    def allows_url(self, verb: str, path: str) -> bool:
        """Whether a path that is no resource may be used so; a trailing `*` of the rule stands for any rest."""
        verbs = self._verbs
        if verb not in verbs and _ALL not in verbs:
            return False
        return path in self.urls or path.startswith(self._prefixes)

    def covers(self, part: RBACRule) -> bool:
        """Whether everything that `part`, which came out of `split`, allows is allowed here too."""
        return (
            (_ALL in self._verbs or self._verbs.issuperset(part.verbs))
            and (_ALL in self._groups or self._groups.issuperset(part.groups))
            and all(map(self._covers_resource, part.resources))
            and all(url in self.urls or url.startswith(self._prefixes) for url in part.urls)
            and (not self.names or (bool(part.names) and set(self.names).issuperset(part.names)))
        )

    def _covers_resource(self, resource: str) -> bool:
        if resource in self._resources or _ALL in self._resources:
            return True
        _, slash, subresource = resource.partition("/")
        return bool(slash) and f"*/{subresource}" in self._resources

    def split(self) -> Iterator[RBACRule]:
        """The rule as rules with one verb, one group, one resource and at most one name, or with one URL."""
        for group in self.groups:
            for resource in self.resources:
                for verb in self.verbs:
                    for name in self.names or (None,):
                        yield RBACRule((verb,), (group,), (resource,), () if name is None else (name,))
        for url in self.urls:
            for verb in self.verbs:
                yield RBACRule((verb,), urls=(url,))

    def __str__(self) -> str:
        """The rule as the server's messages show it."""
        fields = {
            "APIGroups": self.groups,
            "Resources": self.resources,
            "NonResourceURLs": self.urls,
            "ResourceNames": self.names,
            "Verbs": self.verbs,
        }
        return "{" + ", ".join(f"{name}:{quoted_list(values)}" for name, values in fields.items() if values) + "}"


def rules_of(role: JSONObject) -> tuple[RBACRule, ...]:
    """The rules of a Role or ClusterRole."""
    return tuple(
        RBACRule(
            _texts(rule, "verbs"),
            _texts(rule, "apiGroups"),
            _texts(rule, "resources"),
            _texts(rule, "resourceNames"),
            _texts(rule, "nonResourceURLs"),
        )
        for rule in items(role, "rules")
        if isinstance(rule, dict)
    )


def not_covered(held: Iterable[RBACRule], wanted: Iterable[RBACRule]) -> list[RBACRule]:
    """What of `wanted` is not allowed by one rule of `held`; rules that differ only in verbs are one rule again."""
    held = tuple(held)
    missing: dict[RBACRule, tuple[str, ...]] = {}
    for rule in wanted:
        for part in rule.split():
            if not any(holds.covers(part) for holds in held):
                # Kubernetes joins the verbs of resources, and lists those of URLs one by one.
                key = part if part.urls else replace(part, verbs=())
                missing[key] = (*missing.get(key, ()), *part.verbs)
    return [key if key.urls else replace(key, verbs=verbs) for key, verbs in missing.items()]


def _texts(rule: JSONObject, field: str) -> tuple[str, ...]:
    return tuple(item for item in items(rule, field) if isinstance(item, str))
