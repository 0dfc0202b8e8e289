"""The selectors in the query of a list or watch: malformed ones are a StatusError (400) with Kubernetes' message."""

from __future__ import annotations

from kubewright.api.selector_syntax import label_requirements, parse_fields
from kubewright.api.selectors import FieldMatcher, LabelMatcher, LabelRequirement, SelectorError, integer
from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.apimachinery.remembered import remembered
from kubewright.controlplane.embedded.apimachinery.status import bad_request
from kubewright.controlplane.embedded.builtins.names import label_value, qualified_name


@remembered(256)
def parse_label_selector(selector: str) -> LabelMatcher:
    """A label selector, as in `app=web,tier in (front,back),!canary`. Raises StatusError (400)."""
    try:
        return LabelMatcher(label_requirements(selector, _invalid))
    except SelectorError as error:
        raise bad_request(error.reason) from None


def parse_field_selector(selector: str) -> FieldMatcher:
    """A field selector, as in `metadata.name=web,status.phase!=Running`. Raises StatusError (400).

    The caller checks which fields a kind has.
    """
    try:
        return parse_fields(selector)
    except SelectorError as error:
        raise bad_request(error.reason) from None


def _invalid(requirement: LabelRequirement) -> str:
    if wrong := qualified_name(requirement.key):
        return f"<nil>: Invalid value: {quoted(requirement.key)}: {'; '.join(wrong)}"
    problems: list[str] = []
    for index, value in enumerate(requirement.values):
        if requirement.operator in ("<", ">") and integer(value) is None:
            problems.append(
                f"values[{index}]: Invalid value: {quoted(value)}:"
                " for 'Gt', 'Lt' operators, the value must be an integer"
            )
        if wrong := label_value(value):
            problems.append(f"values[{index}][{requirement.key}]: Invalid value: {quoted(value)}: {'; '.join(wrong)}")
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]" if problems else ""
