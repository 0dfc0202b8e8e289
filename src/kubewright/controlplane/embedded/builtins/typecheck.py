"""Objects of built-in kinds as Go would have them after decoding, defaulting and encoding.

kube-apiserver decodes every request into Go structs. What does not fit is a 400 in the words of Go's JSON decoder; what
fits comes out normalised: unknown fields and nulls are gone, empty values are gone or there by the field's tag, amounts
and times are in canonical form, defaults are filled in. `go_types.json` (made by `python -m tools.go_types`) says which
field is what, `struct_defaults` what it is filled in with. One walk does it all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import TypeAlias, cast

import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import copied
from kubewright.controlplane.embedded.apimachinery.go_values import json_kind
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.builtins.scalars import (
    MalformedScalar,
    base64_bytes,
    micro_time,
    quantity,
    resource_amount,
    seconds_time,
)
from kubewright.controlplane.embedded.builtins.struct_defaults import CONSTANTS, FUNCTIONS

_Decode: TypeAlias = Callable[[JSONValue], JSONValue]
_Zero: TypeAlias = Callable[[], JSONValue]

_GO_KINDS: Mapping[type, str] = {
    bool: "bool",
    str: "string",
    int: "int64",
    float: "float64",
    dict: "map",
    list: "slice",
    type(None): "invalid",
}
_INTEGERS = {"int": 64, "int32": 32, "int64": 64, "uint16": 16, "uint32": 32, "uint64": 64}


class _Mismatch(Exception):
    """A JSON value that Go cannot put where it is; the struct and path are added by the callers."""

    def __init__(self, found: JSONValue | msgspec.Raw, wanted: str, *, numeral: bool = False, form: str = "") -> None:
        super().__init__(wanted)
        self._form = form
        # Too deep to be taken apart, it is a `Raw`: an object or a list.
        self._value: JSONValue = ({} if bytes(found)[:1] == b"{" else []) if isinstance(found, msgspec.Raw) else found
        kind = json_kind(self._value)
        self.found = f"number {self._value}" if numeral and kind == "number" else kind
        self.wanted = wanted
        self.struct = ""
        self.path: list[str] = []

    def __str__(self) -> str:
        target = (
            f"Go struct field {self.struct}.{'.'.join(reversed(self.path))} of type"
            if self.struct
            else "Go value of type"
        )
        return f"json: cannot unmarshal {self.found} into {target} {self.wanted}"

    def converted(self) -> str:
        """The words of the converter that puts the outcome of a strategic merge patch into Go structs."""
        kind = _GO_KINDS[type(self._value)]
        if self._form in ("map", "slice"):
            return f"cannot restore {self._form} from {kind}"
        if self._form == "struct":
            return f"cannot restore struct from: {kind}"
        if (kind, self._form) == ("int64", "string") or (kind == "float64" and self._form in _INTEGERS):
            return f"cannot convert {kind} to {self.wanted}"
        if self._form:
            return f"unrecognized type: {self._form}"
        # Types that read JSON themselves.
        return f"json: cannot unmarshal {self.found} into Go value of type {self.wanted}"


class Undecodable(StatusError):
    """The 400 for an object that does not fit its Go type; `converted` is why, as strategic merge patches have it."""

    def __init__(self, message: str, converted: str) -> None:
        super().__init__(400, "BadRequest", message)
        self.converted = converted


@cache
def _table() -> Mapping[str, list[str] | str]:
    """Structs with their fields, and named types with what they are, by `<package>#<name>`."""
    content = resources.files(__package__).joinpath("go_types.json").read_bytes()
    return msgspec.json.decode(content, type=dict[str, list[str] | str])


def normalizer(go_type: str) -> Callable[[JSONObject], None]:
    """A function that checks an object of that type (`core/v1#Pod`), normalises it and fills in defaults, in place.

    It raises the 400 that kube-apiserver answers to an object that does not fit.
    """
    compiled: list[Callable[[JSONObject], JSONObject]] = []

    def normalize(obj: JSONObject) -> None:
        if not compiled:
            compiled.append(cast(Callable[[JSONObject], JSONObject], _type(go_type)[0]))
        try:
            result = compiled[0](obj)
        except (_Mismatch, MalformedScalar) as error:
            kind, version = go_type.partition("#")[2], go_type.partition("#")[0].rpartition("/")[2]
            message = f'{kind} in version "{version}" cannot be handled as a {kind}: {error}'
            raise Undecodable(message, error.converted() if isinstance(error, _Mismatch) else str(error)) from None
        obj.clear()
        obj.update(result)

    return normalize


def empty_field(go_type: str, name: str) -> Callable[[], JSONValue] | None:
    """What makes a fresh value of a struct's field as if nothing was given; None when there is no such field."""
    described = _table()[go_type]
    for field in map(_Field, described if isinstance(described, list) else ()):
        if field.name == name:
            return field.zero
    return None


