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
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Generic, Literal, TypeAlias, TypeVar, Unpack

from kubewright.api.admissionregistration.v1 import RuleWithOperations
from kubewright.api.authentication.v1 import UserInfo
from kubewright.api.codec import encode
from kubewright.api.errors import DecodeError
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject
from kubewright.api.origin import changes, joined, merged, parts_of
from kubewright.api.resources import Object, ResourceInfo, resource_info
from kubewright.client.errors import Status
from kubewright.webhook.denial import Denied, FieldCause, InvalidObject
from kubewright.webhook.entry import AdmissionWebhook, EntryOptions, FunctionMistake, MutatingOptions, check_function
from kubewright.webhook.json_patch import json_patch
from kubewright.webhook.review import AdmissionResponse, Operation, ReviewRequest

ObjectT = TypeVar("ObjectT", bound=Object)

_CHECKED_REVIEWS = 16
_OTHER_KINDS = frozenset(("attach", "binding", "eviction", "exec", "portforward", "proxy", "scale", "token"))
"""Subresources whose objects are of other kinds than the object they are of."""

_log = logging.getLogger(__name__)


class Review(Generic[ObjectT]):
    """What a function of a kind decides about."""

    def __init__(self, object: ObjectT, *, old: ObjectT | None = None, request: ReviewRequest | None = None) -> None:
        """Of tests: `check_replicas.function(Review(new, old=old))`."""
        self.object: Final = object
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
        self.warnings.append(str(message))  # an error is often given


DefaultsFunction: TypeAlias = Callable[[Review[ObjectT]], Awaitable[None] | None]
"""Changes `review.object`."""
ValidatesFunction: TypeAlias = Callable[
    [Review[ObjectT]], Awaitable[Sequence[FieldCause] | None] | Sequence[FieldCause] | None
]
"""Returns the fields that are wrong, or raises `Denied`; None or an empty list admits the request."""
HandlerFunction: TypeAlias = Callable[[ReviewRequest], Awaitable[AdmissionResponse] | AdmissionResponse]


def defaults(
    kind: type[ObjectT],
    *,
    on: Iterable[Operation] = ("CREATE", "UPDATE"),
    subresource: str = "",
    path: str = "",
    **options: Unpack[MutatingOptions],
) -> Callable[[DefaultsFunction[ObjectT]], AdmissionWebhook[DefaultsFunction[ObjectT]]]:
    """Have a function change objects before they are validated and stored: `/mutate-<group>-<version>-<kind>`.

    The answer is the difference between what was sent and what the function made of it: fields that the type does not
    know are untouched, and so are defaults of the type. The function may also raise `Denied`. The options are those of
    `MutatingOptions`.
    """
    info, decorator = _kind_of("defaults", kind)
    operations = _operations(decorator, on, ("CREATE", "UPDATE"))
    _check_subresource(decorator, subresource)

    def decorate(function: DefaultsFunction[ObjectT]) -> AdmissionWebhook[DefaultsFunction[ObjectT]]:
        check_function(decorator, function, "review")

        def answer(request: ReviewRequest) -> AdmissionResponse | Awaitable[AdmissionResponse]:
            review = _review(kind, info, request)
            sent, identity, snapshot = review.object, _identity(review.object), encode(review.object)

            def finish(returned: object) -> AdmissionResponse:
                if returned is not None:
                    what = _described(returned)
                    raise FunctionMistake(
                        f"it returned {what}: a function of @defaults changes review.object and returns None"
                    )
                if review.object is not sent:
                    raise FunctionMistake("it replaced review.object: change its fields, so that unknown ones are kept")
                return _answered(review, None, _changes(review, identity, snapshot))

            return _finished(function, review, finish)

        return AdmissionWebhook(
            function,
            answer,
            path=path or path_of("mutate", info.gvk, subresource),
            is_mutating=True,
            rules=[_rule(info, operations, subresource)],
            **options,
        )

    return decorate


