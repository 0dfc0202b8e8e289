"""The body of a request as JSON, whatever it was sent as, with what a strict reader would object to."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import cast

import msgspec
import yaml

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.document import JSONObject
from kubewright.controlplane.embedded.status import StatusError, bad_request, unsupported_media_type

LARGEST_BODY = 3 * 1024 * 1024
_DEEPEST = 500  # far beyond any schema, and safely within Python's own limit

_decoder = msgspec.json.Decoder()


def too_large() -> StatusError:
    """413."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {LARGEST_BODY}", details={})


def decode_body(
    content_type: str, body: bytes, *, protobuf: Callable[[bytes], JSONObject], duplicates: list[str] | None = None
) -> JSONValue:
    """Decode by content type; JSON when there is none. Fields that appear twice are reported in `duplicates`."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type in ("", "application/json") or media_type.endswith("+json"):
        return decode_json(body, duplicates)
    if media_type == "application/vnd.kubernetes.protobuf":
        return protobuf(body)
    if media_type in ("application/yaml", "application/apply-patch+yaml"):
        return decode_yaml(body, duplicates)
    raise unsupported_media_type(
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


def decode_json(body: bytes, duplicates: list[str] | None = None) -> JSONValue:
    """JSON, checked for depth; with `duplicates`, also for fields that appear twice (the last one counts)."""
    try:
        value = cast(JSONValue, _decoder.decode(body))
        _check_depth(value)
        if duplicates is not None:
            _find_duplicates(body, duplicates)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    except RecursionError:
        raise bad_request("couldn't get version/kind; json parse error: exceeded max depth") from None
    return value


def decode_yaml(body: bytes, duplicates: list[str] | None = None) -> JSONValue:
    """YAML, of which JSON is a part."""
    if body.lstrip()[:1] == b"{":
        try:
            return decode_json(body, duplicates)
        except StatusError:
            pass  # flow-style YAML looks like this, too
    try:
        value = yaml.load(body, _Loader)  # noqa: S506 (a safe loader)
        # What JSON cannot say (dates, sets) is turned into what it would have been in JSON, or refused.
        plain = cast(JSONValue, _decoder.decode(msgspec.json.encode(value)))
        _check_depth(plain)
    except (yaml.YAMLError, msgspec.MsgspecError, TypeError, UnicodeDecodeError) as error:
        raise bad_request(f"error converting YAML to JSON: yaml: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise bad_request("error converting YAML to JSON: yaml: exceeded max depth") from None
    return plain


class _Loader(yaml.CSafeLoader):
    """Reads dates as the strings they are in JSON."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


def _check_depth(value: JSONValue) -> None:
    level: list[JSONValue] = [value]
    for _ in range(_DEEPEST):
        level = [
            child
            for item in level
            if isinstance(item, (dict, list))
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise RecursionError


def _find_duplicates(body: bytes, duplicates: list[str]) -> None:
    """Paths of fields that appear twice in one object."""
    # A marker per object that has any; found again below by walking the whole.
    found = False

    def check(pairs: list[tuple[str, object]]) -> object:
        nonlocal found
        names = [name for name, _ in pairs]
        content = dict(pairs)
        if len(content) != len(names):
            found = True
            return _Duplicated(content, sorted({name for name in names if names.count(name) > 1}))
        return content

    whole = json.loads(body, object_pairs_hook=check)
    if found:
        _collect(whole, "", duplicates)


class _Duplicated:
    def __init__(self, content: dict[str, object], names: list[str]) -> None:
        self.content = content
        self.names = names


def _collect(value: object, path: str, duplicates: list[str]) -> None:
    if isinstance(value, _Duplicated):
        duplicates += [f"{path}.{name}".lstrip(".") for name in value.names]
        value = value.content
    if isinstance(value, dict):
        for name, item in value.items():
            _collect(item, f"{path}.{name}", duplicates)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _collect(item, f"{path}[{index}]", duplicates)
