"""ValidatingAdmissionPolicy: expressions that a write must fulfil; refusals, warnings and audit annotations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.admission.match_conditions import ConditionError, MatchConditions
from kubewright.controlplane.embedded.admission.policies import (
    Binding,
    BoundPolicy,
    ConfigurationError,
    PolicyContext,
)
from kubewright.controlplane.embedded.admission.request import AdmissionRequest
from kubewright.controlplane.embedded.apimachinery.document import items, text
from kubewright.controlplane.embedded.apimachinery.go_values import html_safe
from kubewright.controlplane.embedded.apimachinery.status import NotConverted, StatusError, forbidden
from kubewright.controlplane.embedded.cel.admission import (
    BUDGET,
    Compiled,
    EvaluationFailure,
    Evaluator,
    ExpressionScope,
    Inputs,
    OutOfBudget,
    Variables,
    compiled,
)
from kubewright.controlplane.embedded.cel.types import BOOL, NULL, STRING
from kubewright.controlplane.embedded.registry.resources import ResourceType

_MAX_MESSAGE_LENGTH = 5 * 1024
_MAX_ANNOTATION_LENGTH = 10 * 1024
_FAILURE_ANNOTATION = "validation.policy.admission.k8s.io/validation_failure"
_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}


class _Denial(NamedTuple):
    """What an expression denies: its position among all, and what is said about it."""

    position: int
    message: str
    reason: str = ""


class _Verdict(NamedTuple):
    """What a policy makes of a request. `errors` are those of annotations, which refuse the request in any case."""

    denials: Sequence[_Denial] = ()
    annotations: Sequence[tuple[str, str]] = ()
    errors: Sequence[str] = ()


class _Validation(NamedTuple):
    expression: Compiled
    message: Compiled | None
    source: JSONObject


class ValidatingPolicy:
    """The compiled expressions of a policy."""

    def __init__(self, spec: JSONObject) -> None:
        scope = ExpressionScope(params="paramKind" in spec)
        variables = Variables()
        for variable in items(spec, "variables"):
            variables.add(text(variable, "name"), text(variable, "expression"), scope)
        scope = scope._replace(variables=variables.types)
        self._fails = text(spec, "failurePolicy") != "Ignore"
        self._variables = variables.expressions
        self._conditions = MatchConditions(items(spec, "matchConditions"), scope, self._variables)
        without_authorizer = scope._replace(authorizer=False)
        self._validations: list[_Validation] = []
        for validation in items(spec, "validations"):
            message = text(validation, "messageExpression")
            self._validations.append(
                _Validation(
                    compiled(text(validation, "expression"), scope, (BOOL,)),
                    compiled(message, without_authorizer, (STRING,)) if message else None,
                    validation if isinstance(validation, dict) else {},
                )
            )
        self._annotations = [
            (text(each, "key"), compiled(text(each, "valueExpression").strip(), scope, (STRING, NULL)))
            for each in items(spec, "auditAnnotations")
        ]

    def validate(self, inputs: Inputs) -> _Verdict:
        """What the expressions find."""
        try:
            if not self._conditions.hold(inputs):
                return _Verdict()
            denials = list(self._denials(inputs))
            annotations, errors = self._annotated(inputs)
        except (ConditionError, OutOfBudget) as error:
            return _Verdict([_Denial(0, str(error))] if self._fails else ())
        return _Verdict(denials, annotations, errors)

    def _denials(self, inputs: Inputs) -> Iterator[_Denial]:
        evaluator = Evaluator(inputs, self._variables, BUDGET)
        results = [evaluator.evaluate(validation.expression) for validation in self._validations]
        if all(result is True for result in results):
            return
        messages = Evaluator(inputs._replace(authorizer=None, request_resource=None), self._variables, evaluator.left)
        for index, (validation, result) in enumerate(zip(self._validations, results, strict=True)):
            if isinstance(result, EvaluationFailure):
                if self._fails:
                    yield _Denial(index, result.message)
            elif result is not True:
                try:
                    message = _message(validation, messages)
                except OutOfBudget as error:
                    if self._fails:
                        yield _Denial(index, f"failed messageExpression: {error}")
                    continue
                yield _Denial(index, message, text(validation.source, "reason") or "Invalid")

    def _annotated(self, inputs: Inputs) -> tuple[list[tuple[str, str]], list[str]]:
        found: list[tuple[str, str]] = []
        errors: list[str] = []
        if not self._annotations:
            return found, errors
        evaluator = Evaluator(inputs._replace(authorizer=None, request_resource=None), self._variables, BUDGET)
        for key, expression in self._annotations:
            result = evaluator.evaluate(expression)
            if isinstance(result, str) and result.strip():
                found.append((key, result.strip()))
            elif isinstance(result, EvaluationFailure) and self._fails:
                errors.append(result.message)
        return found, errors


def _message(validation: _Validation, evaluator: Evaluator) -> str:
    """The message of an expression: the evaluated one if it is usable, else the given one, else the expression."""
    if validation.message is not None:
        result = evaluator.evaluate(validation.message)
        if isinstance(result, str):
            message = result.strip()
            if message and "\n" not in message and len(message.encode()) <= _MAX_MESSAGE_LENGTH:
                return message
    given = text(validation.source, "message").strip()
    return given or f"failed expression: {text(validation.source, 'expression').strip()}"


class _Refusal(NamedTuple):
    message: str
    reason: str


def validate_by_policies(
    policies: Sequence[BoundPolicy[ValidatingPolicy]], request: AdmissionRequest, context: PolicyContext
) -> None:
    """Apply all policies to a request: warn, annotate, or raise StatusError for the first that denies it."""
    if context.is_exempt(request):
        return
    refusals: list[_Refusal] = []
    for policy in policies:
        resource = context.match(policy.matcher, request)
        if resource is not None:
            refusals += _applied(policy, resource, request, context)
    if refusals:
        raise _refused(request, refusals[0])


def _applied(
    policy: BoundPolicy[ValidatingPolicy], resource: ResourceType, request: AdmissionRequest, context: PolicyContext
) -> Iterator[_Refusal]:
    if "paramKind" in policy.spec:
        try:
            context.parameter_resource(policy.spec)
        except ConfigurationError as error:
            if policy.fails:
                message = f"failed to configure policy: {error}"
                yield _Refusal(f"ValidatingAdmissionPolicy '{policy.name}' denied request: {message}", "Invalid")
            return
    annotations: dict[str, list[str]] = {}
    for binding in policy.bindings:
        if context.match(binding.matcher, request) is None:
            continue
        who = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
        try:
            parameters = list(context.parameters(policy.spec, binding, request.namespace, request.settled))
        except ConfigurationError as error:
            if policy.fails:
                yield _Refusal(f"{who} denied request: failed to configure binding: {error}", "Invalid")
            continue
        try:
            inputs = context.inputs(request, resource)
        except NotConverted as error:
            if policy.fails:
                message = f"failed to configure binding: failed to convert object version: {error.message}"
                yield _Refusal(f"{who} denied request: {message}", "Invalid")
            continue
        for parameter in parameters:
            verdict = policy.evaluator.validate(inputs._replace(params=parameter))
            for denial in verdict.denials:
                yield from _enforced(denial, who, binding, request)
            for key, value in verdict.annotations:
                values = annotations.setdefault(key, [])
                cut = value.encode()[:_MAX_ANNOTATION_LENGTH].decode(errors="ignore")
                if cut not in values:
                    values.append(cut)
            for message in verdict.errors:
                yield _Refusal(f"{who} denied request: {message}", "Invalid")
    for key, values in annotations.items():
        request.call.annotations.setdefault(f"{policy.name}/{key}", ", ".join(values))


def _enforced(denial: _Denial, who: str, binding: Binding, request: AdmissionRequest) -> Iterator[_Refusal]:
    """Do what the binding says about a denial."""
    for action in items(binding.spec, "validationActions"):
        if action == "Deny":
            yield _Refusal(f"{who} denied request: {denial.message}", denial.reason or "Invalid")
        elif action == "Warn":
            request.call.warnings.append(f"Validation failed for {who}: {denial.message}")
        elif action == "Audit":
            failure: JSONObject = {
                "message": denial.message,
                "policy": text(binding.spec, "policyName"),
                "binding": binding.name,
                "expressionIndex": denial.position,
                "validationActions": items(binding.spec, "validationActions"),
            }
            shown = html_safe(msgspec.json.encode([failure])).decode()
            request.call.annotations.setdefault(_FAILURE_ANNOTATION, shown)


def _refused(request: AdmissionRequest, refusal: _Refusal) -> StatusError:
    resource = request.call.resource
    error = forbidden(resource.plural, resource.gvk.group, request.displayed_name, refusal.message)
    details: JSONObject = {**(error.details or {}), "causes": [{"message": refusal.message}]}
    return StatusError(_CODES.get(refusal.reason, 422), refusal.reason, error.message, details=details)
