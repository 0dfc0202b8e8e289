"""ConversionReview v1: objects that the API server has in one version and needs in another."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct, field

from kubewright.api.codec import NOT_JSON, encode
from kubewright.webhook.review import ReviewForm, check_names, incomplete, unreadable

CONVERSION = ReviewForm("apiextensions.k8s.io/v1", "ConversionReview", "conversionReviewVersions")


class ConversionRequest(Struct, frozen=True):
    """Objects to convert, as JSON, and the apiVersion to convert them to."""

    uid: str = ""
    desired_api_version: str = field(default="", name="desiredAPIVersion")
    objects: list[Raw] = []


class _Review(Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: ConversionRequest | None = None


_reviews = msgspec.json.Decoder(_Review)


def read_conversion(body: bytes) -> ConversionRequest:
    """The request in a ConversionReview. Raises `BadReview`."""
    try:
        review = _reviews.decode(body)
    except NOT_JSON as error:
        raise unreadable(body, error, CONVERSION) from None
    check_names(review.api_version, review.kind, CONVERSION)
    if review.request is None or not review.request.uid:
        raise incomplete(review.request, CONVERSION)
    return review.request


def conversion_written(uid: str, converted: Sequence[Raw]) -> bytes:
    """The ConversionReview that answers the request with that uid: the objects, in the order of the request."""
    return _written({"uid": uid, "convertedObjects": converted, "result": {"status": "Success"}})


def conversion_failed(uid: str, message: str) -> bytes:
    """The ConversionReview that says why the objects cannot be converted: all or none are."""
    return _written({"uid": uid, "convertedObjects": [], "result": {"status": "Failure", "message": message}})


def _written(response: dict[str, object]) -> bytes:
    return encode({"apiVersion": CONVERSION.api_version, "kind": CONVERSION.kind, "response": response})
