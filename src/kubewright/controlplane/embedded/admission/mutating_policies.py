"""MutatingAdmissionPolicy: expressions that change a write, by a JSON patch or by merging in what they make.

What a policy sets belongs to no field manager. A policy that is to be reinvoked if needed runs once more after all
others, when any of them ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.admission.match_conditions import ConditionError, MatchConditions
from kubewright.controlplane.embedded.admission.mutation import put_back, unborn, why_not
from kubewright.controlplane.embedded.admission.policies import BoundPolicy, ConfigurationError, PolicyContext
from kubewright.controlplane.embedded.admission.request import AdmissionRequest
from kubewright.controlplane.embedded.apimachinery.document import items, text
from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.apimachinery.status import StatusError, forbidden
from kubewright.controlplane.embedded.cel.admission import (
    BUDGET,
    JSON_PATCHES,
    OBJECTS,
    Compiled,
    CompileError,
    EvaluationFailure,
    Evaluator,
    ExpressionScope,
    Inputs,
    OutOfBudget,
    Variables,
    compiled,
)
from kubewright.controlplane.embedded.cel.library.patches import NoJSON, PatchMessage, as_json, misplaced
from kubewright.controlplane.embedded.cel.values import elements_of
from kubewright.controlplane.embedded.managedfields import merge_configuration
from kubewright.controlplane.embedded.patch.json_patch import apply_json_patch
from kubewright.controlplane.embedded.patch.result import DoesNotApply
from kubewright.controlplane.embedded.registry.resources import ResourceType


class MutationError(Exception):
    """A mutation that cannot be applied."""


class _Mutation(NamedTuple):
    by_patch: bool
    expression: Compiled


class MutatingPolicy:
    """The compiled expressions of a policy."""

    def __init__(self, spec: JSONObject) -> None:
        scope = ExpressionScope(params="paramKind" in spec)
        variables = Variables()
        for variable in items(spec, "variables"):
            variables.add(text(variable, "name"), text(variable, "expression"), scope)
        scope = scope._replace(variables=variables.types)
        self.is_reinvoked = text(spec, "reinvocationPolicy") == "IfNeeded"
        self._variables = variables.expressions
        self.conditions = MatchConditions(items(spec, "matchConditions"), scope, self._variables)
        patches = scope._replace(patches=True)
        self.mutations: list[_Mutation] = []
        for mutation in items(spec, "mutations"):
            by_patch = text(mutation, "patchType") == "JSONPatch"
            source = text(mutation, "jsonPatch" if by_patch else "applyConfiguration", "expression")
            wanted = JSON_PATCHES if by_patch else OBJECTS
            self.mutations.append(_Mutation(by_patch, compiled(source.strip(), patches, (wanted,))))

    def mutated(self, mutation: _Mutation, inputs: Inputs, resource: ResourceType) -> JSONObject:
        """The object after a mutation, with its kind. Raises MutationError."""
        if isinstance(mutation.expression, CompileError):
            raise MutationError(str(mutation.expression))
        try:
            result = Evaluator(inputs, self._variables, BUDGET).evaluate(mutation.expression)
        except OutOfBudget as error:
            raise MutationError(str(error)) from None
        if isinstance(result, EvaluationFailure):
            raise MutationError(result.message)
        live = inputs.new_object if isinstance(inputs.new_object, dict) else {}
        return _patched(live, result) if mutation.by_patch else _merged(live, result, resource)


def _patched(live: JSONObject, result: object) -> JSONObject:
    steps: list[JSONValue] = [_step(step) for step in elements_of(result) or ()]
    try:
        return apply_json_patch(live, steps)
    except DoesNotApply as error:
        if error.is_test:
            return live
        raise MutationError(f"JSON Patch: {why_not(error.operation)}") from None


def _step(step: object) -> JSONObject:
    if not isinstance(step, PatchMessage):
        raise MutationError("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch")
    fields = step.fields
    # That these are texts was checked when it was made.
    made: JSONObject = {name: str(fields.get(name, "")) for name in ("op", "path")}
    if fields.get("from"):
        made["from"] = str(fields["from"])
    if "value" in fields:
        if isinstance(fields["value"], PatchMessage) and (wrong := misplaced(fields["value"])):
            raise MutationError(f"type mismatch: {wrong}")
        made["value"] = _json(fields["value"])
    return made


def _json(value: object) -> JSONValue:
    try:
        return as_json(value)
    except NoJSON as error:
        why = f"JSONPath valueExpression evaluated to a type that could not marshal to JSON: {error}"
        raise MutationError(why) from None


def _merged(live: JSONObject, result: object, resource: ResourceType) -> JSONObject:
    if wrong := misplaced(result):
        raise MutationError(f"type mismatch: {wrong}")
    configuration = _json(result)
    if not isinstance(configuration, dict):
        raise MutationError("invalid return type")
    kind: JSONObject = {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind}
    try:
        return merge_configuration(live, {**configuration, **kind}, resource.structure)
    except ValueError as error:
        raise MutationError(f"error applying patch: {error}") from None


class Mutator:
    """Applies policies to one request, and remembers which of them are to run again."""

    def __init__(self, request: AdmissionRequest, context: PolicyContext) -> None:
        self._request = request
        self._context = context
        self._invoked: set[tuple[str, str, str]] = set()
        self.has_run = False
        """Whether any policy changed the object, or could have."""

    def run(self, policies: Sequence[BoundPolicy[MutatingPolicy]], *, again: bool = False) -> None:
        """Apply the policies; `again`, only those that are reinvoked. Raises StatusError."""
        request = self._request
        if self._context.is_exempt(request) or request.kind != request.call.resource.gvk:
            return
        errors: list[str] = []
        reasons: list[str] = []
        for policy in policies:
            resource = self._context.match(policy.matcher, request)
            if resource is None or (again and not policy.evaluator.is_reinvoked):
                continue
            for message, reason in self._apply(policy, resource, again=again):
                if policy.fails:
                    errors.append(message)
                    reasons.append(reason)
        if errors:
            target = request.call.resource
            error = forbidden(target.plural, target.gvk.group, request.displayed_name, "")
            causes: list[JSONValue] = [{"message": message} for message in errors]
            details: JSONObject = {**(error.details or {}), "causes": causes}
            raise StatusError(error.code, reasons[0] or error.reason, errors[0], details=details)

    def _apply(
        self, policy: BoundPolicy[MutatingPolicy], resource: ResourceType, *, again: bool
    ) -> Iterator[tuple[str, str]]:
        """What is wrong, with the reason of the status."""
        if "paramKind" in policy.spec:
            try:
                self._context.parameter_resource(policy.spec)
            except ConfigurationError as error:
                yield f"policy {quoted(policy.name)} denied request: failed to configure policy: {error}", ""
                return
        for binding in policy.bindings:
            if self._context.match(binding.matcher, self._request) is None:
                continue
            who = f"policy '{policy.name}' with binding '{binding.name}' denied request"
            try:
                settled = self._request.settled
                parameters = list(self._context.parameters(policy.spec, binding, self._request.namespace, settled))
            except ConfigurationError as error:
                yield f"{who}: failed to configure binding: {error}", ""
                continue
            for parameter in parameters:
                key = policy.name, binding.name, text(parameter, "metadata", "uid")
                if not again:
                    self._invoked.add(key)
                elif key not in self._invoked:
                    continue
                for message in self._mutate(policy.evaluator, resource, parameter):
                    yield f"{who}: {message}", "Invalid"

    def _mutate(self, policy: MutatingPolicy, resource: ResourceType, parameter: JSONObject | None) -> Iterator[str]:
        try:
            if not policy.conditions.hold(self._inputs(resource, parameter)):
                return
        except ConditionError as error:
            yield str(error)
            return
        for mutation in policy.mutations:
            try:
                changed = policy.mutated(mutation, self._inputs(resource, parameter), resource)
            except MutationError as error:
                yield str(error)
                continue
            put_back(self._request, changed, resource, strict=True)
            self.has_run = True

    def _inputs(self, resource: ResourceType, parameter: JSONObject | None) -> Inputs:
        inputs = self._context.inputs(self._request, resource)
        return inputs._replace(params=parameter, new_object=unborn(self._request, resource))
