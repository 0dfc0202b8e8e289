"""ClusterRoles that are made of others: the rules of every ClusterRole that their selectors find."""

from __future__ import annotations

from collections.abc import Iterable

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.apimachinery.document import JSONObject, at, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.selectors import LabelOperator, LabelRequirement, LabelSelector

_OPERATORS: dict[str, LabelOperator] = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


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
        selector = _selector(found)
        for other in others:
            if selector.matches(_texts(mapping(other, "metadata", "labels"))):
                for rule in items(other, "rules"):
                    if rule not in rules:
                        rules.append(rule)
    return rules


def _selector(selector: JSONValue) -> LabelSelector:
    labels = _texts(mapping(selector, "matchLabels"))
    requirements = [LabelRequirement(key, "=", (value,)) for key, value in labels.items()]
    for expression in items(selector, "matchExpressions"):
        values = tuple(value for value in items(expression, "values") if isinstance(value, str))
        # Other operators do not pass the validation of the role.
        operator = _OPERATORS[text(expression, "operator")]
        requirements.append(LabelRequirement(text(expression, "key"), operator, values))
    return LabelSelector(tuple(requirements))


def _texts(labels: JSONObject) -> dict[str, str]:
    return {key: value for key, value in labels.items() if isinstance(value, str)}
