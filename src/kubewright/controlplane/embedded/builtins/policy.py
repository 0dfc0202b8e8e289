"""Pod disruption budgets."""

from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import mapping
from kubewright.controlplane.embedded.builtins.label_selectors import validate_selector
from kubewright.controlplane.embedded.builtins.values import (
    Errors,
    StructError,
    amount_or_percentage,
    not_more_than_all,
    not_negative_fields,
    one_of,
)
from kubewright.controlplane.embedded.registry.resources import Strategy


def _validate(budget: JSONObject) -> Errors:
    spec = mapping(budget, "spec")
    errors: Errors = []
    if "minAvailable" in spec and "maxUnavailable" in spec:
        internal: JSONObject = {
            "MinAvailable": spec["minAvailable"],
            "Selector": spec.get("selector"),
            "MaxUnavailable": spec["maxUnavailable"],
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        complaint = "minAvailable and maxUnavailable cannot be both set"
        errors.append(StructError("FieldValueInvalid", "spec", internal, complaint))
    for field in ("minAvailable", "maxUnavailable"):
        if field in spec:
            errors += amount_or_percentage(f"spec.{field}", spec[field])
            errors += not_more_than_all(f"spec.{field}", spec[field])
    errors += validate_selector(spec.get("selector"), "spec.selector")
    if "unhealthyPodEvictionPolicy" in spec:
        known = ("AlwaysAllow", "IfHealthyBudget")
        errors += one_of("spec.unhealthyPodEvictionPolicy", spec["unhealthyPodEvictionPolicy"], known)
    return errors


def _validate_status(new: JSONObject, old: JSONObject) -> Errors:
    numbers = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    return not_negative_fields("status", mapping(new, "status"), *numbers)


POD_DISRUPTION_BUDGET = Strategy(
    validate=_validate,
    validate_update=lambda new, old: _validate(new),
    validate_status=_validate_status,
    has_generation=True,
    unconditional_update=False,
)
