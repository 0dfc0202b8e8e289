"""Labels and label selectors in a cell."""

from __future__ import annotations

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text

_NONE = "<none>"


def labels_text(labels: JSONValue) -> str:
    """`a=1,b=2`, or `<none>`."""
    pairs = labels.items() if isinstance(labels, dict) else ()
    return ",".join(f"{name}={value}" for name, value in sorted(pairs)) or _NONE


def selector_text(selector: JSONValue) -> str:
    """A label selector in the form that selects the same on a command line; empty when it selects nothing or all."""
    requirements = [(name, f"{name}={value}") for name, value in mapping(selector, "matchLabels").items()]
    for expression in items(selector, "matchExpressions"):
        key, operator = text(expression, "key"), text(expression, "operator")
        values = ",".join(sorted(str(value) for value in items(expression, "values")))
        match operator:
            case "In":
                requirements.append((key, f"{key} in ({values})"))
            case "NotIn":
                requirements.append((key, f"{key} notin ({values})"))
            case "Exists":
                requirements.append((key, key))
            case _:
                requirements.append((key, f"!{key}"))
    return ",".join(told for _, told in sorted(requirements, key=lambda requirement: requirement[0]))


def selector_or_none(selector: JSONValue) -> str:
    """`selector_text`, or `<none>`."""
    return selector_text(selector) or _NONE


def selector_in_go(selector: JSONValue) -> str:
    """A label selector as Go prints the structure itself, which is how bindings of policies show it."""
    labels = "".join(f"{name}: {value}," for name, value in sorted(mapping(selector, "matchLabels").items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{text(expression, 'key')},Operator:{text(expression, 'operator')},"
        f"Values:[{' '.join(str(value) for value in items(expression, 'values'))}],}},"
        for expression in items(selector, "matchExpressions")
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
