"""Conversion of any objects, and of any change between conversions."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.webhook.boats import GROUP, Boat, BoatV1Alpha1, BoatV1Beta1, boat

from kubewright.api.codec import decode, encode, to_json
from kubewright.api.markers import JSONObject
from kubewright.api.resources import Object
from kubewright.testing.strategies import contents_of
from kubewright.webhook import converts
from kubewright.webhook.conversion_step import ConversionError

VERSIONS = converts(Boat, BoatV1Beta1, BoatV1Alpha1)


def with_content(version: str, content: JSONObject, annotations: JSONObject) -> JSONObject:
    return {**boat(version, {}, annotations=annotations), **content}


def read(obj: JSONObject) -> Any:
    """An object as its type reads it."""
    types: dict[str, type[Object]] = {"v1": Boat, "v1beta1": BoatV1Beta1, "v1alpha1": BoatV1Alpha1}
    return to_json(decode(types[str(obj["apiVersion"]).removeprefix(f"{GROUP}/")], encode(obj)))


@settings(max_examples=40)
@given(contents_of(Boat), contents_of(BoatV1Alpha1), st.sampled_from(["v1", "v1beta1"]))
def test_a_change_in_a_spoke_is_never_undone_by_what_was_stashed(
    content: JSONObject, changed: JSONObject, stored_by: str
) -> None:
    stored = with_content("v1", content, {})
    if stored_by == "v1beta1":
        stored = VERSIONS.convert(VERSIONS.convert(stored, f"{GROUP}/v1beta1"), f"{GROUP}/v1")
    seen: Any = VERSIONS.convert(stored, f"{GROUP}/v1alpha1")
    assert read(VERSIONS.convert(seen, f"{GROUP}/v1")) == read(stored)
    edited = with_content("v1alpha1", changed, seen["metadata"].get("annotations", {}))
    again = VERSIONS.convert(VERSIONS.convert(edited, f"{GROUP}/v1"), f"{GROUP}/v1alpha1")
    assert read(again)["spec"] == read(edited)["spec"]
    assert read(again)["status"] == read(edited)["status"]


@settings(max_examples=60)
@given(
    contents_of(Boat),
    st.text()
    | st.dictionaries(st.sampled_from(["v1", "v1beta1"]), st.none() | contents_of(Boat)).map(
        lambda made: encode(made).decode()
    ),
)
def test_no_annotation_makes_a_conversion_end_otherwise_than_with_a_reason(content: JSONObject, text: str) -> None:
    obj = with_content("v1", content, {"kubewright.dev/conversion-data": text})
    seen = VERSIONS.convert(obj, f"{GROUP}/v1beta1")
    with suppress(ConversionError):
        VERSIONS.convert(seen, f"{GROUP}/v1")
