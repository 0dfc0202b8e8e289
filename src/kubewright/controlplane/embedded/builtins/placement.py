"""Where pods may run: the rules of tolerations, affinity, spreading and node selectors."""

from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import invalid_value, required
from kubewright.controlplane.embedded.builtins.label_selectors import validate_operator, validate_selector
from kubewright.controlplane.embedded.builtins.names import dns_label, dns_subdomain, label_value, qualified_name
from kubewright.controlplane.embedded.builtins.values import Errors, matching, number, objects, one_of

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def validate_tolerations(tolerations: JSONValue, path: str) -> Errors:
    """What is wrong with tolerations."""
    errors: Errors = []
    for index, toleration in objects(tolerations):
        where = f"{path}[{index}]"
        key, operator, value = (text(toleration, field) for field in ("key", "operator", "value"))
        if key:
            errors += matching(f"{where}.key", key, qualified_name)
        elif operator != "Exists":
            complaint = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid_value(f"{where}.operator", operator, complaint))
        effect = text(toleration, "effect")
        if "tolerationSeconds" in toleration and effect != "NoExecute":
            complaint = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(invalid_value(f"{where}.effect", effect, complaint))
        if operator in ("Equal", ""):
            if wrong := label_value(value):
                errors.append(invalid_value(f"{where}.operator", value, ";".join(wrong)))
        elif operator == "Exists":
            if value:
                complaint = "value must be empty when `operator` is 'Exists'"
                errors.append(invalid_value(f"{where}.operator", value, complaint))
        else:
            errors += one_of(f"{where}.operator", operator, ("Equal", "Exists"))
        if effect:
            errors += one_of(f"{where}.effect", effect, EFFECTS)
    return errors


def validate_affinity(affinity: JSONObject, path: str) -> Errors:
    """What is wrong with node affinity, pod affinity and pod anti-affinity."""
    errors: Errors = []
    node = mapping(affinity, "nodeAffinity")
    if _REQUIRED in node:
        errors += validate_node_selector(mapping(node, _REQUIRED), f"{path}.nodeAffinity.{_REQUIRED}")
    for index, term in objects(node, _PREFERRED):
        where = f"{path}.nodeAffinity.{_PREFERRED}[{index}]"
        errors += _weight(term, where)
        errors += _node_term(mapping(term, "preference"), f"{where}.preference")
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = mapping(affinity, kind)
        for index, term in objects(pods, _REQUIRED):
            errors += _pod_term(term, f"{path}.{kind}.{_REQUIRED}[{index}]")
        for index, term in objects(pods, _PREFERRED):
            where = f"{path}.{kind}.{_PREFERRED}[{index}]"
            errors += _weight(term, where)
            errors += _pod_term(mapping(term, "podAffinityTerm"), f"{where}.podAffinityTerm")
    return errors


def _weight(term: JSONObject, path: str) -> Errors:
    weight = number(term.get("weight"))
    return [] if 1 <= weight <= 100 else [invalid_value(f"{path}.weight", weight, "must be in the range 1-100")]


def validate_node_selector(selector: JSONObject, path: str) -> Errors:
    """What is wrong with a `NodeSelector`."""
    terms = list(objects(selector, "nodeSelectorTerms"))
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    return [error for index, term in terms for error in _node_term(term, f"{path}.nodeSelectorTerms[{index}]")]


def _node_term(term: JSONObject, path: str) -> Errors:
    errors: Errors = []
    for index, expression in objects(term, "matchExpressions"):
        errors += _node_expression(expression, f"{path}.matchExpressions[{index}]")
    for index, expression in objects(term, "matchFields"):
        where = f"{path}.matchFields[{index}]"
        operator, values = text(expression, "operator"), items(expression, "values")
        if operator in ("In", "NotIn"):
            if len(values) != 1:
                complaint = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
                errors.append(required(f"{where}.values", complaint))
        else:
            errors.append(invalid_value(f"{where}.operator", operator, "not a valid selector operator"))
        if text(expression, "key") != "metadata.name":
            errors.append(invalid_value(f"{where}.key", text(expression, "key"), "not a valid field selector key"))
        else:
            for position, value in enumerate(values):
                errors += matching(f"{where}.values[{position}]", str(value), dns_subdomain)
    return errors


def _node_expression(expression: JSONObject, path: str) -> Errors:
    errors: Errors = []
    if text(expression, "operator") not in ("Gt", "Lt"):
        errors += validate_operator(expression, path)
    elif len(items(expression, "values")) != 1:
        complaint = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        errors.append(required(f"{path}.values", complaint))
    return errors + matching(f"{path}.key", text(expression, "key"), qualified_name)


def _pod_term(term: JSONObject, path: str) -> Errors:
    errors = validate_selector(term.get("labelSelector"), f"{path}.labelSelector")
    errors += validate_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for namespace in items(term, "namespaces"):
        errors += matching(f"{path}.namespace", str(namespace), dns_label)
    key = text(term, "topologyKey")
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    return errors + matching(f"{path}.topologyKey", key, qualified_name)


def validate_spreading(constraints: JSONValue, path: str) -> Errors:
    """What is wrong with topology spread constraints."""
    errors: Errors = []
    for index, constraint in objects(constraints):
        where = f"{path}[{index}]"
        skew, key = number(constraint.get("maxSkew")), text(constraint, "topologyKey")
        if skew <= 0:
            errors.append(invalid_value(f"{where}.maxSkew", skew, "must be greater than zero"))
        if not key:
            errors.append(required(f"{where}.topologyKey", "can not be empty"))
        unsatisfiable = text(constraint, "whenUnsatisfiable")
        errors += one_of(f"{where}.whenUnsatisfiable", unsatisfiable, ("DoNotSchedule", "ScheduleAnyway"))
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if policy in constraint:
                errors += one_of(f"{where}.{policy}", constraint[policy], ("Honor", "Ignore"))
        errors += validate_selector(constraint.get("labelSelector"), f"{where}.labelSelector")
    return errors
