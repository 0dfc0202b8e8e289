"""ClusterRoles that are made of others: the rules of every ClusterRole that their selectors find."""

from __future__ import annotations

from collections.abc import Iterable

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text
from kubewright.controlplane.embedded.builtins.label_selectors import matcher_of, texts


def aggregated_rules(role: JSONObject, cluster_roles: Iterable[JSONObject]) -> list[JSONValue] | None:
    """The `rules` that an aggregating role should have; None for a role without `aggregationRule`.

    Selectors are followed in their order, the roles they find by name; a rule that is there already is left out.
    """
    if not isinstance(at(role, "aggregationRule"), dict):
        return None
    name = text(role, "metadata", "name")
    others = sorted(
        (other for other in cluster_roles if text(other, "metadata", "name") != name),
        key=lambda other: text(other, "metadata", "name"),
    )
    rules: list[JSONValue] = []
    for found in items(role, "aggregationRule", "clusterRoleSelectors"):
        selector = matcher_of(found)
        for other in others:
            if selector.matches(texts(mapping(other, "metadata", "labels"))):
                for rule in items(other, "rules"):
                    if rule not in rules:
                        rules.append(rule)
    return rules