def _printed(go_type: str) -> str:
    """A type as Go prints it: packages by their last part, bytes as uint8, pointers as what they point to."""
    go_type = go_type.removeprefix("*")
    if go_type.startswith("[]"):
        return "[]" + ("uint8" if go_type == "[]byte" else _printed(go_type[2:]))
    if go_type.startswith("map["):
        key, _, value = go_type[4:].partition("]")
        return f"map[{_printed(key)}]{_printed(value)}"
    package, mark, name = go_type.partition("#")
    return f"{package.rpartition('/')[2]}.{name}" if mark else go_type


@cache
def _type(go_type: str) -> tuple[_Decode, _Zero]:
    """How a type is decoded, and what an absent value of it is encoded as."""
    if go_type.startswith("*"):
        return _type(go_type[1:])[0], lambda: None
    if go_type in _SPECIAL:
        return _SPECIAL[go_type]
    if go_type in ("string", "bool", "float64") or go_type in _INTEGERS:
        return _scalar(go_type, go_type)
    if go_type.startswith("[]"):
        return _list(go_type, go_type)
    if go_type.startswith("map["):
        return _map(go_type, go_type)
    described = _table()[go_type]
    if isinstance(described, list):
        return _struct(go_type, described)
    if described.startswith("[]"):
        return _list(described, go_type)
    if described.startswith("map["):
        return _map(described, go_type)
    return _scalar(described, go_type)


def _scalar(basic: str, go_type: str) -> tuple[_Decode, _Zero]:
    printed = _printed(go_type)
    if basic == "string":

        def string(value: JSONValue) -> JSONValue:
            if type(value) is not str:
                raise _Mismatch(value, printed, form=basic)
            return value

        return string, lambda: ""
    if basic == "bool":

        def boolean(value: JSONValue) -> JSONValue:
            if type(value) is not bool:
                raise _Mismatch(value, printed, form=basic)
            return value

        return boolean, lambda: False
    if basic == "float64":

        def number(value: JSONValue) -> JSONValue:
            if type(value) is not float and type(value) is not int:
                raise _Mismatch(value, printed, form=basic)
            return value

        return number, lambda: 0

    bits = _INTEGERS[basic]
    lowest, highest = (0, 2**bits - 1) if basic.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

    def integer(value: JSONValue) -> JSONValue:
        if type(value) is not int:
            raise _Mismatch(value, printed, numeral=True, form=basic)
        if not lowest <= value <= highest:
            raise _Mismatch(value, printed, numeral=True)
        return value

    return integer, lambda: 0


def _list(described: str, go_type: str) -> tuple[_Decode, _Zero]:
    printed = _printed(go_type)
    if described == "[]byte":

        def octets(value: JSONValue) -> JSONValue:
            if isinstance(value, str):
                return base64_bytes(value)
            if isinstance(value, list) and all(type(octet) is int and 0 <= octet <= 255 for octet in value):
                return base64_bytes(bytes(octet for octet in value if isinstance(octet, int)))
            raise _Mismatch(value, printed, form="slice")

        return octets, lambda: None
    item, zero = _type(described[2:])

    def items(value: JSONValue) -> JSONValue:
        if type(value) is not list:
            raise _Mismatch(value, printed, form="slice")
        return [zero() if each is None else item(each) for each in value]

    return items, lambda: None


def _map(described: str, go_type: str) -> tuple[_Decode, _Zero]:
    printed = _printed(go_type)
    of = described.partition("]")[2]
    item, zero = _type(of)
    if go_type == "core/v1#ResourceList":
        item = resource_amount
    absent = "" if of == "[]byte" else None

    def entries(value: JSONValue) -> JSONValue:
        if type(value) is not dict:
            raise _Mismatch(value, printed, form="map")
        return {key: (zero() or absent) if each is None else item(each) for key, each in value.items()}

    if of == "string":

        def strings(value: JSONValue) -> JSONValue:
            if type(value) is not dict:
                raise _Mismatch(value, printed, form="map")
            return {key: "" if each is None else item(each) for key, each in value.items()}

        return strings, lambda: None
    return entries, lambda: None


