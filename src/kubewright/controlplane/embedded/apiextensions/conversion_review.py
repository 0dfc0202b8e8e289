"""ConversionReview: what a conversion webhook is asked, and whether what it answers is a conversion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, copied_object, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.go_values import json_kind, type_name
from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.apimachinery.status import FieldError
from kubewright.controlplane.embedded.builtins.metadata import validate_annotations, validate_labels

GROUP, KIND = "apiextensions.k8s.io", "ConversionReview"
_VERSIONS = ("v1", "v1beta1")
# What a webhook may change of the metadata, by what rules, and how the real server names it in errors.
_CHANGEABLE = (("labels", validate_labels, "labels"), ("annotations", validate_annotations, "annotation"))


class InvalidConversion(Exception):
    """An answer that is no conversion of what was asked for; the text follows the kind that was to be converted."""


class UndecodableObject(Exception):
    """A converted object that is no object at all. The real server says so without naming the webhook."""


def review_version(conversion: JSONObject) -> str:
    """The version in which a webhook is asked: the first one of its list that is known."""
    listed = items(conversion, "webhook", "conversionReviewVersions")
    return next((str(version) for version in listed if version in _VERSIONS), "")


def conversion_review(objects: Sequence[JSONObject], desired: str, uid: str, version: str) -> bytes:
    """The request to convert objects to the apiVersion that is desired."""
    return msgspec.json.encode(
        {
            "kind": KIND,
            "apiVersion": f"{GROUP}/{version}",
            "request": {"uid": uid, "desiredAPIVersion": desired, "objects": objects},
            "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
        }
    )


def converted_objects(answer: JSONObject, uid: str, version: str, count: int) -> list[JSONValue]:
    """The objects in an answer, as many as were sent. Raises InvalidConversion."""
    _check_kind(answer, version)
    response = at(answer, "response")
    if not isinstance(response, dict):
        raise InvalidConversion("failed: no response provided")
    if version == "v1" and text(response, "uid") != uid:
        raise InvalidConversion(f"failed: expected response.uid={quoted(uid)}, got {quoted(text(response, 'uid'))}")
    status = text(response, "result", "status")
    if status != "Success":
        why = text(response, "result", "message") or f"response.result.status was '{status}', not 'Success'"
        raise InvalidConversion(f"failed: {why}")
    found = response.get("convertedObjects")
    if found is not None and not isinstance(found, list):
        field = "ConversionResponse.response.convertedObjects of type []runtime.RawExtension"
        raise InvalidConversion(f"failed: json: cannot unmarshal {json_kind(found)} into Go struct field {field}")
    if len(found or ()) != count:
        raise InvalidConversion(f"returned {len(found or ())} objects, expected {count}")
    return found or []


def _check_kind(answer: JSONObject, version: str) -> None:
    api_version, kind = text(answer, "apiVersion"), text(answer, "kind")
    expected = f"{GROUP}/{version}"
    if version == "v1" and (api_version, kind) != (expected, KIND):
        got = f"{api_version or '/'}, Kind={kind}"
        raise InvalidConversion(f"failed: expected webhook response of {expected}, Kind={KIND}, got {got}")


def converted_object(answer: JSONValue, original: JSONObject, wanted: GroupVersionKind) -> JSONObject:
    """A converted object, without its kind, with the metadata of the original but for labels and annotations.

    Raises InvalidConversion or UndecodableObject.
    """
    if answer is None:
        raise UndecodableObject("unexpected end of JSON input")
    if not isinstance(answer, dict):
        go_type = "map[string]interface {}"
        raise UndecodableObject(f"json: cannot unmarshal {json_kind(answer)} into Go value of type {go_type}")
    if not text(answer, "kind"):
        raise UndecodableObject(f"Object 'Kind' is missing in '{msgspec.json.encode(answer).decode()}'")
    for what, expected, received in (
        ("groupVersion", wanted.api_version, text(answer, "apiVersion")),
        ("kind", wanted.kind, text(answer, "kind")),
    ):
        if expected != received:
            why = f"invalid {what} (expected {expected}, received {received})"
            raise InvalidConversion(f"returned invalid object at index 0: {why}")
    for name, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        before, after = text(original, "metadata", name), text(answer, "metadata", name)
        if before != after:
            raise InvalidConversion(f"returned invalid object: must have the same {shown}: {before} != {after}")
    metadata = answer.get("metadata")
    if not isinstance(metadata, dict):
        why = f"invalid metadata of type {type_name(metadata)}" if "metadata" in answer else "missing metadata"
        raise InvalidConversion(f"returned invalid metadata: {why} in converted object")
    restored = {name: value for name, value in answer.items() if name not in ("apiVersion", "kind")}
    restored["metadata"] = _restored(mapping(original, "metadata"), metadata)
    return restored


def _restored(original: JSONObject, answer: JSONObject) -> JSONObject:
    kept = copied_object(original)
    for name, rule, shown in _CHANGEABLE:
        given = answer.get(name)
        if given is None:
            kept.pop(name, None)
            continue
        if not isinstance(given, dict):
            why = f"invalid metadata.{name} of type {type_name(given)} in converted object"
            raise InvalidConversion(f"returned invalid metadata: {why}")
        for key, value in given.items():
            if not isinstance(value, str):
                kind = "<nil>" if value is None else type_name(value)
                why = f"metadata.{name}[{key}] must be a string, but is {kind} in converted object"
                raise InvalidConversion(f"returned invalid metadata: {why}")
        if given != mapping(kept, name) and (wrong := list(_distinct(rule(given, f"metadata.{shown}")))):
            why = wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]"
            raise InvalidConversion(f"returned invalid metadata: {why}")
        kept[name] = given
    return kept


def _distinct(errors: Sequence[FieldError]) -> Iterator[str]:
    yield from dict.fromkeys(map(str, errors))
