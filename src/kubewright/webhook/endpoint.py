"""From an HTTP request of the API server to a webhook, and back.

A body that is not a review is answered 400, and what is not done within the time that the request has, 504: for
admission the `failurePolicy` decides then. A function that raises denies the request, and its error is logged.
"""

from __future__ import annotations

import asyncio
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable
from functools import lru_cache
from time import perf_counter
from typing import Self

from msgspec import Struct

from kubewright.api.errors import explain_misuse
from kubewright.api.resources import SECRET_KINDS
from kubewright.manager.group import cause
from kubewright.manager.log import summary
from kubewright.manager.metrics import Counter, Gauge, Histogram, Labelled, Metrics
from kubewright.manager.serving import EndpointRequest, EndpointResponse
from kubewright.webhook.denial import Denied
from kubewright.webhook.entry import AdmissionWebhook, FunctionMistake
from kubewright.webhook.review import AdmissionResponse, BadReview, ReviewRequest, read_review, written

_LATENCY_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_MAX_REASON = 1000
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}

_log = logging.getLogger(__name__)


class WebhookEndpoint(ABC):
    """Answers the requests to one path, and counts them under controller-runtime's names."""

    def __init__(self, path: str, metrics: Metrics) -> None:
        self.path = path
        self._figures = _Figures.declared(metrics, path)

    def __call__(self, request: EndpointRequest) -> EndpointResponse | Awaitable[EndpointResponse]:
        """The response, counted; at once if nothing has to be awaited."""
        begin = perf_counter()
        try:
            response = self.respond(request)
        except BadReview as error:
            response = self._bad(error)
        return (
            self._counted(begin, response) if isinstance(response, EndpointResponse) else self._later(begin, response)
        )

    @abstractmethod
    def respond(self, request: EndpointRequest) -> EndpointResponse | Awaitable[EndpointResponse]:
        """The response. Raises `BadReview`, which is answered 400."""

    async def _later(self, begin: float, response: Awaitable[EndpointResponse]) -> EndpointResponse:
        self._figures.in_flight.add(1)
        try:
            return self._counted(begin, await response)
        except BadReview as error:
            return self._counted(begin, self._bad(error))
        finally:
            self._figures.in_flight.add(-1)

    def _bad(self, error: BadReview) -> EndpointResponse:
        reason = str(error)
        if len(reason) > _MAX_REASON:  # it may have in it what any client sent
            reason = f"{reason[:_MAX_REASON]}…"
        _log.warning("the webhook %s got a bad request: %s", self.path, reason)
        return EndpointResponse(400, body=f"{reason}\n".encode())

    def _counted(self, begin: float, response: EndpointResponse) -> EndpointResponse:
        self._figures.latency.observe(perf_counter() - begin)
        self._figures.requests.labels(webhook=self.path, code=str(response.status)).add()
        return response


