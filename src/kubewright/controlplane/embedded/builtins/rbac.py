"""Roles and bindings. Whether the user may grant these rights is not decided here."""

from __future__ import annotations

from collections.abc import Callable

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import invalid_value, required
from kubewright.controlplane.embedded.builtins.label_selectors import validate_selector
from kubewright.controlplane.embedded.builtins.metadata import validate_change, validate_content
from kubewright.controlplane.embedded.builtins.names import dns_subdomain, first_complaint, path_segment
from kubewright.controlplane.embedded.builtins.values import Errors, StructError, matching, objects, one_of
from kubewright.controlplane.embedded.registry.resources import Strategy

_GROUP = "rbac.authorization.k8s.io"


def _rule(rule: JSONObject, path: str, *, namespaced: bool) -> Errors:
    errors: Errors = []
    if not items(rule, "verbs"):
        errors.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = items(rule, "nonResourceURLs")
    if urls:
        if namespaced:
            complaint = "namespaced rules cannot apply to non-resource URLs"
            errors.append(invalid_value(f"{path}.nonResourceURLs", urls, complaint))
        if items(rule, "apiGroups") or items(rule, "resources") or items(rule, "resourceNames"):
            complaint = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(invalid_value(f"{path}.nonResourceURLs", urls, complaint))
        return errors
    if not items(rule, "apiGroups"):
        errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not items(rule, "resources"):
        errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


def _rules(role: JSONObject, *, namespaced: bool) -> Errors:
    return [
        error
        for index, rule in objects(role, "rules")
        for error in _rule(rule, f"rules[{index}]", namespaced=namespaced)
    ]


def _validate_role(role: JSONObject) -> Errors:
    return _rules(role, namespaced=True)


def _validate_cluster_role(role: JSONObject) -> Errors:
    errors = _rules(role, namespaced=False)
    aggregation = role.get("aggregationRule")
    if isinstance(aggregation, dict):
        selectors = items(aggregation, "clusterRoleSelectors")
        path = "aggregationRule.clusterRoleSelectors"
        if not selectors:
            complaint = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            errors.append(required(path, complaint))
        for index, selector in enumerate(selectors):
            errors += validate_selector(selector, f"{path}[{index}]")
    return errors


def _binding(kinds: tuple[str, ...], *, namespaced: bool) -> Callable[[JSONObject], Errors]:
    def validate(binding: JSONObject) -> Errors:
        reference = mapping(binding, "roleRef")
        errors = one_of("roleRef.apiGroup", reference.get("apiGroup"), (_GROUP,))
        errors += one_of("roleRef.kind", reference.get("kind"), kinds)
        name = text(reference, "name")
        errors += matching("roleRef.name", name, path_segment) if name else [required("roleRef.name")]
        for index, subject in objects(binding, "subjects"):
            errors += _subject(subject, f"subjects[{index}]", namespaced=namespaced)
        return errors

    return validate


def _subject(subject: JSONObject, path: str, *, namespaced: bool) -> Errors:
    name, kind, group = text(subject, "name"), text(subject, "kind"), text(subject, "apiGroup")
    errors: Errors = [] if name else [required(f"{path}.name")]
    if kind == "ServiceAccount":
        if name:
            errors += matching(f"{path}.name", name, dns_subdomain)
        errors += one_of(f"{path}.apiGroup", group, ("",))
        if not namespaced and not text(subject, "namespace"):
            errors.append(required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        errors += one_of(f"{path}.apiGroup", group, (_GROUP,))
    else:
        errors += one_of(f"{path}.kind", kind, ("ServiceAccount", "User", "Group"))
    return errors


def _same_role(new: JSONObject, old: JSONObject) -> Errors:
    if new.get("roleRef") == old.get("roleRef"):
        return []
    reference = mapping(new, "roleRef")
    internal: JSONObject = {
        "APIGroup": text(reference, "apiGroup"),
        "Kind": text(reference, "kind"),
        "Name": text(reference, "name"),
    }
    return [StructError("FieldValueInvalid", "roleRef", internal, "cannot change roleRef")]


def _strategy(
    validate: Callable[[JSONObject], Errors], changes: Callable[[JSONObject, JSONObject], Errors] | None = None
) -> Strategy:
    return Strategy(
        validate=validate,
        validate_update=lambda new, old: [
            *validate_content(new),
            *validate(new),
            *validate_change(new, old),
            *(changes(new, old) if changes else []),
        ],
        validate_name=first_complaint(path_segment),
        create_on_update=True,
    )


ROLE = _strategy(_validate_role)
CLUSTER_ROLE = _strategy(_validate_cluster_role)
ROLE_BINDING = _strategy(_binding(("Role", "ClusterRole"), namespaced=True), _same_role)
CLUSTER_ROLE_BINDING = _strategy(_binding(("ClusterRole",), namespaced=False), _same_role)
