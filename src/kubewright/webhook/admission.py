"""Admission as functions: defaults and validation of a kind, and plain handlers for everything else.

    @defaults(PodManager)
    def default_image(review: Review[PodManager]) -> None:
        review.object.spec.image = review.object.spec.image or "nginx"

    @validates(PodManager)
    def check_replicas(review: Review[PodManager]) -> list[FieldCause]:
        if review.old is not None and review.object.spec.replicas < review.old.spec.replicas:
            return [FieldCause.forbidden("spec.replicas", "may not shrink")]
        return []

    serve_webhooks(manager, default_image, check_replicas)

A function may be `async def`; a plain one runs in the event loop and must not block. What a function needs besides the
review it has from where it is defined: `validates(PodManager)(self.check)`, or a function within `setup`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Generic, Literal, TypeAlias, TypeVar, cast

from kubewright.api.admissionregistration.v1 import RuleWithOperations
from kubewright.api.authentication.v1 import UserInfo
from kubewright.api.codec import decode_json
from kubewright.api.errors import DecodeError
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject
from kubewright.api.origin import joined, merged
from kubewright.api.resources import Object, ResourceInfo, resource_info
from kubewright.webhook.denial import Denied, FieldCause, InvalidObject
from kubewright.webhook.json_patch import json_patch
from kubewright.webhook.review import AdmissionResponse, Operation, ReviewRequest

ObjectT = TypeVar("ObjectT", bound=Object)
FunctionT_co = TypeVar("FunctionT_co", covariant=True)


class Review(Generic[ObjectT]):
    """What a function of a kind decides about."""

    def __init__(self, object: ObjectT, *, old: ObjectT | None = None, request: ReviewRequest | None = None) -> None:
        """Of tests: `check_replicas.function(Review(new, old=old))`."""
        self.object = object
        """The object as it will be; of DELETE, as it is."""
        self.old = old
        """The object as it is, of UPDATE; otherwise None."""
        self.request = request or ReviewRequest(operation="CREATE" if old is None else "UPDATE")
        """The request as the API server describes it."""
        self.warnings: list[str] = []
        self.audit_annotations: dict[str, str] = {}

    @property
    def operation(self) -> Operation:
        """CREATE, UPDATE or DELETE."""
        return self.request.operation

    @property
    def user(self) -> UserInfo:
        """The user whose request it is."""
        return self.request.user_info

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing will be stored: nothing else may be changed then."""
        return bool(self.request.dry_run)

    def warn(self, message: str) -> None:
        """Show a warning to the user, whether or not the request is admitted. The server cuts long ones."""
        self.warnings.append(message)


DefaultsFunction: TypeAlias = Callable[[Review[ObjectT]], Awaitable[None] | None]
"""Changes `review.object`."""
ValidatesFunction: TypeAlias = Callable[
    [Review[ObjectT]], Awaitable[Sequence[FieldCause] | None] | Sequence[FieldCause] | None
]
"""Returns the fields that are wrong, or raises `Denied`; None or an empty list admits the request."""
HandlerFunction: TypeAlias = Callable[[ReviewRequest], Awaitable[AdmissionResponse] | AdmissionResponse]

FailurePolicy: TypeAlias = Literal["Fail", "Ignore"]
SideEffects: TypeAlias = Literal["None", "NoneOnDryRun"]


class AdmissionWebhook(Generic[FunctionT_co]):
    """A function, the path it is served at, and the requests it is for; made by `defaults`, `validates`, `handles`."""

    def __init__(
        self,
        function: FunctionT_co,
        answer: Callable[[ReviewRequest], Awaitable[AdmissionResponse]],
        *,
        path: str,
        is_mutating: bool,
        rules: Sequence[RuleWithOperations],
        failure_policy: FailurePolicy,
        side_effects: SideEffects,
        timeout: int,
    ) -> None:
        if not path.startswith("/"):
            raise ValueError(f'the path of a webhook begins with "/": "/{path}", not "{path}"')
        if not 1 <= timeout <= 30:
            raise ValueError(f"the webhook {path}: timeout={timeout}, expected 1 to 30 seconds")
        self._function = function
        self.answer = answer
        self.path = path
        self.is_mutating = is_mutating
        self.rules = tuple(rules)
        self.failure_policy = failure_policy
        self.side_effects = side_effects
        self.timeout = timeout
        self.name: str = getattr(function, "__name__", type(function).__name__)
        """That of the function, for messages."""

    @property
    def function(self) -> FunctionT_co:
        """The function that was decorated."""
        return self._function


def defaults(
    kind: type[ObjectT],
    *,
    on: Iterable[Operation] = ("CREATE", "UPDATE"),
    subresource: str = "",
    path: str = "",
    failure_policy: FailurePolicy = "Fail",
    side_effects: SideEffects = "None",
    timeout: int = 10,
) -> Callable[[DefaultsFunction[ObjectT]], AdmissionWebhook[DefaultsFunction[ObjectT]]]:
    """Have a function change objects before they are validated and stored: `/mutate-<group>-<version>-<kind>`.

    The answer is the difference between what was sent and what the function made of it: fields that the type does not
    know are untouched, and so are defaults of the type. The function may also raise `Denied`.
    """
    info = resource_info(kind)

    def decorate(function: DefaultsFunction[ObjectT]) -> AdmissionWebhook[DefaultsFunction[ObjectT]]:
        async def answer(request: ReviewRequest) -> AdmissionResponse:
            review = _review(kind, info, request)
            returned: object = function(review)
            if inspect.isawaitable(returned):
                returned = await returned
            if returned is not None:
                raise TypeError(f"it returned {returned!r}: a function of @defaults changes review.object")
            before = cast(JSONObject, decode_json(request.object))
            after = cast(JSONObject, decode_json(joined(merged(review.object))))
            return AdmissionResponse(
                patch=json_patch(before, after),
                warnings=review.warnings,
                audit_annotations=review.audit_annotations,
            )

        operations = list(on)
        if not set(operations) <= {"CREATE", "UPDATE"}:
            raise ValueError(f"@defaults({kind.__name__}, on={operations}): only CREATE and UPDATE have an object")
        return AdmissionWebhook(
            function,
            answer,
            path=path or path_of("mutate", info.gvk, subresource),
            is_mutating=True,
            rules=[_rule(info, operations, subresource)],
            failure_policy=failure_policy,
            side_effects=side_effects,
            timeout=timeout,
        )

    return decorate


