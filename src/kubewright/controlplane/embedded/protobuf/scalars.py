"""Single values: the scalars of protobuf, and messages that are a single value in JSON."""

from __future__ import annotations

import base64
import math
import re
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias, cast

import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.nesting import decode
from kubewright.controlplane.embedded.builtins.scalars import MalformedScalar
from kubewright.controlplane.embedded.builtins.scalars import quantity as canonical_quantity
from kubewright.controlplane.embedded.protobuf.wire import Malformed

Reader: TypeAlias = Callable[[bytes], JSONValue]

_SURROGATES = re.compile("[\\udc80-\\udcff]")
_DOUBLE = struct.Struct("<d")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO_TIME = -62135596800  # 0001-01-01, Go's zero
_PERIOD = 146097 * 86400  # after 400 years, dates repeat


def boolean(number: int) -> bool:
    """A bool."""
    return number != 0


def int32(number: int) -> int:
    """An int32: what is beyond it is cut off."""
    number &= 0xFFFFFFFF
    return number - (1 << 32) if number >= 1 << 31 else number


def int64(number: int) -> int:
    """An int64."""
    return number - (1 << 64) if number >= 1 << 63 else number


def string(content: bytes) -> str:
    """A string; as in Go's JSON, every byte that is not UTF-8 becomes a replacement character."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return _SURROGATES.sub("\ufffd", content.decode(errors="surrogateescape"))


def octets(content: bytes) -> str:
    """Bytes, which JSON has in base64."""
    return base64.b64encode(content).decode()


def as_sent(content: bytes) -> JSONValue:
    """Bytes as they are. No JSON: for the envelope only."""
    return cast(JSONValue, content)


def double(content: bytes) -> float | int:
    """A float64; whole ones are integers in Go's JSON below 1e21."""
    number: float = _DOUBLE.unpack(content)[0]
    if not math.isfinite(number):
        raise Malformed(f"json: unsupported value: {'NaN' if math.isnan(number) else '+Inf' if number > 0 else '-Inf'}")
    return int(number) if number.is_integer() and abs(number) < 1e21 else number


def document(content: bytes) -> JSONValue:
    """JSON within protobuf."""
    if not content:
        return None
    try:
        return decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"json: error in a raw document: {error}") from None


def _date(seconds: int) -> str:
    periods, within = divmod(seconds - _ZERO_TIME, _PERIOD)
    at = _EPOCH + timedelta(seconds=within + _ZERO_TIME)
    year = at.year + 400 * periods
    return f"{year:0{4 if year >= 0 else 5}d}-{at:%m-%dT%H:%M:%S}"


def _time(sent: JSONObject) -> JSONValue:
    seconds = cast(int, sent["seconds"])
    return None if seconds == _ZERO_TIME else f"{_date(seconds)}Z"


def _micro_time(sent: JSONObject) -> JSONValue:
    # Go cuts the fraction to microseconds before it adds it, so a negative one is cut towards zero.
    microseconds = int(cast(int, sent["nanos"]) / 1000)
    carried, fraction = divmod(microseconds, 1_000_000)
    seconds = cast(int, sent["seconds"]) + carried
    return None if seconds == _ZERO_TIME and not fraction else f"{_date(seconds)}.{fraction:06d}Z"


def _quantity(sent: JSONObject) -> JSONValue:
    if "string" not in sent:
        return "0"
    try:
        return canonical_quantity(sent["string"])
    except MalformedScalar as error:
        raise Malformed(str(error)) from None


def _int_or_string(sent: JSONObject) -> JSONValue:
    if sent["type"] not in (0, 1):
        raise Malformed("impossible IntOrString.Type")
    return sent["strVal"] if sent["type"] else sent["intVal"]


def _itself(sent: JSONObject) -> JSONValue:
    return sent


def _first(*names: str) -> Callable[[JSONObject], JSONValue]:
    """The first field that has something."""

    def choose(sent: JSONObject) -> JSONValue:
        return next((sent[name] for name in names if sent.get(name) is not None), None)

    return choose


NUMBERS: Final[dict[str, Callable[[int], JSONValue]]] = {"bool": boolean, "int32": int32, "int64": int64}
CONTENTS: Final[dict[str, Reader]] = {"string": string, "bytes": octets, "json": document, "as-sent": as_sent}
ZEROS: Final[dict[str, JSONValue]] = {"bool": False, "int32": 0, "int64": 0, "double": 0, "string": ""}
"""What Go's JSON has for a value that was not sent; null for all others, except messages."""

SPECIAL: Final[dict[str, tuple[tuple[str, ...], Callable[[JSONObject], JSONValue]]]] = {
    "Time": (("1 seconds int64", "2 nanos int32"), _time),
    "MicroTime": (("1 seconds int64", "2 nanos int32"), _micro_time),
    "Quantity": (("1 string:String_ *string?",), _quantity),
    "IntOrString": (("1 type int64", "2 intVal int32", "3 strVal string"), _int_or_string),
    "RawExtension": (("1 raw json",), _first("raw")),
    "FieldsV1": (("1 raw json",), _first("raw")),
    "JSON": (("1 raw json",), _first("raw")),
    "TypeMeta": (("1 apiVersion:APIVersion string", "2 kind string"), _itself),
}
"""Messages that the Go types say nothing of: their fields, and how their JSON is made of these."""

SINGLE_VALUED: Final[dict[str, Callable[[JSONObject], JSONValue]]] = {
    "ExtraValue": _first("items"),
    "Verbs": _first("items"),
    "JSONSchemaPropsOrArray": _first("JSONSchemas", "Schema"),
    "JSONSchemaPropsOrBool": _first("Schema", "Allows"),
    "JSONSchemaPropsOrStringArray": _first("Property", "Schema"),
}
"""The same for messages in the table, by the name of the Go type."""
