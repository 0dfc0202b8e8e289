"""Labels and label selectors in a cell."""

from __future__ import annotations

from kubewright.api.markers import JSONValue
from kubewright.api.selectors import LabelMatcher
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.builtins.label_selectors import matcher_of

_NONE = "<none>"


def labels_text(labels: JSONValue) -> str:
    """`a=1,b=2`, or `<none>`."""
    pairs = labels.items() if isinstance(labels, dict) else ()
    return ",".join(f"{name}={value}" for name, value in sorted(pairs)) or _NONE


def selector_text(selector: JSONValue) -> str:
    """A label selector in the form that selects the same on a command line; empty when it selects nothing or all."""
    requirements = sorted(matcher_of(selector).requirements, key=lambda requirement: requirement.key)
    return str(LabelMatcher(requirements))


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
