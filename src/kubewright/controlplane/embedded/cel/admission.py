"""Expressions of admission: what they may name, and how they run within a budget.

Objects are seen as they are, without a schema: that a field does not exist is found when an expression runs. Variables
of a policy are evaluated when they are first read, once per `Evaluator`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.cel.cost.metering import CostExceeded, Meter
from kubewright.controlplane.embedded.cel.environment import PATCHES, RULES
from kubewright.controlplane.embedded.cel.expressions import checked
from kubewright.controlplane.embedded.cel.library.authorizer import AUTHORIZER, RESOURCE_CHECK
from kubewright.controlplane.embedded.cel.library.patches import JSON_PATCH, OBJECT
from kubewright.controlplane.embedded.cel.program import InstantiationError, Program
from kubewright.controlplane.embedded.cel.source import ExpressionError
from kubewright.controlplane.embedded.cel.types import (
    BOOL,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    CelType,
    list_of,
    map_of,
)
from kubewright.controlplane.embedded.cel.values import EvaluationError, Keyed

BUDGET: Final = 10_000_000
"""What the expressions of a policy may cost together for one request."""
MATCH_BUDGET: Final = 2_500_000
"""What match conditions may cost together for one request."""

OBJECTS: Final = CelType("struct", OBJECT)
JSON_PATCHES: Final = list_of(CelType("struct", JSON_PATCH))

_NAMES: Final = (
    "object",
    "oldObject",
    "namespaceObject",
    "request",
    "params",
    "authorizer",
    "authorizer.requestResource",
    "variables",
)


def _struct(name: str, /, **fields: CelType) -> CelType:
    return CelType("struct", f"kubernetes.{name}", fields=fields)


_TEXTS = list_of(STRING)
_LABELS = map_of(STRING, STRING)
_KIND = _struct("GroupVersionKind", group=STRING, version=STRING, kind=STRING)
_RESOURCE = _struct("GroupVersionResource", group=STRING, version=STRING, resource=STRING)
_USER = _struct("UserInfo", username=STRING, uid=STRING, groups=_TEXTS, extra=map_of(STRING, _TEXTS))
_REQUEST = _struct(
    "AdmissionRequest",
    kind=_KIND,
    resource=_RESOURCE,
    subResource=STRING,
    requestKind=_KIND,
    requestResource=_RESOURCE,
    requestSubResource=STRING,
    name=STRING,
    namespace=STRING,
    operation=STRING,
    userInfo=_USER,
    dryRun=BOOL,
    options=DYN,
)
_CONDITION = _struct(
    "NamespaceCondition",
    status=STRING,
    type=STRING,
    lastTransitionTime=TIMESTAMP,
    message=STRING,
    reason=STRING,
)
_NAMESPACE_METADATA = _struct(
    "NamespaceMetadata",
    name=STRING,
    generateName=STRING,
    namespace=STRING,
    labels=_LABELS,
    annotations=_LABELS,
    UID=STRING,
    creationTimestamp=TIMESTAMP,
    deletionGracePeriodSeconds=INT,
    deletionTimestamp=TIMESTAMP,
    generation=INT,
    resourceVersion=STRING,
    finalizers=_TEXTS,
)
_NAMESPACE = _struct(
    "Namespace",
    metadata=_NAMESPACE_METADATA,
    spec=_struct("NamespaceSpec", finalizers=_TEXTS),
    status=_struct("NamespaceStatus", conditions=list_of(_CONDITION), phase=STRING),
)


class ExpressionScope(NamedTuple):
    """What an expression may name besides the request and its objects; `variables` is None where there are none."""

    params: bool
    authorizer: bool = True
    variables: Mapping[str, CelType] | None = None
    patches: bool = False

    def declared(self) -> dict[str, CelType]:
        """The types of all that can be named."""
        found = {"object": DYN, "oldObject": DYN, "namespaceObject": _NAMESPACE, "request": _REQUEST}
        if self.params:
            found["params"] = DYN
        if self.authorizer:
            found["authorizer"] = AUTHORIZER
            found["authorizer.requestResource"] = RESOURCE_CHECK
        if self.variables is not None:
            found["variables"] = CelType("struct", "kubernetes.variables", fields=self.variables)
        return found


class CompileError(Exception):
    """An expression that cannot run, worded as the server words it; `internal` is how it classifies the error."""

    def __init__(self, message: str, *, internal: bool = False) -> None:
        super().__init__(message)
        self.internal = internal


class AdmissionExpression:
    """An expression that is ready to run."""

    def __init__(self, source: str, scope: ExpressionScope, wanted: Sequence[CelType] = ()) -> None:
        """CompileError when the expression makes no sense, or does not result in one of the `wanted` types."""
        try:
            expression = checked(source, scope.declared(), PATCHES if scope.patches else RULES)
        except ExpressionError as error:
            raise CompileError(f"compilation failed: {error}") from None
        if wanted and expression.type not in wanted:
            raise CompileError(f"must evaluate to {_one_of(wanted)} but got {_type_text(expression.type)}")
        self.source = source
        self.type = expression.type
        self._meter = Meter()
        try:
            self._program = Program(expression.tree, _NAMES, self._meter)
        except InstantiationError as error:
            raise CompileError(f"program instantiation failed: {error}", internal=True) from None

    def run(self, values: Sequence[object]) -> tuple[object, int]:
        """The result with its cost; an error is a result, too."""
        self._meter.spent = 0
        try:
            result = self._program.run(*values)
        except (EvaluationError, CostExceeded) as error:
            return error, self._meter.spent
        return result, self._meter.spent


def _one_of(types: Sequence[CelType]) -> str:
    shown = [_type_text(type_) for type_ in types]
    return shown[0] if len(shown) == 1 else f"one of [{' '.join(shown)}]"


def _type_text(type_: CelType) -> str:
    return "null_type" if type_ == NULL else str(type_)


Compiled: TypeAlias = AdmissionExpression | CompileError


def compiled(source: str, scope: ExpressionScope, wanted: Sequence[CelType] = ()) -> Compiled:
    """The expression, or why it cannot run."""
    try:
        return AdmissionExpression(source, scope, wanted)
    except CompileError as error:
        return error


class OutOfBudget(Exception):
    """The expressions cost more together than they may."""

    def __init__(self) -> None:
        super().__init__("validation failed due to running out of cost budget, no further validation rules will be run")


class EvaluationFailure(NamedTuple):
    """What an expression results in when it has no value."""

    message: str


class Inputs(NamedTuple):
    """The values of what expressions name, in the order in which they are declared."""

    new_object: object
    old_object: object
    namespace_object: object
    request: object
    params: object = None
    authorizer: object = None
    request_resource: object = None


class Evaluator:
    """Runs expressions on the same values, at the charge of one budget."""

    def __init__(self, inputs: Inputs, variables: Mapping[str, Compiled], budget: int) -> None:
        self._values = (*inputs, _Variables(variables, self))
        self._variables_cost = 0
        self.left = budget

    def evaluate(self, expression: Compiled) -> object:
        """The result, or a EvaluationFailure. Raises OutOfBudget."""
        if isinstance(expression, CompileError):
            return EvaluationFailure(f"compilation error: {expression}")
        self._variables_cost = 0
        result, cost = expression.run(self._values)
        self.left -= cost + self._variables_cost
        if self.left < 0:
            raise OutOfBudget
        if isinstance(result, EvaluationError | CostExceeded):
            return EvaluationFailure(f"expression '{expression.source}' resulted in error: {result}")
        return result

    def variable(self, name: str, expression: Compiled) -> object:
        """The value of a variable. Raises EvaluationError."""
        if isinstance(expression, CompileError):
            raise EvaluationError(f"composited variable {quoted(name)} fails to compile: {expression}")
        result, cost = expression.run(self._values)
        self._variables_cost += cost
        if isinstance(result, EvaluationError | CostExceeded):
            raise EvaluationError(f"composited variable {quoted(name)} fails to evaluate: {result}")
        return result


class _Variables(Keyed):
    """`variables`: each is evaluated when it is first read."""

    __slots__ = ("_evaluator", "_expressions", "_known")

    def __init__(self, expressions: Mapping[str, Compiled], evaluator: Evaluator) -> None:
        self._expressions = expressions
        self._evaluator = evaluator
        self._known: dict[str, object] = {}

    @property
    def keys(self) -> list[str]:
        """The names of all variables."""
        return list(self._expressions)

    def __len__(self) -> int:
        return len(self._expressions)

    def find(self, key: object) -> tuple[bool, object]:
        """The value of a variable."""
        if not isinstance(key, str) or key not in self._expressions:
            return False, None
        if key not in self._known:
            try:
                self._known[key] = self._evaluator.variable(key, self._expressions[key])
            except EvaluationError as error:
                self._known[key] = error
        value = self._known[key]
        if isinstance(value, EvaluationError):
            raise value
        return True, value

    def equals(self, other: object) -> bool:
        """Only itself."""
        return self is other


class Variables:
    """The variables of a policy, added in their order: each may use those before it."""

    def __init__(self) -> None:
        self.types: dict[str, CelType] = {}
        self.expressions: dict[str, Compiled] = {}

    def add(self, name: str, source: str, scope: ExpressionScope) -> Compiled:
        """Compile one more. What does not compile is of any type."""
        made = compiled(source, scope._replace(variables=self.types))
        self.types[name] = DYN if isinstance(made, CompileError) else _remembered(made.type)
        self.expressions[name] = made
        return made


def _remembered(type_: CelType) -> CelType:
    """The type under which a variable is known: those of libraries are not kept."""
    if type_.kind in ("list", "map"):
        return CelType(type_.kind, type_.name, tuple(map(_remembered, type_.parameters)))
    return DYN if type_.kind in ("struct", "opaque", "type", "parameter") else type_
