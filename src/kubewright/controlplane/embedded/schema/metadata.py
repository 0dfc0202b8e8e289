"""Metadata of custom resources, and of resources embedded in them, as the real server's `ObjectMeta` would hold it.

Whatever the schema says, metadata has the fields of `ObjectMeta` and no others. Unknown ones are dropped, values of a
wrong type are an error in the words of Go's JSON decoder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from kubewright.api.markers import JSONObject, JSONValue

_GO_NAMES = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
_TIME_STEPS = tuple(
    (re.compile(pattern), layout)
    for pattern, layout in (
        ("[0-9]{4}", "2006"),
        ("-", "-"),
        ("0[1-9]|1[0-2]", "01"),
        ("-", "-"),
        ("[0-9]{2}", "02"),
        ("T", "T"),
        ("[01][0-9]|2[0-3]", "15"),
        (":", ":"),
        ("[0-5][0-9]", "04"),
        (":", ":"),
        ("[0-5][0-9]", "05"),
        (r"(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})$", "Z07:00"),
    )
)


class MalformedMetadata(ValueError):
    """Metadata that cannot be decoded; the text is Go's."""


# Checks a value that is not null: the value, the Go field (for errors), its path, and where unknown fields are noted.
_Read = Callable[[JSONValue, str, str, list[str]], JSONValue]


def _mismatch(value: JSONValue, where: str, go_type: str) -> MalformedMetadata:
    target = f"Go struct field {where}" if where else "Go value"
    return MalformedMetadata(f"json: cannot unmarshal {_GO_NAMES[type(value)]} into {target} of type {go_type}")


def _text(value: JSONValue, where: str, path: str, unknown: list[str], go_type: str = "string") -> str:
    if not isinstance(value, str):
        raise _mismatch(value, where, go_type)
    return value


def _uid(value: JSONValue, where: str, path: str, unknown: list[str]) -> str:
    return _text(value, where, path, unknown, "types.UID")


def _integer(value: JSONValue, where: str, path: str, unknown: list[str]) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _mismatch(value, where, "int64")
    return value


def _flag(value: JSONValue, where: str, path: str, unknown: list[str]) -> bool:
    if not isinstance(value, bool):
        raise _mismatch(value, where, "bool")
    return value


def _time(value: JSONValue, where: str, path: str, unknown: list[str]) -> str:
    if not isinstance(value, str):
        raise _mismatch(value, "", "string")
    at = 0
    for pattern, layout in _TIME_STEPS:
        found = pattern.match(value, at)
        if found is None:
            raise MalformedMetadata(
                f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse "{value[at:]}" as "{layout}"'
            )
        at = found.end()
    return value


def _texts_by_name(value: JSONValue, where: str, path: str, unknown: list[str]) -> JSONValue:
    if not isinstance(value, dict):
        raise _mismatch(value, where, "map[string]string")
    if all(type(text) is str for text in value.values()):
        return value
    # Null in a map of strings is Go's empty string.
    return {name: "" if text is None else _text(text, where, path, unknown) for name, text in value.items()}


def _texts(value: JSONValue, where: str, path: str, unknown: list[str]) -> JSONValue:
    if not isinstance(value, list):
        raise _mismatch(value, where, "[]string")
    return ["" if text is None else _text(text, where, path, unknown) for text in value]


def _anything(value: JSONValue, where: str, path: str, unknown: list[str]) -> JSONValue:
    return value


def _structure(value: JSONObject, fields: Mapping[str, _Read], where: str, path: str, unknown: list[str]) -> JSONObject:
    known: JSONObject = {}
    # Go has written it down before it reads it: in order.
    for name in sorted(value):
        item, read = value[name], fields.get(name)
        if read is None:
            unknown.append(f"{path}.{name}")
        elif item is not None:
            found = read(item, f"{where}.{name}", f"{path}.{name}", unknown)
            # Go leaves out what is empty, but not a pointer to false or zero.
            if found or found is False or name == "deletionGracePeriodSeconds":
                known[name] = found
    return known


def _structures(go_type: str, fields: Mapping[str, _Read], always: tuple[str, ...] = ()) -> _Read:
    def read(value: JSONValue, where: str, path: str, unknown: list[str]) -> JSONValue:
        if not isinstance(value, list):
            raise _mismatch(value, where, f"[]v1.{go_type}")
        # Go names the innermost structure, and the path of fields from the outermost.
        inner = f"{go_type}.{where.partition('.')[2]}"
        known: list[JSONValue] = []
        for index, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                raise _mismatch(item, where, f"v1.{go_type}")
            found = _structure(item or {}, fields, inner, f"{path}[{index}]", unknown)
            known.append({**dict.fromkeys(always, ""), **found})
        return known

    return read


_FIELDS: Mapping[str, _Read] = {
    "name": _text,
    "generateName": _text,
    "namespace": _text,
    "selfLink": _text,
    "uid": _uid,
    "resourceVersion": _text,
    "generation": _integer,
    "creationTimestamp": _time,
    "deletionTimestamp": _time,
    "deletionGracePeriodSeconds": _integer,
    "labels": _texts_by_name,
    "annotations": _texts_by_name,
    "ownerReferences": _structures(
        "OwnerReference",
        {
            "apiVersion": _text,
            "kind": _text,
            "name": _text,
            "uid": _uid,
            "controller": _flag,
            "blockOwnerDeletion": _flag,
        },
        ("apiVersion", "kind", "name", "uid"),
    ),
    "finalizers": _texts,
    "managedFields": _structures(
        "ManagedFieldsEntry",
        {
            "manager": _text,
            "operation": _text,
            "apiVersion": _text,
            "time": _time,
            "fieldsType": _text,
            "fieldsV1": _anything,
            "subresource": _text,
        },
    ),
}


def coerced(metadata: JSONValue, path: str, unknown: list[str]) -> JSONObject:
    """`metadata` with the fields of ObjectMeta only; the paths of all others are added to `unknown`.

    Raises `MalformedMetadata`.
    """
    if metadata is None:
        return {}
    if not isinstance(metadata, dict):
        raise MalformedMetadata(
            f"json: cannot unmarshal {_GO_NAMES[type(metadata)]} into Go value of type v1.ObjectMeta"
        )
    return _structure(metadata, _FIELDS, "ObjectMeta", path, unknown)
