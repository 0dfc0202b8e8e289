"""The hash of a pod template, which names ReplicaSets and the revisions of DaemonSets.

It is kube-controller-manager's: of how Go prints the template, with the names and types of all fields. Those are in
`pod_template_types.json`, which tools/generate_protobuf writes.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Final, cast

import msgspec

from kubewright.api.codec import to_json
from kubewright.api.core.v1 import PodTemplateSpec
from kubewright.api.markers import JSONObject, JSONValue

_OFFSET, _PRIME, _MASK = 0x811C9DC5, 0x01000193, 0xFFFFFFFF
# No vowels and nothing that looks like another character, so that no hash spells a word.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_ZERO_TIME: Final = "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}"


def template_hash(template: PodTemplateSpec, collisions: int | None) -> str:
    """The hash of a template; another one after each collision."""
    content = _printed("v1.PodTemplateSpec", to_json(template)).encode()
    if collisions is not None:
        content += collisions.to_bytes(8, "little")
    hashed = _OFFSET
    for byte in content:
        hashed = ((hashed ^ byte) * _PRIME) & _MASK
    return safe_encoded(str(hashed))


def safe_encoded(text: str) -> str:
    """The text in letters of which no word is made."""
    return "".join(_ALPHABET[ord(character) % len(_ALPHABET)] for character in text)


@cache
def _types() -> dict[str, str | list[str]]:
    content = resources.files(__package__).joinpath("pod_template_types.json").read_bytes()
    return msgspec.json.decode(content, type=dict[str, str | list[str]])


def _printed(type_: str, value: JSONValue) -> str:
    """A value with its type."""
    return f"({type_}){_content(type_, value)}"


def _content(type_: str, value: JSONValue) -> str:
    """A value without its type; None is Go's zero."""
    if type_.startswith("*"):
        return "<nil>" if value is None else _content(type_[1:], value)
    if type_.startswith("[]"):
        return f"[{' '.join(_content(type_[2:], item) for item in cast(list[JSONValue], value))}]" if value else "<nil>"
    if type_.startswith("map["):
        item = type_.partition("]")[2]
        entries = sorted(cast(JSONObject, value or {}).items())
        return f"map[{' '.join(f'{name}:{_content(item, one)}' for name, one in entries)}]" if entries else "<nil>"
    match type_:
        case "string":
            return cast(str, value or "")
        case "bool":
            return "true" if value else "false"
        case "int32" | "int64":
            return str(value or 0)
        case "v1.Time":
            return _ZERO_TIME  # a template has not been created
        case "intstr.IntOrString":
            return _int_or_string(value)
        case "resource.Quantity":
            return _quantity(cast(str, value))
    described = _types()[type_]
    if isinstance(described, str):
        return _content(described, value)
    return f"{{{' '.join(_field(field, cast(JSONObject, value or {})) for field in described)}}}"


def _field(field: str, obj: JSONObject) -> str:
    go_name, name, type_ = field.split(" ")
    # The fields of an embedded struct are beside the others in JSON.
    return f"{go_name}:{_printed(type_, obj.get(name) if name else obj)}"


def _int_or_string(value: JSONValue) -> str:
    is_text = isinstance(value, str)
    number, text = (0, value) if is_text else (value or 0, "")
    return f"{{Type:(intstr.Type){int(is_text)} IntVal:(int32){number} StrVal:(string){text}}}"


# Quantities as Go's parser leaves them: an integer with a scale where 64 bits are enough, else a decimal; and the text
# itself where that is known to be canonical.

_QUANTITY: Final = re.compile(r"(?P<sign>[+-]?)0*(?P<whole>\d*)(?:\.(?P<fraction>\d*))?(?P<suffix>.*)")
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_NANO: Final = -9


def _quantity(text: str) -> str:
    if text == "0":
        return _quantity_with("", "DecimalSI", text=text)
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return _quantity_with("", "DecimalSI")
    sign, whole, fraction, suffix = (match[name] or "" for name in ("sign", "whole", "fraction", "suffix"))
    digits = (whole or "0") + fraction
    if suffix in _BINARY:
        exponent, format_, scale = _BINARY[suffix], "BinarySI", 0
        factor = 1 << exponent
        precision = -1 if fraction else 15 - len(whole or "0") - int(exponent * 3 / 10) - 1
        is_canonical = bool(int(digits) & 7)
    else:
        format_ = "DecimalSI" if suffix in _DECIMAL else "DecimalExponent"
        exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
        factor, scale = 1, exponent - len(fraction)
        precision = 18 - len(digits)
        is_canonical = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    amount = int(digits) * factor * (-1 if sign == "-" else 1)
    if precision >= 0 and scale >= _NANO and abs(amount) < 1 << 63:
        value = f"value:(int64){amount} scale:(resource.Scale){scale}"
        return _quantity_with(value, format_, text=text if is_canonical else "")
    # Rounded away from zero, to billionths.
    shift = 9 + (scale if format_ != "BinarySI" else -len(fraction))
    unscaled = abs(amount) * 10**shift if shift >= 0 else -(-abs(amount) // 10**-shift)
    words = []
    while unscaled:
        words.append(str(unscaled & 0xFFFFFFFFFFFFFFFF))
        unscaled >>= 64
    number = f"neg:(bool){'true' if amount < 0 else 'false'} abs:(big.nat)[{' '.join(words)}]"
    return _quantity_with("", format_, decimal=f"{{unscaled:(big.Int){{{number}}} scale:(inf.Scale)9}}")


def _quantity_with(value: str, format_: str, *, text: str = "", decimal: str = "<nil>") -> str:
    value = value or "value:(int64)0 scale:(resource.Scale)0"
    return (
        f"{{i:(resource.int64Amount){{{value}}} d:(resource.infDecAmount){{Dec:(*inf.Dec){decimal}}} "
        f"s:(string){text} Format:(resource.Format){format_}}}"
    )
