"""Serving webhooks: from an HTTP request of the API server to a function, and back.

A body that is not an AdmissionReview is answered 400, and a function that is not done within the time that the request
has, 504: of both the `failurePolicy` decides. A function that raises denies the request, and its error is logged.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from time import perf_counter

from msgspec import Struct

from kubewright.manager import Manager
from kubewright.manager.log import summary
from kubewright.manager.metrics import Counter, Gauge, Histogram, Labelled, Metrics
from kubewright.manager.serving import EndpointRequest, EndpointResponse
from kubewright.webhook.admission import AdmissionWebhook
from kubewright.webhook.denial import Denied
from kubewright.webhook.review import AdmissionResponse, BadReview, ReviewRequest, read_review, written

_LATENCY_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}

_log = logging.getLogger(__name__)


def serve_webhooks(manager: Manager, *webhooks: AdmissionWebhook[object]) -> None:
    """Serve webhooks while the manager runs, in every replica; it is ready only while it serves them.

    Address and certificate are options of the manager: `webhook_address`, by default ":9443", and `webhook_cert_dir`.
    The lower level is `manager.add_webhook`.
    """
    for webhook in webhooks:
        given: object = webhook
        if not isinstance(given, AdmissionWebhook):
            raise TypeError(
                f"serve_webhooks(manager, {given!r}): expected functions decorated with @defaults(Kind), "
                "@validates(Kind) or @handles(path)"
            )
        manager.add_webhook(webhook.path, ReviewEndpoint(webhook, manager.metrics))


def webhooks_of(manager: Manager) -> list[AdmissionWebhook[object]]:
    """The webhooks of admission that a manager serves."""
    return [handler.webhook for handler in manager.webhooks.values() if isinstance(handler, ReviewEndpoint)]


class ReviewEndpoint:
    """Answers the requests to one path with one webhook."""

    def __init__(self, webhook: AdmissionWebhook[object], metrics: Metrics) -> None:
        self.webhook = webhook
        self._figures = _Figures.declared(metrics, webhook.path)

    async def __call__(self, request: EndpointRequest) -> EndpointResponse:
        """The response, counted."""
        figures, begin = self._figures, perf_counter()
        figures.in_flight.add(1)
        try:
            response = await self._respond(request)
        finally:
            figures.in_flight.add(-1)
            figures.latency.observe(perf_counter() - begin)
        figures.requests.labels(webhook=self.webhook.path, code=str(response.status)).add()
        return response

    async def _respond(self, request: EndpointRequest) -> EndpointResponse:
        try:
            timeout = _timeout(request.parameters)
            _check_content_type(request.headers)
            review = read_review(request.body)
        except BadReview as error:
            _log.warning("the webhook %s got a bad request: %s", self.webhook.path, error)
            return EndpointResponse(400, body=f"{error}\n".encode())
        try:
            async with asyncio.timeout(timeout) as limit:
                answer = await self._answer(review)
        except TimeoutError:
            if not limit.expired():
                raise
            reason = f"{self.webhook.name} was not done within {timeout:g} s"
            _log.warning("the webhook %s: %s", self.webhook.path, reason, extra=_described(review))
            return EndpointResponse(504, body=f"{reason}\n".encode())
        if not answer.allowed:
            message = answer.status.message if answer.status is not None else ""
            _log.info("denied: %s", message, extra={"webhook": self.webhook.path, **_described(review)})
        return EndpointResponse(content_type="application/json", body=written(review.uid, answer))

    async def _answer(self, request: ReviewRequest) -> AdmissionResponse:
        try:
            return await self.webhook.answer(request)
        except Denied as denied:
            return AdmissionResponse(allowed=False, status=denied.status)
        except Exception as error:
            self._figures.panics.add()
            _log.exception("the webhook %s failed", self.webhook.path, extra=_described(request))
            message = f"{self.webhook.name} failed: {summary(error)}"
            return AdmissionResponse.denied(message, code=500, reason="InternalError")


class _Figures(Struct, frozen=True):
    """The metrics of one webhook, under controller-runtime's names."""

    requests: Labelled[Counter]
    latency: Histogram
    in_flight: Gauge
    panics: Counter

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
        panics = metrics.counter("controller_runtime_webhook_panics_total", "Total number of webhook panics")
        return cls(requests, latency.labels(webhook=path), in_flight.labels(webhook=path), panics)


def _described(request: ReviewRequest) -> dict[str, object]:
    return {
        "user": request.user_info.username,
        "operation": request.operation,
        "object": request.described,
        "dryRun": bool(request.dry_run),
    }


def _check_content_type(headers: Mapping[str, str]) -> None:
    found = headers.get("content-type", "").partition(";")[0].strip()
    if found != "application/json":
        raise BadReview(f'the content type is "{found}": expected "application/json"')


def _timeout(parameters: Mapping[str, list[str]]) -> float | None:
    """The seconds that the API server waits, which it appends to the path: `?timeout=10s`."""
    text = parameters.get("timeout", [""])[-1]
    if not text:
        return None
    parts = _AMOUNT.findall(text)
    if "".join(amount + unit for amount, unit in parts) != text:
        raise BadReview(f'timeout={text}: expected a duration such as "10s"')
    return sum(float(amount) * _SECONDS[unit] for amount, unit in parts)
