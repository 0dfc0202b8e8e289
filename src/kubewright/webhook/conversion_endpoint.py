"""Answering ConversionReviews: all objects of a request are converted, or none is."""

from __future__ import annotations

import asyncio
import logging

from msgspec import Raw

from kubewright.api.codec import NOT_JSON, decode_json, encode
from kubewright.manager.metrics import Metrics
from kubewright.manager.serving import EndpointRequest, EndpointResponse
from kubewright.webhook.conversion import PATH, Versions
from kubewright.webhook.conversion_review import (
    ConversionRequest,
    conversion_failed,
    conversion_written,
    read_conversion,
)
from kubewright.webhook.conversion_step import ConversionError, described
from kubewright.webhook.endpoint import WebhookEndpoint, timeout_of

MAX_CONVERSION_SIZE = 128 * 1024 * 1024
"""Bytes of a request. An API server sends all objects of a list at once, and clients list 500 at a time."""
_OBJECTS_AT_ONCE = 16

_log = logging.getLogger(__name__)


class ConversionEndpoint(WebhookEndpoint):
    """Converts the objects of all kinds that a manager has versions of, at one path."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__(PATH, metrics)
        self.versions: dict[tuple[str, str], Versions] = {}
        self._panics = metrics.counter(
            "controller_runtime_conversion_webhook_panics_total", "Total number of conversion webhook panics"
        )

    def add(self, versions: Versions) -> None:
        """Convert objects of one more kind."""
        key = versions.group, versions.kind
        if (other := self.versions.setdefault(key, versions)) is not versions:
            raise ValueError(
                f"{versions.kind} of {versions.group} has the hub {other.hub.__name__} already: give all of its "
                f"versions to one converts({other.hub.__name__}, ...)"
            )

    async def respond(self, request: EndpointRequest) -> EndpointResponse:
        """The objects in the version that is asked for, in their order; or why one of them cannot be converted."""
        timeout = timeout_of(request)
        review = read_conversion(request.body)
        try:
            async with asyncio.timeout(timeout) as limit:
                body = conversion_written(review.uid, await self._converted(review))
        except ConversionError as error:
            body = conversion_failed(review.uid, str(error))
            if error.__cause__ is not None:
                self._panics.add()
            _log.error("an object could not be converted: %s", error, exc_info=error.__cause__)
        except TimeoutError:
            if not limit.expired():
                raise
            reason = f"{len(review.objects)} objects were not converted within {timeout:g} s"
            _log.warning("the webhook %s: %s", PATH, reason)
            return EndpointResponse(504, body=f"{reason}\n".encode())
        return EndpointResponse(content_type="application/json", body=body)

    async def _converted(self, review: ConversionRequest) -> list[Raw]:
        converted = []
        for index, raw in enumerate(review.objects, 1):
            converted.append(self._one(raw, review.desired_api_version))
            if index % _OBJECTS_AT_ONCE == 0:
                await asyncio.sleep(0)  # a list may have thousands, and reconciles go on
        return converted

    def _one(self, raw: Raw, api_version: str) -> Raw:
        try:
            obj = decode_json(raw)
        except NOT_JSON as error:
            raise ConversionError(f"an object cannot be read: {error}") from None
        if not isinstance(obj, dict):
            raise ConversionError("there is no object where one is expected")
        group, kind = str(obj.get("apiVersion")).rpartition("/")[0], str(obj.get("kind"))
        versions = self.versions.get((group, kind))
        if versions is None:
            known = ", ".join(f"{kind} of {group}" for group, kind in self.versions)
            raise ConversionError(f'{described(obj)}: objects of "{group}" cannot be converted here, only {known}')
        converted = versions.convert(obj, api_version)
        return raw if converted is obj else Raw(encode(converted))