def validates(
    kind: type[ObjectT],
    *,
    on: Iterable[Operation] = ("CREATE", "UPDATE"),
    subresource: str = "",
    path: str = "",
    failure_policy: FailurePolicy = "Fail",
    side_effects: SideEffects = "None",
    timeout: int = 10,
) -> Callable[[ValidatesFunction[ObjectT]], AdmissionWebhook[ValidatesFunction[ObjectT]]]:
    """Have a function admit or deny requests for a kind: `/validate-<group>-<version>-<kind>`.

    It returns the fields that are wrong, which become the causes of an Invalid (422), or raises `Denied`. For DELETE
    it is asked only when `on` has it; `review.object` is the object that goes then.
    """
    info = resource_info(kind)

    def decorate(function: ValidatesFunction[ObjectT]) -> AdmissionWebhook[ValidatesFunction[ObjectT]]:
        async def answer(request: ReviewRequest) -> AdmissionResponse:
            review = _review(kind, info, request)
            allowed, status = True, None
            try:
                returned: object = function(review)
                if inspect.isawaitable(returned):
                    returned = await returned
                if errors := _field_errors(returned):
                    group, name = info.gvk.group, request.name or review.object.metadata.name
                    raise InvalidObject(group, info.gvk.kind, name, errors)
            except Denied as denied:
                allowed, status = False, denied.status
            return AdmissionResponse(
                allowed=allowed,
                status=status,
                warnings=review.warnings,
                audit_annotations=review.audit_annotations,
            )

        return AdmissionWebhook(
            function,
            answer,
            path=path or path_of("validate", info.gvk, subresource),
            is_mutating=False,
            rules=[_rule(info, list(on), subresource)],
            failure_policy=failure_policy,
            side_effects=side_effects,
            timeout=timeout,
        )

    return decorate


def handles(
    path: str,
    *,
    rules: Sequence[RuleWithOperations],
    mutating: bool = False,
    failure_policy: FailurePolicy = "Fail",
    side_effects: SideEffects = "None",
    timeout: int = 10,
) -> Callable[[HandlerFunction], AdmissionWebhook[HandlerFunction]]:
    """Have a function answer all requests that `rules` describe, of any kinds and subresources, at `path`.

    It returns an `AdmissionResponse`, or raises `Denied`. Only a `mutating` one may have a patch.
    """

    def decorate(function: HandlerFunction) -> AdmissionWebhook[HandlerFunction]:
        async def answer(request: ReviewRequest) -> AdmissionResponse:
            returned: object = function(request)
            if inspect.isawaitable(returned):
                returned = await returned
            if not isinstance(returned, AdmissionResponse):
                raise TypeError(f"it returned {returned!r}: expected an AdmissionResponse")
            if returned.patch and not mutating:
                raise TypeError(f"its answer has a patch: write @handles({path!r}, mutating=True)")
            return returned

        return AdmissionWebhook(
            function,
            answer,
            path=path,
            is_mutating=mutating,
            rules=rules,
            failure_policy=failure_policy,
            side_effects=side_effects,
            timeout=timeout,
        )

    return decorate


def path_of(verb: Literal["mutate", "validate"], gvk: GroupVersionKind, subresource: str = "") -> str:
    """The path of a kind, as controller-runtime has it: `/mutate-apps-example-com-v1-podmanager`, `/mutate--v1-pod`."""
    path = f"/{verb}-{gvk.group.replace('.', '-')}-{gvk.version}-{gvk.kind.lower()}"
    return f"{path}-{subresource}" if subresource else path


def _rule(info: ResourceInfo, operations: Sequence[Operation], subresource: str) -> RuleWithOperations:
    return RuleWithOperations(
        api_groups=[info.gvk.group],
        api_versions=[info.gvk.version],
        operations=list(operations),
        resources=[f"{info.plural}/{subresource}" if subresource else info.plural],
    )


def _review(kind: type[ObjectT], info: ResourceInfo, request: ReviewRequest) -> Review[ObjectT]:
    """The request with its objects decoded. Raises `Denied` when they are not of the kind."""
    found = request.kind
    if (found.group, found.version, found.kind) != info.gvk:
        raise Denied(f"this webhook takes {info.gvk}, not {found}", code=400, reason="BadRequest")
    try:
        new, old = request.object_as(kind), request.old_object_as(kind)
    except DecodeError as error:
        raise Denied(f"the object cannot be read: {error}", code=400, reason="BadRequest") from None
    if new is not None:
        return Review(new, old=old, request=request)
    if old is not None:
        return Review(old, request=request)
    raise Denied(f"the request to {request.operation} has no object", code=400, reason="BadRequest")


def _field_errors(returned: object) -> list[FieldCause]:
    if returned is None:
        return []
    errors = list(returned) if isinstance(returned, Iterable) else [None]
    found = [each for each in errors if isinstance(each, FieldCause)]
    if len(found) < len(errors):
        raise TypeError(f"it returned {returned!r}: expected a list of FieldCause, or None; or raise Denied(message)")
    return found