def validates(
    kind: type[ObjectT],
    *,
    on: Iterable[Operation] = ("CREATE", "UPDATE"),
    subresource: str = "",
    path: str = "",
    **options: Unpack[EntryOptions],
) -> Callable[[ValidatesFunction[ObjectT]], AdmissionWebhook[ValidatesFunction[ObjectT]]]:
    """Have a function admit or deny requests for a kind: `/validate-<group>-<version>-<kind>`.

    It returns the fields that are wrong, which become the causes of an Invalid (422), or raises `Denied`. For DELETE
    it is asked only when `on` has it; `review.object` is the object that goes then. Changes of it are lost; a
    function that makes some is logged when its first reviews show it. The options are those of `EntryOptions`.
    """
    info, decorator = _kind_of("validates", kind)
    operations = _operations(decorator, on, ("CREATE", "UPDATE", "DELETE"))
    _check_subresource(decorator, subresource)

    def decorate(function: ValidatesFunction[ObjectT]) -> AdmissionWebhook[ValidatesFunction[ObjectT]]:
        check_function(decorator, function, "review")
        unchecked = _CHECKED_REVIEWS

        def answer(request: ReviewRequest) -> AdmissionResponse | Awaitable[AdmissionResponse]:
            review = _review(kind, info, request)

            def finish(returned: object) -> AdmissionResponse:
                nonlocal unchecked
                errors = _field_errors(returned)
                if unchecked > 0:
                    unchecked = 0 if _warn_of_changes(webhook, review) else unchecked - 1
                if errors:
                    name = request.name or review.object.metadata.name
                    return _answered(review, InvalidObject(info.gvk.group, info.gvk.kind, name, errors).status)
                return _answered(review, None)

            return _finished(function, review, finish)

        webhook = AdmissionWebhook(
            function,
            answer,
            path=path or path_of("validate", info.gvk, subresource),
            is_mutating=False,
            rules=[_rule(info, operations, subresource)],
            **options,
        )
        return webhook

    return decorate


def handles(
    path: str,
    *,
    rules: Sequence[RuleWithOperations],
    mutating: bool = False,
    **options: Unpack[MutatingOptions],
) -> Callable[[HandlerFunction], AdmissionWebhook[HandlerFunction]]:
    """Have a function answer all requests that `rules` describe, of any kinds and subresources, at `path`.

    It returns an `AdmissionResponse`, or raises `Denied`. Only a `mutating` one may have a patch. The options are those
    of `MutatingOptions`, whose `reinvocation_policy` is for a `mutating` one.
    """
    decorator = f"@handles({path!r})"
    _check_rules(decorator, rules)

    def decorate(function: HandlerFunction) -> AdmissionWebhook[HandlerFunction]:
        check_function(decorator, function, "request")

        def answer(request: ReviewRequest) -> AdmissionResponse | Awaitable[AdmissionResponse]:
            returned: object = function(request)
            return _later(returned, finish) if inspect.isawaitable(returned) else finish(returned)

        def finish(returned: object) -> AdmissionResponse:
            if not isinstance(returned, AdmissionResponse):
                raise FunctionMistake(f"it returned {_described(returned)}: expected an AdmissionResponse")
            if returned.patch and not mutating:
                raise FunctionMistake(f"its answer has a patch: write @handles({path!r}, mutating=True)")
            return returned

        return AdmissionWebhook(function, answer, path=path, is_mutating=mutating, rules=rules, **options)

    return decorate


def path_of(verb: Literal["mutate", "validate"], gvk: GroupVersionKind, subresource: str = "") -> str:
    """The path of a kind, as controller-runtime has it: `/mutate-apps-example-com-v1-podmanager`, `/mutate--v1-pod`."""
    path = f"/{verb}-{gvk.group.replace('.', '-')}-{gvk.version}-{gvk.kind.lower()}"
    return f"{path}-{subresource}" if subresource else path


def _kind_of(name: str, kind: type[ObjectT]) -> tuple[ResourceInfo, str]:
    """What is known of the kind, and the decorator as it is written."""
    given: object = kind
    if not isinstance(given, type) or not issubclass(given, Object):
        raise TypeError(f"@{name}({getattr(given, '__name__', given)!s}): expected a kind, as in @{name}(PodManager)")
    return resource_info(kind), f"@{name}({kind.__name__})"


def _operations(decorator: str, on: Iterable[Operation], possible: tuple[Operation, ...]) -> list[Operation]:
    given = list(on)
    if not given or not set(given) <= set(possible):
        raise ValueError(f"{decorator}: on={on!r}, expected a list of {', '.join(possible)}")
    return given