class ReviewEndpoint(WebhookEndpoint):
    """Answers the requests to one path with one webhook of admission."""

    def __init__(self, webhook: AdmissionWebhook[object], metrics: Metrics) -> None:
        super().__init__(webhook.path, metrics)
        self.webhook = webhook
        self._panics = metrics.counter("controller_runtime_webhook_panics_total", "Total number of webhook panics")

    def respond(self, request: EndpointRequest) -> EndpointResponse | Awaitable[EndpointResponse]:
        """The answer of the webhook."""
        timeout = timeout_of(request)
        review = read_review(request.body)
        try:
            answer = self.webhook.answer(review)
        except Exception as error:
            answer = self._failed(review, error)
        if isinstance(answer, AdmissionResponse):
            return self._response(review, answer)
        return self._in_time(timeout, review, answer)

    async def _in_time(
        self, timeout: float | None, review: ReviewRequest, answer: Awaitable[AdmissionResponse]
    ) -> EndpointResponse:
        try:
            async with asyncio.timeout(timeout) as limit:
                try:
                    answered = await answer
                except Exception as error:
                    answered = self._failed(review, error)
                except asyncio.CancelledError as error:
                    # Something that the function awaited was cancelled, unless it is the review itself.
                    task = asyncio.current_task()
                    if task is None or task.cancelling():
                        raise
                    answered = self._failed(review, error)
        except TimeoutError:
            if not limit.expired():
                raise
            reason = f"{self.webhook.function_name} was not done within {timeout:g} s"
            _log.warning("the webhook %s: %s", self.webhook.path, reason, extra=_described(review))
            return EndpointResponse(504, body=f"{reason}\n".encode())
        return self._response(review, answered)

    def _response(self, review: ReviewRequest, answer: AdmissionResponse) -> EndpointResponse:
        if not answer.allowed:
            message = answer.status.message if answer.status is not None else ""
            _log.info("denied: %s", message, extra={"webhook": self.webhook.path, **_described(review)})
        try:
            body = written(review.uid, answer)
        except (TypeError, ValueError) as error:
            body = written(review.uid, self._mistaken(review, f"its answer cannot be written: {error}"))
        return EndpointResponse(content_type="application/json", body=body)

    def _failed(self, request: ReviewRequest, error: BaseException) -> AdmissionResponse:
        """The answer when a function raised: the denial that it meant, or that of an error."""
        error = cause(error)  # what tasks of the function raised comes as a group
        if isinstance(error, Denied):
            return AdmissionResponse(allowed=False, status=error.status)
        if isinstance(error, FunctionMistake):
            return self._mistaken(request, str(error))
        self._panics.add()
        explain_misuse(error)
        shown = RedactedError.of(error, request.kind.kind) if request.kind.kind in SECRET_KINDS else error
        _log.error("the webhook %s failed", self.webhook.path, exc_info=shown, extra=_described(request))
        message = f"{self.webhook.function_name} failed: {summary(shown)}"
        return AdmissionResponse.denied(message, code=500, reason="InternalError")

    def _mistaken(self, request: ReviewRequest, mistake: str) -> AdmissionResponse:
        self._panics.add()
        message = f"{self.webhook.function_name} failed: {mistake}"
        _log.error("the webhook %s: %s", self.webhook.path, message, extra=_described(request))
        return AdmissionResponse.denied(message, code=500, reason="InternalError")


class RedactedError(Exception):
    """Stands for an error whose message may have what is in a Secret."""

    @classmethod
    def of(cls, error: BaseException, kind: str) -> Self:
        """With the frames of the error."""
        redacted = cls(f"the message of a {type(error).__name__} in a review of a {kind}")
        return redacted.with_traceback(error.__traceback__)


class _Figures(Struct, frozen=True):
    """The metrics of one webhook, under controller-runtime's names."""

    requests: Labelled[Counter]
    latency: Histogram
    in_flight: Gauge

    @classmethod
    def declared(cls, metrics: Metrics, path: str) -> _Figures:
        requests = metrics.counter(
            "controller_runtime_webhook_requests_total",
            "Total number of admission requests by HTTP status code.",
            labels=("webhook", "code"),
        )
        for code in ("200", "500"):
            requests.labels(webhook=path, code=code)  # shown as 0 from the start, as controller-runtime does
        latency = metrics.histogram(
            "controller_runtime_webhook_latency_seconds",
            "Histogram of the latency of processing admission requests",
            _LATENCY_BOUNDS,
            labels=("webhook",),
        )
        in_flight = metrics.gauge(
            "controller_runtime_webhook_requests_in_flight",
            "Current number of admission requests being served.",
            labels=("webhook",),
        )
        return cls(requests, latency.labels(webhook=path), in_flight.labels(webhook=path))


def _described(request: ReviewRequest) -> dict[str, object]:
    return {
        "user": request.user_info.username,
        "operation": request.operation,
        "object": request.described,
        "dryRun": bool(request.dry_run),
    }


def timeout_of(request: EndpointRequest) -> float | None:
    """The seconds that the API server waits, which it appends to the path: `?timeout=10s`.

    Raises `BadReview` for one that cannot be read, and for a body that is not JSON by its type.
    """
    found = request.headers.get("content-type", "").partition(";")[0].strip()
    if found != "application/json":
        raise BadReview(f'the content type is "{found}": expected "application/json"')
    text = request.parameters.get("timeout", [""])[-1]
    return _seconds(text) if text else None


@lru_cache(maxsize=64)
def _seconds(text: str) -> float:
    parts = _AMOUNT.findall(text)
    if "".join(amount + unit for amount, unit in parts) != text:
        raise BadReview(f'timeout={text}: expected a duration such as "10s"')
    return sum(float(amount) * _SECONDS[unit] for amount, unit in parts)
