"""What policies, their bindings and webhooks have in common: rules that select requests, and match conditions."""

from __future__ import annotations

from collections.abc import Callable

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, text
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    duplicate,
    invalid_value,
    not_supported,
    required,
)
from kubewright.controlplane.embedded.builtins.label_selectors import validate_selector
from kubewright.controlplane.embedded.builtins.names import path_segment, qualified_name
from kubewright.controlplane.embedded.builtins.values import Errors, matching, objects, one_of
from kubewright.controlplane.embedded.cel.admission import Compiled, CompileError, ExpressionScope, compiled
from kubewright.controlplane.embedded.cel.types import BOOL
from kubewright.controlplane.embedded.registry.resources import Strategy

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_MAX_CONDITIONS = 64


def configuration_strategy(validate: Callable[[JSONObject], Errors], content: str) -> Strategy:
    """The rules of a kind that configures admission; `content` is the field whose change is a new generation."""
    return Strategy(
        validate=validate,
        validate_update=lambda new, old: validate(new),
        has_generation=True,
        changes_generation=lambda new, old: new.get(content) != old.get(content),
        unconditional_update=False,
    )


def validate_rule(rule: JSONObject, path: str) -> Errors:
    """The errors of a rule that selects requests."""
    errors: Errors = []
    operations = items(rule, "operations")
    if not operations:
        errors.append(required(f"{path}.operations"))
    if "*" in operations and len(operations) > 1:
        complaint = "if '*' is present, must not specify other operations"
        errors.append(invalid_value(f"{path}.operations", operations, complaint))
    for index, operation in enumerate(operations):
        errors += one_of(f"{path}.operations[{index}]", operation, _OPERATIONS)
    for field, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = items(rule, field)
        if not values:
            errors.append(required(f"{path}.{field}"))
        if "*" in values and len(values) > 1:
            complaint = f"if '*' is present, must not specify other {what}"
            errors.append(invalid_value(f"{path}.{field}", values, complaint))
        if field == "apiVersions":
            errors += [required(f"{path}.{field}[{index}]") for index, value in enumerate(values) if value == ""]
    errors += _resources(items(rule, "resources"), f"{path}.resources")
    if "scope" in rule:
        errors += one_of(f"{path}.scope", rule["scope"], ("*", "Cluster", "Namespaced"))
    return errors


def _resources(resources: list[JSONValue], path: str) -> Errors:
    if not resources:
        return [required(path)]
    errors: Errors = []
    every_subresource: set[str] = set()
    of_every_resource: set[str] = set()
    has_plain = False
    for index, value in enumerate(resources):
        name = str(value)
        resource, slash, subresource = name.partition("/")
        if not name:
            errors.append(required(f"{path}[{index}]"))
        elif not slash:
            # Only the last one without a subresource counts.
            has_plain = name != "*"
        else:
            if resource in every_subresource:
                complaint = f"if '{resource}/*' is present, must not specify {name}"
                errors.append(invalid_value(f"{path}[{index}]", name, complaint))
            if subresource in of_every_resource:
                complaint = f"if '*/{subresource}' is present, must not specify {name}"
                errors.append(invalid_value(f"{path}[{index}]", name, complaint))
            if subresource == "*":
                every_subresource.add(resource)
            if resource == "*":
                of_every_resource.add(subresource)
    if "*/*" in resources and len(resources) > 1:
        complaint = "if '*/*' is present, must not specify other resources"
        errors.append(invalid_value(path, resources, complaint))
    if "*" in resources and has_plain:
        complaint = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid_value(path, resources, complaint))
    return errors


def validate_match_resources(constraints: JSONObject, path: str) -> Errors:
    """The errors of `matchConstraints` and `matchResources`."""
    errors: Errors = []
    if "matchPolicy" in constraints:
        errors += one_of(f"{path}.matchPolicy", constraints["matchPolicy"], ("Equivalent", "Exact"))
    for field in ("namespaceSelector", "objectSelector"):
        errors += validate_selector(constraints.get(field), f"{path}.{field}")
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in objects(constraints, field):
            errors += _named_rule(rule, f"{path}.{field}[{index}]")
    return errors


def _named_rule(rule: JSONObject, path: str) -> Errors:
    errors: Errors = []
    names = items(rule, "resourceNames")
    for index, name in enumerate(names):
        errors += matching(f"{path}.resourceNames[{index}]", str(name), path_segment)
        if name in names[:index]:
            errors.append(duplicate(f"{path}.resourceNames[{index}]", name))
    return errors + validate_rule(rule, path)


def validate_match_conditions(conditions: list[JSONValue], path: str, *, params: bool = False) -> Errors:
    """The errors of match conditions; `params` says whether they may name parameters."""
    errors: Errors = []
    if len(conditions) > _MAX_CONDITIONS:
        detail = f"must have at most {_MAX_CONDITIONS} items"
        errors.append(FieldError("FieldValueTooMany", path, len(conditions), detail))
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        where, name = f"{path}[{index}]", text(condition, "name")
        expression = text(condition, "expression").strip()
        if not expression:
            errors.append(required(f"{where}.expression"))
        else:
            found = compiled(expression, ExpressionScope(params), (BOOL,))
            errors += expression_errors(found, expression, f"{where}.expression")
        if not name:
            errors.append(required(f"{where}.name"))
        else:
            errors += matching(f"{where}.name", name, qualified_name)
        if name and name in seen:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
    return errors


def expression_errors(found: Compiled, source: str, path: str) -> Errors:
    """What is wrong with an expression; nothing when it compiled."""
    if not isinstance(found, CompileError):
        return []
    if found.internal:
        return [FieldError("InternalError", path, None, str(found))]
    return [invalid_value(path, source, str(found))]


def unsupported_operations(constraints: JSONObject, path: str) -> Errors:
    """The operations that cannot be mutated: there is nothing to change in what is deleted."""
    supported = tuple(operation for operation in _OPERATIONS if operation != "DELETE")
    return [
        not_supported(f"{path}.resourceRules.operations", operation, supported)
        for _, rule in objects(constraints, "resourceRules")
        for operation in items(rule, "operations")
        if operation not in supported
    ]