class _Field:
    """One field of a struct; what it decodes with is found when first needed, because types may contain themselves."""

    __slots__ = ("_decode", "_go_type", "_zero", "always", "drops_zero", "path")

    def __init__(self, described: str) -> None:
        name, self._go_type, *options = described.split(" ")
        self.path = name.split(".")
        flags = options[0] if options else ""
        by_value = _is_struct(self._go_type)
        self.drops_zero = "e" in flags and not self._go_type.startswith("*") and not by_value
        # Go's omitempty leaves structs alone; only omitzero drops them.
        self.always = "z" not in flags and ("e" not in flags or by_value)
        self._decode: _Decode | None = None
        self._zero: _Zero | None = None

    @property
    def name(self) -> str:
        return self.path[-1]

    def decode(self, value: JSONValue) -> JSONValue:
        if self._decode is None:
            self._decode = _type(self._go_type)[0]
        return self._decode(value)

    def zero(self) -> JSONValue:
        if self._zero is None:
            self._zero = _type(self._go_type)[1]
        return self._zero()


def _is_struct(go_type: str) -> bool:
    return go_type in _SPECIAL or isinstance(_table().get(go_type), list)


def _struct(go_type: str, described: list[str]) -> tuple[_Decode, _Zero]:
    name = go_type.partition("#")[2]
    printed = _printed(go_type)
    fields = {field.name: field for field in map(_Field, described)}
    always = [field for field in fields.values() if field.always]
    # What is stored as protobuf comes back without empty lists; definitions and API services are stored as JSON.
    keeps_empty = go_type.startswith(("apiextensions/", "apiregistration/"))
    defaults = list(CONSTANTS.get(go_type, {}).items())
    fill_in = FUNCTIONS.get(go_type)

    def struct(value: JSONValue) -> JSONValue:
        if type(value) is not dict:
            raise _Mismatch(value, printed, form="struct")
        result: JSONObject = {}
        for key, given in value.items():
            if given is None:
                continue
            field = fields.get(key)
            if field is None:
                continue
            try:
                decoded = field.decode(given)
            except _Mismatch as mismatch:
                mismatch.struct = mismatch.struct or name
                mismatch.path.extend(reversed(field.path))
                raise
            if decoded or not field.drops_zero:
                result[key] = None if decoded == [] and not keeps_empty else decoded
        for field in always:
            if field.name not in result:
                result[field.name] = field.zero()
        for key, default in defaults:
            if result.get(key) is None:
                result[key] = copied(default)
        if fill_in is not None:
            fill_in(result)
        return result

    return struct, lambda: struct({})


def _time(parse: Callable[[str], str]) -> tuple[_Decode, _Zero]:
    def decode(value: JSONValue) -> JSONValue:
        if not isinstance(value, str):
            raise _Mismatch(value, "string")
        return parse(value)

    return decode, lambda: None


def _int_or_string(value: JSONValue) -> JSONValue:
    if type(value) is str:
        return value
    if type(value) is not int:
        raise _Mismatch(value, "int32", numeral=True)
    if not -(2**31) <= value < 2**31:
        raise _Mismatch(value, "int32", numeral=True)
    return value


def _as_it_is(value: JSONValue) -> JSONValue:
    return value


def _schema(value: JSONValue) -> JSONValue:
    # Found when first needed: schemas contain schemas.
    return _type("apiextensions/v1#JSONSchemaProps")[0](value)


def _schema_or_schemas(value: JSONValue) -> JSONValue:
    """What is neither is read as nothing."""
    if isinstance(value, list):
        return [_schema({} if item is None else item) for item in value] or None
    return _schema(value) if isinstance(value, dict) else None


def _schema_or_bool(value: JSONValue) -> JSONValue:
    if isinstance(value, bool):
        return value
    if not isinstance(value, dict):
        raise MalformedScalar("boolean or JSON schema expected")
    return _schema(value)


def _schema_or_names(value: JSONValue) -> JSONValue:
    return _schema(value) if isinstance(value, dict) else value if isinstance(value, list) else None


_RAW: tuple[_Decode, _Zero] = (_as_it_is, lambda: None)
_SPECIAL: Mapping[str, tuple[_Decode, _Zero]] = {
    "meta/v1#Time": _time(seconds_time),
    "meta/v1#MicroTime": _time(micro_time),
    "api/resource#Quantity": (quantity, lambda: "0"),
    "util/intstr#IntOrString": (_int_or_string, lambda: 0),
    "runtime#RawExtension": _RAW,
    "meta/v1#FieldsV1": _RAW,
    "apiextensions/v1#JSON": _RAW,
    "apiextensions/v1#JSONSchemaPropsOrArray": (_schema_or_schemas, lambda: None),
    "apiextensions/v1#JSONSchemaPropsOrBool": (_schema_or_bool, lambda: None),
    "apiextensions/v1#JSONSchemaPropsOrStringArray": (_schema_or_names, lambda: None),
}