def _check_subresource(decorator: str, subresource: str) -> None:
    if subresource in _OTHER_KINDS:
        raise ValueError(
            f'{decorator}: the objects of the subresource "{subresource}" are of another kind: use @handles(path, '
            "rules=[...]), and request.object_as(Kind)"
        )
    if "/" in subresource or "*" in subresource:
        raise ValueError(f'{decorator}: subresource="{subresource}", expected one such as "status"')


def _check_rules(decorator: str, rules: Sequence[RuleWithOperations]) -> None:
    given: object = rules
    if not isinstance(given, Sequence) or not all(isinstance(each, RuleWithOperations) for each in given):
        raise TypeError(f"{decorator}: rules are a list of RuleWithOperations")
    for rule in rules:
        for name in ("api_groups", "api_versions", "operations", "resources"):
            if not getattr(rule, name):
                raise ValueError(f'{decorator}: a rule has no {name}: expected some, or ["*"]')
    if not rules:
        raise ValueError(f"{decorator}: without rules it is never called")


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


def _identity(obj: Object) -> tuple[str, ...]:
    meta = obj.metadata
    return obj.api_version, obj.kind, meta.name, meta.namespace, meta.uid


def _check_identity(before: tuple[str, ...], after: tuple[str, ...], about: str) -> None:
    names = ("apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid")
    for name, old, new in zip(names, before, after, strict=True):
        # An object whose name the server would make may get another one.
        if old != new and (old or name != "metadata.name"):
            raise FunctionMistake(f"it changed {name} from {old!r} to {new!r}: the request is about {about}")


def _changes(review: Review[ObjectT], before: tuple[str, ...], snapshot: bytes) -> Sequence[JSONObject]:
    """The patch with what a function changed. An object stays the one that the request is about."""
    try:
        after = _identity(review.object)
        if after != before:
            _check_identity(before, after, review.request.described)
        return json_patch(*changes(review.object, snapshot))
    except (AttributeError, TypeError) as error:
        raise FunctionMistake(f"it left a review.object that cannot be written: {error}") from None


def _warn_of_changes(webhook: AdmissionWebhook[object], review: Review[ObjectT]) -> bool:
    """Log it when a function that validates has changed the object."""
    raw = review.request.object if review.operation != "DELETE" else review.request.old_object
    if joined(merged(review.object)) == joined(parts_of(bytes(raw))):
        return False
    _log.warning(
        "%s changes review.object, which has no effect: that is for a function of @defaults(%s)",
        webhook.function_name,
        type(review.object).__name__,
        extra={"webhook": webhook.path},
    )
    return True


def _finished(
    function: Callable[[Review[ObjectT]], object],
    review: Review[ObjectT],
    finish: Callable[[object], AdmissionResponse],
) -> AdmissionResponse | Awaitable[AdmissionResponse]:
    """What `finish` makes of what a function returns: now, or of an `async def` when it is awaited."""
    try:
        returned = function(review)
        if not inspect.isawaitable(returned):
            return finish(returned)
    except Denied as denied:
        return _answered(review, denied.status)
    return _finished_later(returned, review, finish)


async def _finished_later(
    returned: Awaitable[object], review: Review[ObjectT], finish: Callable[[object], AdmissionResponse]
) -> AdmissionResponse:
    try:
        return await _later(returned, finish)
    except Denied as denied:
        return _answered(review, denied.status)


async def _later(returned: Awaitable[object], finish: Callable[[object], AdmissionResponse]) -> AdmissionResponse:
    return finish(await returned)


def _answered(review: Review[ObjectT], status: Status | None, patch: Sequence[JSONObject] = ()) -> AdmissionResponse:
    return AdmissionResponse(
        allowed=status is None,
        status=status,
        patch=patch,
        warnings=review.warnings,
        audit_annotations=review.audit_annotations,
    )


def _field_errors(returned: object) -> list[FieldCause]:
    if returned is None:
        return []
    if isinstance(returned, Iterable) and not isinstance(returned, str):
        errors = list(returned)
        if all(isinstance(each, FieldCause) for each in errors):
            return errors
        what = f"{_described(returned)} with other things than FieldCause"
    else:
        what = _described(returned)
    raise FunctionMistake(
        f"it returned {what}: expected a list of FieldCause, or None; for a message, raise Denied(message)"
    )


def _described(value: object) -> str:
    """Its type: the value itself may be a secret."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
