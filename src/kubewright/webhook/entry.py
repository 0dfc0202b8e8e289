"""A webhook as an API server gets to know it: a function, the path it is served at, and the requests it is for.

What the server would refuse in a configuration is refused where the function is decorated.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, Literal, TypeAlias, TypedDict, TypeVar, Unpack

from kubewright.api.admissionregistration.v1 import MatchCondition, RuleWithOperations
from kubewright.api.errors import KubernetesError
from kubewright.api.meta import LabelSelector, LabelSelectorRequirement
from kubewright.api.selectors import LabelRequirement, Labels, label_matcher
from kubewright.webhook.review import AdmissionResponse, ReviewRequest

FunctionT_co = TypeVar("FunctionT_co", covariant=True)

FailurePolicy: TypeAlias = Literal["Fail", "Ignore"]
MatchPolicy: TypeAlias = Literal["Equivalent", "Exact"]
ReinvocationPolicy: TypeAlias = Literal["Never", "IfNeeded"]
SideEffects: TypeAlias = Literal["None", "NoneOnDryRun"]

_DOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LABEL_VALUE = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_QUALIFIED_NAME = rf"({_DOMAIN}/)?{_LABEL_VALUE}"
_MAX_CONDITIONS = 64
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "failure_policy": ("Fail", "Ignore"),
    "match_policy": ("Equivalent", "Exact"),
    "reinvocation_policy": ("Never", "IfNeeded"),
    "side_effects": ("None", "NoneOnDryRun"),
}
_OPERATORS = {"in": "In", "notin": "NotIn", "!=": "NotIn", "exists": "Exists", "!": "DoesNotExist"}
# Words of kubebuilder's marker and of the API.
_WORDS = {
    "operations": "on",
    "operation": "on",
    "verbs": "on",
    "timeout_seconds": "timeout",
    "labels": "object_selector",
    "selector": "object_selector",
    "namespaces": "namespace_selector",
    "when": "match_conditions",
    "where": "match_conditions",
}


class FunctionMistake(KubernetesError):
    """What a function did cannot be an answer. The message continues its name: "it returned a str: expected …"."""


class EntryOptions(TypedDict, total=False):
    """What `@defaults`, `@validates` and `@handles` have in common: when the API server calls a webhook, and how."""

    name: str
    """A domain of at least three parts, which users see in denials. By default it is made of the path."""
    object_selector: Labels
    """Only objects with such labels, before or after the change; the client chooses them."""
    namespace_selector: Labels
    """Only objects in namespaces with such labels: `"kubernetes.io/metadata.name notin (kube-system)"`."""
    match_conditions: Mapping[str, str]
    """Only requests for which all these CEL expressions are true, by name:
    `{"not-a-node": "!request.userInfo.username.startsWith('system:node:')"}`."""
    match_policy: MatchPolicy
    """Equivalent, the default: also requests in other versions of the kind, converted. Exact: only this version."""
    failure_policy: FailurePolicy
    """What becomes of a request when the webhook cannot be asked. Fail, the default: it fails too."""
    side_effects: SideEffects
    """None, the default, or NoneOnDryRun for a function that checks `review.is_dry_run`."""
    timeout: int
    """The seconds that the API server waits, 1 to 30; by default 10."""


class MutatingOptions(EntryOptions, total=False):
    """Those of a webhook that mutates."""

    reinvocation_policy: ReinvocationPolicy
    """IfNeeded: once more when a later webhook changed the object. By default Never."""


class AdmissionWebhook(Generic[FunctionT_co]):
    """A function, the path it is served at, and the requests it is for; made by `defaults`, `validates`, `handles`."""

    def __init__(
        self,
        function: FunctionT_co,
        answer: Callable[[ReviewRequest], Awaitable[AdmissionResponse] | AdmissionResponse],
        *,
        path: str,
        is_mutating: bool,
        rules: Sequence[RuleWithOperations],
        **options: Unpack[MutatingOptions],
    ) -> None:
        if not path.startswith("/"):
            raise ValueError(f'the path of a webhook begins with "/": "/{path}", not "{path}"')
        where = f"the webhook {path}"
        _check_options(where, options, is_mutating)
        self._function = function
        self.answer = answer
        self.path = path
        self.is_mutating = is_mutating
        self.rules = tuple(rules)
        self.name = _entry_name(where, options.get("name") or _default_name(path))
        """The name of its entry in a configuration."""
        self.object_selector = _selector(f"{where}: object_selector", options.get("object_selector"))
        self.namespace_selector = _selector(f"{where}: namespace_selector", options.get("namespace_selector"))
        self.match_conditions = _conditions(where, options.get("match_conditions", {}))
        self.match_policy = options.get("match_policy")
        self.reinvocation_policy = options.get("reinvocation_policy")
        self.failure_policy: FailurePolicy = options.get("failure_policy", "Fail")
        self.side_effects: SideEffects = options.get("side_effects", "None")
        self.timeout = options.get("timeout", 10)
        self.function_name: str = getattr(function, "__name__", type(function).__name__)
        """For messages."""

    @property
    def function(self) -> FunctionT_co:
        """The function that was decorated."""
        return self._function

    def __repr__(self) -> str:
        return f"<{self.function_name} at {self.path}>"


def check_function(decorator: str, function: object, argument: str) -> None:
    """Raise a TypeError unless it can be called with one argument."""
    if isinstance(function, AdmissionWebhook):
        raise TypeError(
            f"{decorator}: {function.function_name} is the webhook {function.path} already; for another one, write "
            f"{decorator[1:]}({function.function_name}.function)"
        )
    if not callable(function):
        raise TypeError(f"{decorator}: expected a function, not {function!r}")
    name = getattr(function, "__name__", type(function).__name__)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # written in C
    try:
        signature.bind(None)
    except TypeError:
        is_method = next(iter(signature.parameters), "") == "self"
        fix = f"; a method is decorated where its object is at hand: {decorator[1:]}(self.{name})" if is_method else ""
        raise TypeError(f"{decorator}: {name}{signature} cannot be called with the {argument} alone{fix}") from None


def _check_options(where: str, options: MutatingOptions, is_mutating: bool) -> None:
    known = MutatingOptions.__annotations__.keys() if is_mutating else EntryOptions.__annotations__.keys()
    given: Mapping[str, object] = {**options}
    for option, value in given.items():
        if option not in known:
            from difflib import get_close_matches

            close = [_WORDS[option]] if option in _WORDS else get_close_matches(option, known, n=1)
            fix = f"write {close[0]}=" if close else f"there are {', '.join(sorted(known))}"
            raise TypeError(f"{where} has no option {option}: {fix}")
        choices = _CHOICES.get(option)
        if choices is not None and value not in choices:
            raise ValueError(f'{where}: {option}="{value}", expected {" or ".join(map(repr, choices))}')
    timeout = given.get("timeout", 10)
    if not isinstance(timeout, int) or not 1 <= timeout <= 30:
        raise ValueError(f"{where}: timeout={timeout}, expected 1 to 30 seconds")


def _default_name(path: str) -> str:
    return f"{re.sub('[^a-z0-9-]+', '-', path.lower()).strip('-')}.kubewright.dev"


def _entry_name(where: str, name: str) -> str:
    if len(name) > 253 or name.count(".") < 2 or not re.fullmatch(_DOMAIN, name):
        raise ValueError(
            f'{where}: "{name}" cannot be the name of a webhook: expected a domain of at least three parts in lower '
            'case, such as "kiosks.town.example.com"'
        )
    return name


def _selector(where: str, labels: Labels | None) -> LabelSelector | None:
    if labels is None:
        return None
    try:
        requirements = label_matcher(labels).requirements
        for each in requirements:
            _check_requirement(each)
    except (ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from None
    if isinstance(labels, LabelSelector):
        return labels
    selector = LabelSelector()
    for each in requirements:
        if each.operator in ("=", "==") and each.key not in selector.match_labels:
            selector.match_labels[each.key] = each.values[0]
        else:
            operator = _OPERATORS.get(each.operator, "In")
            expression = LabelSelectorRequirement(key=each.key, operator=operator, values=list(each.values))
            selector.match_expressions.append(expression)
    return selector


def _check_requirement(requirement: LabelRequirement) -> None:
    if requirement.operator in (">", "<"):
        raise ValueError(f'"{requirement}": a selector of objects has no {requirement.operator}')
    if not re.fullmatch(_QUALIFIED_NAME, requirement.key):
        raise ValueError(f'"{requirement.key}" is not the name of a label')
    for value in requirement.values:
        if value and not re.fullmatch(_LABEL_VALUE, value):
            raise ValueError(f'"{value}" is not the value of a label: expected at most 63 letters, digits and - _ .')


def _conditions(where: str, conditions: Mapping[str, str]) -> tuple[MatchCondition, ...]:
    given: object = conditions
    if not isinstance(given, Mapping):
        raise TypeError(f'{where}: match_conditions are expressions by name: {{"not-a-node": "..."}}, not {given!r}')
    if len(conditions) > _MAX_CONDITIONS:
        raise ValueError(f"{where}: {len(conditions)} match_conditions, expected at most {_MAX_CONDITIONS}")
    for name, expression in conditions.items():
        if not re.fullmatch(_QUALIFIED_NAME, name):
            raise ValueError(
                f'{where}: "{name}" cannot be the name of a match condition: expected at most 63 letters, digits and '
                '- _ ., such as "not-a-node"'
            )
        if not expression.strip():
            raise ValueError(f'{where}: the match condition "{name}" has no expression')
    return tuple(MatchCondition(name=name, expression=expression) for name, expression in conditions.items())
