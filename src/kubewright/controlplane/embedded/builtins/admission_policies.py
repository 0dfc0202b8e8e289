"""Admission policies and their bindings: that they are well-formed, and that their expressions compile."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
)
from kubewright.controlplane.embedded.builtins.admission_rules import (
    configuration_strategy,
    expression_errors,
    unsupported_operations,
    validate_match_conditions,
    validate_match_resources,
)
from kubewright.controlplane.embedded.builtins.label_selectors import validate_selector
from kubewright.controlplane.embedded.builtins.names import (
    dns_subdomain,
    old_dns_label,
    path_segment,
    qualified_name,
)
from kubewright.controlplane.embedded.builtins.values import Errors, matching, objects, one_of
from kubewright.controlplane.embedded.cel.admission import JSON_PATCHES, OBJECTS, ExpressionScope, Variables, compiled
from kubewright.controlplane.embedded.cel.escaping import RESERVED
from kubewright.controlplane.embedded.cel.types import BOOL, NULL, STRING

_IDENTIFIER = re.compile("[_a-zA-Z][_a-zA-Z0-9]*")
_LINE_END = re.compile(r"[\n\r]")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_MAX_ANNOTATIONS = 20
_MAX_ANNOTATION_EXPRESSION = 5 * 1024
_PATCH_TYPES: Mapping[str, str] = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}


def _common(spec: JSONObject, *, mutates: bool) -> Errors:
    """The errors of what both kinds of policies have, up to their variables."""
    errors: Errors = []
    if "failurePolicy" in spec:
        errors += one_of("spec.failurePolicy", spec["failurePolicy"], ("Fail", "Ignore"))
    if isinstance(spec.get("paramKind"), dict):
        errors += _param_kind(mapping(spec, "paramKind"), "spec.paramKind")
    constraints, path = spec.get("matchConstraints"), "spec.matchConstraints"
    if not isinstance(constraints, dict):
        errors.append(required(path))
    else:
        errors += validate_match_resources(constraints, path)
        if not items(constraints, "resourceRules"):
            errors.append(required(f"{path}.resourceRules"))
        if mutates:
            errors += unsupported_operations(constraints, path)
    conditions = items(spec, "matchConditions")
    return errors + validate_match_conditions(conditions, "spec.matchConditions", params="paramKind" in spec)


def _param_kind(kind: JSONObject, path: str) -> Errors:
    errors: Errors = []
    api_version, name = text(kind, "apiVersion"), text(kind, "kind")
    group, _, version = api_version.rpartition("/")
    where = f"{path}.apiVersion"
    if not api_version:
        errors.append(required(where))
    elif api_version.count("/") > 1:
        errors.append(invalid_value(where, api_version, f"unexpected GroupVersion string: {api_version}"))
    else:
        if group and (wrong := dns_subdomain(group)):
            errors.append(invalid_value(where, group, ",".join(wrong)))
        if not version:
            errors.append(invalid_value(where, api_version, "version must be specified"))
        elif wrong := old_dns_label(version):
            errors.append(invalid_value(where, version, ",".join(wrong)))
    if not name:
        errors.append(required(f"{path}.kind"))
    elif wrong := old_dns_label(name.lower()):
        detail = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
        errors.append(invalid_value(f"{path}.kind", name, detail))
    return errors


def _variables(spec: JSONObject, scope: ExpressionScope) -> tuple[Errors, Variables]:
    errors: Errors = []
    variables = Variables()
    for index, variable in objects(spec, "variables"):
        path = f"spec.variables[{index}]"
        name, expression = text(variable, "name"), text(variable, "expression")
        if not name.strip():
            errors.append(required(f"{path}.name", "name is not specified"))
        elif not _IDENTIFIER.fullmatch(name) or name in RESERVED:
            errors.append(invalid_value(f"{path}.name", name, "must be a valid CEL identifier"))
        if not expression.strip():
            errors.append(required(f"{path}.expression", "expression is not specified"))
        else:
            errors += expression_errors(variables.add(name, expression, scope), expression, f"{path}.expression")
    return errors, variables


# Validating policies


def _validate_validating_policy(policy: JSONObject) -> Errors:
    spec = mapping(policy, "spec")
    scope = ExpressionScope("paramKind" in spec)
    errors, (faults, variables) = _common(spec, mutates=False), _variables(spec, scope)
    errors += faults
    validations, annotations = items(spec, "validations"), items(spec, "auditAnnotations")
    if not validations and not annotations:
        complaint = "validations or auditAnnotations must contain at least one item"
        return errors + [required(f"spec.{field}", complaint) for field in ("validations", "auditAnnotations")]
    if items(spec, "variables"):
        scope = scope._replace(variables=variables.types)
    for index, validation in objects(spec, "validations"):
        errors += _validation(validation, f"spec.validations[{index}]", scope)
    if len(annotations) > _MAX_ANNOTATIONS:
        complaint = f"must not have more than {_MAX_ANNOTATIONS} auditAnnotations"
        errors.append(invalid_value("spec.auditAnnotations", _internal_form(annotations), complaint))
    keys: set[str] = set()
    for index, annotation in objects(spec, "auditAnnotations"):
        path, key = f"spec.auditAnnotations[{index}]", text(annotation, "key")
        errors += _annotation(annotation, text(policy, "metadata", "name"), path, scope)
        if key in keys:
            errors.append(duplicate(f"{path}.key", key))
        keys.add(key)
    return errors


def _internal_form(annotations: list[JSONValue]) -> JSONValue:
    return [{"Key": text(each, "key"), "ValueExpression": text(each, "valueExpression")} for each in annotations]


def _validation(validation: JSONObject, path: str, scope: ExpressionScope) -> Errors:
    errors: Errors = []
    expression, by_expression = text(validation, "expression"), text(validation, "messageExpression")
    if not expression.strip():
        errors.append(required(f"{path}.expression", "expression is not specified"))
    else:
        errors += expression_errors(compiled(expression, scope, (BOOL,)), expression, f"{path}.expression")
    where = f"{path}.messageExpression"
    if by_expression and not by_expression.strip():
        errors.append(invalid_value(where, by_expression, "must be non-empty if specified"))
    elif by_expression:
        found = compiled(by_expression, scope._replace(authorizer=False), (STRING,))
        errors += expression_errors(found, by_expression, where)
    message = text(validation, "message")
    if message and not message.strip():
        errors.append(invalid_value(f"{path}.message", message, "must be non-empty if specified"))
    elif _LINE_END.search(message.strip()):
        errors.append(invalid_value(f"{path}.message", message, "must not contain line breaks"))
    if validation.get("reason") is not None:
        errors += one_of(f"{path}.reason", validation["reason"], _REASONS)
    return errors


def _annotation(annotation: JSONObject, policy: str, path: str, scope: ExpressionScope) -> Errors:
    key, expression = text(annotation, "key"), text(annotation, "valueExpression")
    errors: Errors = []
    if policy:
        errors += matching(f"{path}.key", f"{policy}/{key}", qualified_name)
    else:
        errors.append(invalid_value(f"{path}.key", key, "requires metadata.name be non-empty"))
    where, trimmed = f"{path}.valueExpression", expression.strip()
    if not trimmed:
        return [*errors, required(where, "valueExpression is not specified")]
    if len(trimmed.encode()) > _MAX_ANNOTATION_EXPRESSION:
        return [*errors, required(where, f"must not exceed {_MAX_ANNOTATION_EXPRESSION} bytes in length")]
    return errors + expression_errors(compiled(trimmed, scope, (STRING, NULL)), expression, where)


VALIDATING_POLICY = configuration_strategy(_validate_validating_policy, "spec")


# Mutating policies


def _validate_mutating_policy(policy: JSONObject) -> Errors:
    spec = mapping(policy, "spec")
    scope = ExpressionScope("paramKind" in spec)
    errors, (faults, variables) = _common(spec, mutates=True), _variables(spec, scope)
    errors += faults
    if not items(spec, "mutations"):
        errors.append(required("spec.mutations", "mutations must contain at least one item"))
    scope = scope._replace(variables=variables.types, patches=True)
    for index, mutation in objects(spec, "mutations"):
        errors += _mutation(mutation, f"spec.mutations[{index}]", scope)
    if not text(spec, "reinvocationPolicy"):
        errors.append(required("spec.reinvocationPolicy"))
    else:
        errors += one_of("spec.reinvocationPolicy", spec["reinvocationPolicy"], ("IfNeeded", "Never"))
    return errors


def _mutation(mutation: JSONObject, path: str, scope: ExpressionScope) -> Errors:
    patch_type = text(mutation, "patchType")
    if not patch_type:
        return [required(f"{path}.patchType")]
    if patch_type not in _PATCH_TYPES:
        return one_of(f"{path}.patchType", patch_type, sorted(_PATCH_TYPES))
    errors: Errors = []
    field = _PATCH_TYPES[patch_type]
    if not isinstance(mutation.get(field), dict):
        errors.append(required(f"{path}.{field}", f"must be specified when patchType is {patch_type}"))
    else:
        expression, where = text(mutation, field, "expression").strip(), f"{path}.{field}.expression"
        wanted = JSON_PATCHES if patch_type == "JSONPatch" else OBJECTS
        if not expression:
            errors.append(required(where))
        else:
            errors += expression_errors(compiled(expression, scope, (wanted,)), expression, where)
    for other in _PATCH_TYPES.values():
        if other != field and mutation.get(other) is not None:
            complaint = f"must not be specified when patchType is {patch_type}"
            errors.append(invalid_value(f"{path}.{other}", f"{{{other}}}", complaint))
    return errors


MUTATING_POLICY = configuration_strategy(_validate_mutating_policy, "spec")


# Bindings


def _validate_binding(binding: JSONObject, *, mutates: bool) -> Errors:
    spec = mapping(binding, "spec")
    name = text(spec, "policyName")
    errors: Errors = matching("spec.policyName", name, dns_subdomain) if name else [required("spec.policyName")]
    if isinstance(spec.get("paramRef"), dict):
        errors += _param_ref(mapping(spec, "paramRef"), "spec.paramRef")
    errors += validate_match_resources(mapping(spec, "matchResources"), "spec.matchResources")
    if mutates:
        errors += unsupported_operations(mapping(spec, "matchResources"), "spec.matchResources")
    return errors


def _param_ref(reference: JSONObject, path: str) -> Errors:
    errors: Errors = []
    name, selector = text(reference, "name"), reference.get("selector")
    exclusive = "name and selector are mutually exclusive"
    if name:
        errors += matching(f"{path}.name", name, path_segment)
        if selector is not None:
            errors.append(forbidden_field(f"{path}.name", exclusive))
    if selector is not None:
        errors += validate_selector(selector, f"{path}.selector")
        if name:
            errors.append(forbidden_field(f"{path}.selector", exclusive))
    if not name and selector is None:
        errors.append(required(path, "one of name or selector must be specified"))
    where, action = f"{path}.parameterNotFoundAction", text(reference, "parameterNotFoundAction")
    if not action:
        errors.append(required(where))
    elif action not in ("Deny", "Allow"):
        errors.append(FieldError("FieldValueNotSupported", where, action, 'supported values: "Deny", "Allow"'))
    return errors


def _validate_validating_binding(binding: JSONObject) -> Errors:
    errors = _validate_binding(binding, mutates=False)
    actions = items(binding, "spec", "validationActions")
    path = "spec.validationActions"
    if not actions:
        errors.append(required(path))
    for index, action in enumerate(actions):
        errors += one_of(f"{path}[{index}]", action, ("Audit", "Deny", "Warn"))
        if action in actions[:index]:
            errors.append(duplicate(f"{path}[{index}]", action))
    if "Deny" in actions and "Warn" in actions:
        complaint = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        errors.append(invalid_value(path, actions, complaint))
    return errors


VALIDATING_POLICY_BINDING = configuration_strategy(_validate_validating_binding, "spec")
MUTATING_POLICY_BINDING = configuration_strategy(lambda binding: _validate_binding(binding, mutates=True), "spec")
