"""Values that JSON has in another form than their message, on their way to protobuf: the reverse of `scalars`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, cast

from kubewright.api.markers import JSONObject, JSONValue

_PERIOD: Final = 146097 * 86400  # after 400 years, dates repeat


def _moment(value: JSONValue) -> JSONObject:
    written = cast(str, value)
    # Go knows the year 0, Python does not.
    periods, year = divmod(int(written[:4]), 400)
    at = datetime.fromisoformat(f"{year + 2000}{written[4:]}").astimezone(UTC)
    seconds = int(at.replace(microsecond=0).timestamp()) + (periods - 5) * _PERIOD
    return {"seconds": seconds, "nanos": at.microsecond * 1000}


def _time(value: JSONValue) -> JSONObject:
    return {**_moment(value), "nanos": 0}


def _int_or_string(value: JSONValue) -> JSONObject:
    return {"type": 1, "strVal": value} if isinstance(value, str) else {"type": 0, "intVal": value}


def _schema_or_array(value: JSONValue) -> JSONObject:
    return {"JSONSchemas": value} if isinstance(value, list) else {"Schema": value}


def _schema_or_bool(value: JSONValue) -> JSONObject:
    return {"Allows": value} if isinstance(value, bool) else {"Allows": True, "Schema": value}


def _schema_or_strings(value: JSONValue) -> JSONObject:
    return {"Property": value} if isinstance(value, list) else {"Schema": value}


MESSAGE_FORMS: Final[dict[str, Callable[[JSONValue], JSONObject]]] = {
    "Time": _time,
    "MicroTime": _moment,
    "Quantity": lambda value: {"string": value},
    "IntOrString": _int_or_string,
    "RawExtension": lambda value: {"raw": value},
    "FieldsV1": lambda value: {"raw": value},
    "JSON": lambda value: {"raw": value},
    "ExtraValue": lambda value: {"items": value},
    "Verbs": lambda value: {"items": value},
    "JSONSchemaPropsOrArray": _schema_or_array,
    "JSONSchemaPropsOrBool": _schema_or_bool,
    "JSONSchemaPropsOrStringArray": _schema_or_strings,
}
"""The fields of a message, by the name of its Go type."""
