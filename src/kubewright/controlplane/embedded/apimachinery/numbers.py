"""Numbers as they are once Go has written them as JSON: whole ones without a fraction, large ones rounded."""

from __future__ import annotations

from typing import Final

from kubewright.api.markers import JSONValue

_INTEGERS: Final = 2**63


def settle_numbers(value: JSONValue) -> None:
    """Change the numbers in a value, in place: a whole float is the integer that is read back, if 64 bits hold it, and
    an integer that they do not hold is a float.
    """
    if isinstance(value, dict):
        for name, content in value.items():
            if isinstance(content, float | int):
                value[name] = _settled(content)
            elif content is not None and not isinstance(content, str):
                settle_numbers(content)
    elif isinstance(value, list):
        for index, content in enumerate(value):
            if isinstance(content, float | int):
                value[index] = _settled(content)
            elif content is not None and not isinstance(content, str):
                settle_numbers(content)


def _settled(number: float) -> float:
    fits = -_INTEGERS <= number < _INTEGERS
    if type(number) is float:
        return int(number) if fits and number.is_integer() else number
    return number if fits else float(number)
