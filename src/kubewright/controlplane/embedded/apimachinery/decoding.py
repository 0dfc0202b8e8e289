"""The body of a request as JSON, whatever it was sent as, with what a strict reader would object to."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import yaml

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.gotext import json_complaint
from kubewright.controlplane.embedded.apimachinery.nesting import cut, decode, decode_deep
from kubewright.controlplane.embedded.apimachinery.repetitions import repeated_fields, repeated_keys, repeats_fields
from kubewright.controlplane.embedded.apimachinery.status import StatusError, bad_request, unsupported_media_type
from kubewright.manifest.yaml_reader import compose
from kubewright.manifest.yaml_values import value_of

MAX_BODY_SIZE = 3 * 1024 * 1024
_PARSING = "couldn't get version/kind; json parse error: "


def too_large() -> StatusError:
    """413."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MAX_BODY_SIZE}")


def decode_body(
    content_type: str,
    body: bytes,
    *,
    protobuf: Callable[[bytes], JSONObject],
    duplicates: list[str] | None = None,
    finite: bool = True,
) -> JSONValue:
    """Decode by content type; JSON when there is none. Complaints about fields that appear twice go to `duplicates`.

    Without `finite`, a number in JSON that is beyond all bounds is infinite: for callers that refuse it with its field.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type in ("", "application/json") or media_type.endswith("+json"):
        return decode_json(body, duplicates, finite=finite)
    if media_type == "application/vnd.kubernetes.protobuf":
        return protobuf(body)
    if media_type in ("application/yaml", "application/apply-patch+yaml"):
        return decode_yaml(body, duplicates)
    raise unsupported_media_type(
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


def decode_json(
    body: bytes, duplicates: list[str] | None = None, prefix: str = _PARSING, *, finite: bool = True
) -> JSONValue:
    """JSON of up to 10,000 levels; with `duplicates`, checked for fields that appear twice (the last one counts).

    What is no JSON is refused with a message that begins with `prefix`.
    """
    try:
        value = decode(body)
        if duplicates is not None and repeats_fields(body):
            duplicates += repeated_fields(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_as_go(body, duplicates, prefix, finite)
    return value


def _decode_as_go(body: bytes, duplicates: list[str] | None, prefix: str, finite: bool) -> JSONValue:
    """What is JSON to Go alone: strings that are not Unicode, large numbers, thousands of levels."""
    if complaint := json_complaint(body):
        raise bad_request(f"{prefix}{complaint}")
    # Byte by byte, as Go does it; Python would take several for one.
    text = re.sub("[\udc80-\udcff]", "\ufffd", body.decode("utf-8", "surrogateescape"))
    try:
        return decode_deep(text, duplicates, finite=finite)
    except OverflowError as error:
        raise bad_request(f"{prefix}json: cannot unmarshal number {error} into Go value of type float64") from None


def decode_yaml(body: bytes, duplicates: list[str] | None = None, prefix: str = "") -> JSONValue:
    """YAML, of which JSON is a part; the rest as for JSON."""
    # An escaped slash is JSON and no YAML.
    if body.lstrip()[:1] == b"{" and rb"\/" not in body:
        found: list[str] = []
        try:
            value = decode_json(body, found)
            if not found:
                return value
        except StatusError:
            pass  # flow-style YAML looks like this, too
    try:
        loader = yaml.CSafeLoader(body)
        try:
            # Of several documents the first.
            node = compose(loader, body)
            value = None if node is None else value_of(node)
        finally:
            loader.dispose()
        if duplicates is not None and node is not None:
            duplicates += repeated_keys(node)
        # In the order that Go gives it on the way.
        plain = msgspec.json.encode(cut(value), order="sorted")
    except (yaml.YAMLError, msgspec.MsgspecError, TypeError, UnicodeDecodeError) as error:
        problem = _yaml_problem(error, body)
        # What JSON cannot say is refused by Go's JSON encoder, not by its reader of YAML.
        finder = "" if problem.startswith("json: ") else "yaml: "
        raise bad_request(f"{prefix}error converting YAML to JSON: {finder}{problem}") from None
    return decode_json(plain)


def _yaml_problem(error: Exception, body: bytes) -> str:
    """A mistake in YAML with its line, which Go counts from 0 or from 1, depending on the parser."""
    if isinstance(error, yaml.reader.ReaderError):
        return str(error.reason)
    if not isinstance(error, yaml.MarkedYAMLError) or not error.problem:
        return " ".join(str(error).split())
    if error.problem == "found undefined alias" and error.problem_mark is not None:
        name = re.match(r"\*([\w-]+)", body.decode()[error.problem_mark.index :])
        return f"unknown anchor '{name[1] if name else ''}' referenced"
    if isinstance(error, (yaml.composer.ComposerError, yaml.constructor.ConstructorError)):
        return error.problem
    line = error.problem_mark.line if error.problem_mark is not None else 0
    if line and isinstance(error, yaml.scanner.ScannerError):
        line += 1
    return f"line {line}: {error.problem}" if line else error.problem
