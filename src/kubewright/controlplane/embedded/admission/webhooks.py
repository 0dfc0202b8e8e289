"""Admission webhooks: which are configured, which of them a request is for, and what they make of it.

Mutating ones are called one after the other, in the order of the names of their configurations; one that is to be
reinvoked if needed is called once more when the object has changed since. Validating ones are called all at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.admission.match_conditions import ConditionError, MatchConditions
from kubewright.controlplane.embedded.admission.matching import RequestMatcher
from kubewright.controlplane.embedded.admission.mutation import internal_error, put_back, unborn, why_not
from kubewright.controlplane.embedded.admission.policies import GROUP, PolicyContext
from kubewright.controlplane.embedded.admission.request import AdmissionRequest
from kubewright.controlplane.embedded.admission.webhook_client import (
    CallFailed,
    answered_object,
    call_webhook,
    check_kind,
)
from kubewright.controlplane.embedded.admission.webhook_review import (
    InvalidResponse,
    ReviewResponse,
    Version,
    check_types,
    denial,
    review,
    verified,
)
from kubewright.controlplane.embedded.apimachinery.decoding import decode_json
from kubewright.controlplane.embedded.apimachinery.document import at, copied_object, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.go_values import html_safe
from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.apimachinery.status import StatusError, bad_request, forbidden
from kubewright.controlplane.embedded.builtins.names import qualified_name
from kubewright.controlplane.embedded.cel.admission import ExpressionScope
from kubewright.controlplane.embedded.patch.json_patch import apply_json_patch
from kubewright.controlplane.embedded.patch.result import DoesNotApply
from kubewright.controlplane.embedded.registry.resources import ResourceType
from kubewright.controlplane.embedded.rest.call import ObjectStore
from kubewright.controlplane.embedded.rest.metadata import unconvertible_kind
from kubewright.controlplane.embedded.rest.suspension import completed

_log = logging.getLogger("kubewright.controlplane")

_EXEMPT = frozenset(("mutatingwebhookconfigurations", "validatingwebhookconfigurations"))
_DEFAULT_TIMEOUT = 10


class WebhookError(Exception):
    """A webhook that could not be called, or gave no usable answer: the failure policy decides."""


@dataclass(frozen=True, slots=True, eq=False)
class Webhook:
    """One webhook of a configuration."""

    name: str
    configuration: str
    client: JSONObject
    version: Version
    matcher: RequestMatcher
    conditions: MatchConditions
    timeout: int
    is_ignored: bool
    """Whether its failures are ignored."""
    is_reinvoked: bool
    has_side_effects: bool

    @classmethod
    def of(cls, configuration: str, webhook: JSONObject) -> Webhook:
        """A webhook as the configuration of this name describes it."""
        known = [each for each in items(webhook, "admissionReviewVersions") if each in ("v1", "v1beta1")]
        timeout = at(webhook, "timeoutSeconds")
        return cls(
            name=text(webhook, "name"),
            configuration=configuration,
            client=mapping(webhook, "clientConfig"),
            version="v1beta1" if known[:1] == ["v1beta1"] else "v1",
            matcher=RequestMatcher(webhook, rules="rules"),
            conditions=MatchConditions(items(webhook, "matchConditions"), ExpressionScope(params=False), {}),
            timeout=timeout if isinstance(timeout, int) else _DEFAULT_TIMEOUT,
            is_ignored=text(webhook, "failurePolicy") == "Ignore",
            is_reinvoked=text(webhook, "reinvocationPolicy") == "IfNeeded",
            has_side_effects=text(webhook, "sideEffects") not in ("None", "NoneOnDryRun"),
        )


class WebhookSource:
    """The webhooks of one kind of configuration, by the names of the configurations, then in the order within them.

    Guarantee: after `invalidate`, no request is sent to what was there before.
    """

    def __init__(self, store: ObjectStore, plural: str) -> None:
        self._store = store
        self._prefix = f"{GROUP}{plural}/"
        self._all: Sequence[Webhook] | None = None

    def invalidate(self) -> None:
        """A configuration changed."""
        self._all = None

    def all(self) -> Sequence[Webhook]:
        """All of them but those without rules, which are for no request."""
        if self._all is None:
            self._all = [
                Webhook.of(text(entry.value, "metadata", "name"), mapping(webhook))
                for entry in self._store.range(self._prefix).entries
                for webhook in items(entry.value, "webhooks")
                if items(webhook, "rules")
            ]
        return self._all


class WebhookCaller:
    """Calls webhooks about requests."""

    def __init__(self, store: ObjectStore, context: PolicyContext, new_uid: Callable[[], str]) -> None:
        self._store = store
        self._context = context
        self._new_uid = new_uid

    def match(self, webhook: Webhook, request: AdmissionRequest) -> ResourceType | None:
        """The resource in whose version a webhook is asked about a request; None when it is not. Raises StatusError."""
        if request.call.resource.plural in _EXEMPT or self._context.is_exempt(request):
            return None
        resource = self._context.match(webhook.matcher, request)
        if resource is None:
            return None
        try:
            return resource if webhook.conditions.hold(self._context.inputs(request, resource)) else None
        except ConditionError as error:
            if webhook.is_ignored:
                return None
            target = request.call.resource
            raise forbidden(target.plural, target.gvk.group, request.name, str(error)) from None

    async def validate(self, webhooks: Sequence[Webhook], request: AdmissionRequest) -> None:
        """Call those webhooks that the request is for. Raises the StatusError of the first that denies it."""
        matched = await completed(
            lambda: [(webhook, found) for webhook in webhooks if (found := self.match(webhook, request)) is not None],
            request.settled,
        )
        calls = [self._validated(index, request, *each) for index, each in enumerate(matched)]
        for error in await asyncio.gather(*calls):
            if error is not None:
                raise error

    async def _validated(
        self, index: int, request: AdmissionRequest, webhook: Webhook, resource: ResourceType
    ) -> StatusError | None:
        try:
            await request.ready_in(resource)
            await self.answer(webhook, request, resource, request.object_in(resource), mutating=False)
        except StatusError as error:
            return error
        except WebhookError as error:
            prefix = "failed-open.validating.webhook.admission.k8s.io"
            return _failed(webhook, request, error, f"{prefix}/round_0_index_{index}")
        return None

    async def answer(
        self,
        webhook: Webhook,
        request: AdmissionRequest,
        resource: ResourceType,
        new: JSONObject | None,
        *,
        mutating: bool,
    ) -> ReviewResponse:
        """The answer of a webhook that allows the request. Raises StatusError or WebhookError."""
        if request.is_dry_run and webhook.has_side_effects:
            raise bad_request(f"admission webhook {quoted(webhook.name)} does not support dry run")
        uid = self._new_uid()
        body = review(request, resource, new, uid, webhook.version)
        try:
            answer = answered_object(await call_webhook(webhook.client, body, webhook.timeout, self._store))
            check_kind(answer, "admission.k8s.io", "AdmissionReview", webhook.version)
            check_types(answer)
        except (CallFailed, InvalidResponse) as error:
            raise WebhookError(f"failed to call webhook: {error}") from None
        try:
            response = verified(answer, uid, webhook.version, mutating=mutating)
        except InvalidResponse as error:
            raise WebhookError(f"received invalid webhook response: {error}") from None
        call = request.call
        for key, value in response.annotations.items():
            if not qualified_name(name := f"{webhook.name}/{key}"):
                call.annotations.setdefault(name, value)
        call.warnings += response.warnings
        if not response.is_allowed:
            raise denial(webhook.name, response.status)
        return response


def _failed(webhook: Webhook, request: AdmissionRequest, error: WebhookError, annotation: str) -> StatusError | None:
    """What comes of a failure: nothing when it is ignored, but a note."""
    why = f"failed calling webhook {quoted(webhook.name)}: {error}"
    if not webhook.is_ignored:
        return internal_error(why)
    _log.warning("%s; its failurePolicy is Ignore", why)
    request.call.annotations.setdefault(annotation, webhook.name)
    return None


class WebhookMutator:
    """Applies mutating webhooks to one request, and remembers which of them are to be called again."""

    def __init__(self, caller: WebhookCaller, webhooks: Sequence[Webhook], request: AdmissionRequest) -> None:
        self._caller = caller
        self._webhooks = webhooks
        self._request = request
        self._round = 0
        self._invoked: set[Webhook] = set()
        self._reinvoked: set[Webhook] = set()
        self._last: JSONObject | None = None
        self.has_changed = False
        """Whether any webhook changed the object."""

    async def run(self) -> None:
        """Call the webhooks; the second time, only those that are reinvoked. Raises StatusError."""
        if self._round and self._request.new != self._last:
            self._reinvoke()
        for index, webhook in enumerate(self._webhooks):
            resource = await completed(partial(self._caller.match, webhook, self._request), self._request.settled)
            if resource is None or (self._round and webhook not in self._reinvoked):
                continue
            await self._call(index, webhook, resource)
        self._round += 1
        self._last = None if self._request.new is None else copied_object(self._request.new)

    def _reinvoke(self) -> None:
        self._reinvoked |= self._invoked
        self._invoked.clear()

    async def _call(self, index: int, webhook: Webhook, resource: ResourceType) -> None:
        round_and_index = f"webhook.admission.k8s.io/round_{self._round}_index_{index}"
        has_changed = False
        try:
            has_changed = await self._mutated(webhook, resource, f"patch.{round_and_index}")
        except WebhookError as error:
            refused = _failed(webhook, self._request, error, f"failed-open.mutation.{round_and_index}")
            if refused is not None:
                raise refused from None
        finally:
            note = {"configuration": webhook.configuration, "webhook": webhook.name, "mutated": has_changed}
            self._note(f"mutation.{round_and_index}", note)
        if has_changed:
            self.has_changed = True
            self._reinvoke()
        if webhook.is_reinvoked:
            self._invoked.add(webhook)

    async def _mutated(self, webhook: Webhook, resource: ResourceType, annotation: str) -> bool:
        """Apply the patch that a webhook answers. Returns whether it changed anything."""
        request = self._request
        await request.ready_in(resource)
        new = unborn(request, resource)
        response = await self._caller.answer(webhook, request, resource, new, mutating=True)
        if not response.patch:
            return False
        try:
            patch = decode_json(response.patch, [], "")
        except StatusError as error:
            raise WebhookError(f"received undecodable patch in webhook response: {error.message}") from None
        if patch in (None, []):
            return False
        if new is None:
            why = "attempted to modify the object, which is not supported for this operation"
            raise internal_error(f"admission webhook {quoted(webhook.name)} {why}")
        if response.patch_type != "JSONPatch":
            raise WebhookError(f"unsupported patch type {quoted(response.patch_type)}")
        before = copied_object(request.new or {})
        changed = _patched(new, patch)
        _check_kind(request, resource, new, changed)
        await completed(lambda: put_back(request, changed, resource), request.settled)
        note = {"configuration": webhook.configuration, "webhook": webhook.name, "patch": patch}
        self._note(annotation, {**note, "patchType": "JSONPatch"})
        return request.new != before

    def _note(self, annotation: str, note: object) -> None:
        self._request.call.annotations.setdefault(annotation, html_safe(msgspec.json.encode(note)).decode())


def _check_kind(request: AdmissionRequest, resource: ResourceType, new: JSONObject, changed: JSONObject) -> None:
    """A patch may leave the kind away, but not make it another one."""
    api_version, kind = text(changed, "apiVersion"), text(changed, "kind")
    is_same = (api_version, kind) == (text(new, "apiVersion"), text(new, "kind"))
    if is_same or resource.custom or not api_version or not kind:
        return
    if why := unconvertible_kind(request.call, api_version, kind):
        raise internal_error(why)


def _patched(new: JSONObject, patch: JSONValue) -> JSONObject:
    try:
        return apply_json_patch(new, patch, lenient=True)
    except DoesNotApply as error:
        if error.is_test:
            raise internal_error(f"testing value {text(error.operation, 'path')} failed: test failed") from None
        raise internal_error(why_not(error.operation)) from None
    except StatusError as error:
        if error.reason == "BadRequest":
            raise WebhookError(f"received undecodable patch in webhook response: {error.message}") from None
        raise
