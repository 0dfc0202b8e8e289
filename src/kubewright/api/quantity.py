"""Amounts of a resource: `100m` of a CPU, `1.5Gi` of memory.

A Quantity is an exact number and one of three ways to print it: DecimalSI (`12M`), BinarySI (`12Mi`) and
DecimalExponent (`12e6`). Parsing, arithmetic and printing follow k8s.io/apimachinery's `resource.Quantity`: amounts
finer than 1n are rounded up to the next nano, BinarySI amounts are capped at 2^63-1. Where apimachinery answers wrongly
(`1000E` prints as `1`, `Value()` wraps around, exponents overflow), the exact answer or an error is given instead.

It is not a unit system: nothing here knows that memory is counted in bytes.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_UP, Context, Decimal, Inexact, InvalidOperation
from functools import cache, lru_cache
from typing import Final, Literal, final

_Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

_DECIMAL_SUFFIXES: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX_OF: Final = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_SUFFIX_OF: Final = {exponent: suffix for suffix, exponent in _BINARY_SUFFIXES.items()} | {0: ""}

_NANO: Final = Decimal("1e-9")
_BINARY_LIMIT: Final = Decimal(2**63 - 1)

# Nothing is rounded but by `quantize`. Sums and integers are limited, because 1e999999999 + 1 has a gigabyte of digits.
_MAX_DIGITS: Final = 10_000
_EXACT: Final = Context(MAX_PREC, ROUND_UP, MIN_EMIN, MAX_EMAX, traps=[InvalidOperation])
_EXACT_SUM: Final = Context(_MAX_DIGITS, ROUND_UP, MIN_EMIN, MAX_EMAX, traps=[InvalidOperation, Inexact])


@final
class Quantity:
    """An immutable, exact amount; equal amounts are equal and hash alike, however they are written.

    `str()` is the form Kubernetes prints. `text` is what was read, and what an unmodified object is written back with.
    """

    __slots__ = ("_amount", "_source")

    # What JSON had, or None for the result of a calculation, whose text is its printed form.
    _source: str | int | float | None
    # None until first needed: most decoded quantities are never read.
    _amount: tuple[Decimal, _Format] | None

    def __init__(self, value: str | int | Decimal) -> None:
        if isinstance(value, str):
            if _pattern().fullmatch(value) is None:
                raise ValueError(_complaint(value))
            self._source = value
            self._amount = None
            return
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            advice = ': floats are not exact, write Quantity("0.1") instead' if isinstance(value, float) else ""
            raise TypeError(f"a Quantity is made from a str, int or Decimal, not {type(value).__name__}{advice}")
        amount, _ = _parse(str(Decimal(value)))
        self._source = None
        self._amount = amount, "DecimalSI"

    @classmethod
    def from_json(cls, value: object) -> Quantity:
        """The quantity that a JSON string or number stands for; ValueError for anything else."""
        if isinstance(value, str):
            return _from_text(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            # The repr of a float is the shortest text that means this float: the number as it was written.
            quantity = cls(repr(value))
            quantity._source = value
            return quantity
        raise ValueError(f'expected a quantity, such as "250m" or 2, found {type(value).__name__}')

    def to_json(self) -> str | int | float:
        """What `from_json` or the constructor was given as text; the printed form for the result of a calculation."""
        return str(self) if self._source is None else self._source

    @property
    def text(self) -> str:
        """The quantity as it was written, `1000m`, where `str()` is `1`."""
        return str(self.to_json())

    def as_decimal(self) -> Decimal:
        """The exact amount."""
        return self._parsed()[0]

    @property
    def milli_value(self) -> int:
        """The amount in thousandths, rounded up (away from zero): 100 for `100m`."""
        return _integer(self.as_decimal().scaleb(3, _EXACT))

    def __int__(self) -> int:
        """The amount rounded up (away from zero) to an integer, as Go's `Value()`."""
        return _integer(self.as_decimal())

    def __str__(self) -> str:
        if self._source is not None:
            text = self.text.strip()
            if _is_printed_as_written(text):
                return text
        return _canonical(*self._parsed())

    def __repr__(self) -> str:
        return f"Quantity({self.text!r})"

    def __bool__(self) -> bool:
        return bool(self.as_decimal())

    def __hash__(self) -> int:
        return hash(self.as_decimal())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Quantity | int):
            return self.as_decimal() == _number(other)
        return NotImplemented

    def __lt__(self, other: Quantity | int) -> bool:
        if isinstance(other, Quantity | int):
            return self.as_decimal() < _number(other)
        return NotImplemented

    def __le__(self, other: Quantity | int) -> bool:
        if isinstance(other, Quantity | int):
            return self.as_decimal() <= _number(other)
        return NotImplemented

    def __gt__(self, other: Quantity | int) -> bool:
        if isinstance(other, Quantity | int):
            return self.as_decimal() > _number(other)
        return NotImplemented

    def __ge__(self, other: Quantity | int) -> bool:
        if isinstance(other, Quantity | int):
            return self.as_decimal() >= _number(other)
        return NotImplemented

    def __add__(self, other: Quantity | int) -> Quantity:
        """The exact sum, printed like the left operand, or like the right one when the left is zero."""
        if isinstance(other, Quantity):
            return _sum(self._parsed(), other._parsed())
        if isinstance(other, int):
            return _sum(self._parsed(), (Decimal(other), "DecimalSI"))
        return NotImplemented

    def __radd__(self, other: int) -> Quantity:
        if isinstance(other, int):
            return _sum((Decimal(other), "DecimalSI"), self._parsed())
        return NotImplemented

    def __sub__(self, other: Quantity | int) -> Quantity:
        """The exact difference, printed like the left operand, or like the right one when the left is zero."""
        if isinstance(other, Quantity | int):
            return self + -other
        return NotImplemented

    def __rsub__(self, other: int) -> Quantity:
        if isinstance(other, int):
            return other + -self
        return NotImplemented

    def __mul__(self, factor: int) -> Quantity:
        if isinstance(factor, int):
            amount, format_ = self._parsed()
            return _calculated(_EXACT.multiply(amount, factor) or Decimal(0), format_)
        return NotImplemented

    __rmul__ = __mul__

    def __neg__(self) -> Quantity:
        amount, format_ = self._parsed()
        return _calculated(_EXACT.minus(amount), format_)

    def __abs__(self) -> Quantity:
        amount, format_ = self._parsed()
        return _calculated(_EXACT.abs(amount), format_)

    def _parsed(self) -> tuple[Decimal, _Format]:
        if self._amount is None:
            self._amount = _parse(self.text.strip())
        return self._amount


@lru_cache(maxsize=1024)
def _from_text(text: str) -> Quantity:
    # A cluster has thousands of quantities and few different ones; they are immutable, so they can be shared.
    # The server, too, forgives white space in JSON, and only there.
    quantity = Quantity(text.strip())
    quantity._source = text
    return quantity


@cache
def _pattern() -> re.Pattern[str]:
    # Compiled when first used: many programs never see a quantity.
    # The repetitions are possessive, so that a long and wrong text is refused in linear time.
    return re.compile(
        r"""
        (?= [+-]? \.? [0-9]     # there is a number, or nothing but a small suffix, which apimachinery takes for zero
          | (?!\Z) [+-]? \.? (?: [numkMGTPE] | [KMGT]i | [eE] (?: \+?[0-9]{1,9} | -0*[0-9] ) )? \Z )
        [+-]? 0*+ (?P<whole> [0-9]*+ ) (?: \. (?P<fraction> [0-9]*+ ) )?+
        (?: (?P<suffix> [numkMGTPE] | [KMGTPE]i ) | [eE] (?P<exponent> [+-]? [0-9]{1,9} ) )?
        """,
        re.VERBOSE,
    )


def _split(text: str) -> tuple[bool, str, str, int, int, _Format]:
    """A written quantity: whether it is negative; the digits before and after the point, without sign and leading
    zeros; the power of two; the power of ten, of the last digit; the format.
    """
    match = _pattern().fullmatch(text)
    if match is None:
        raise ValueError(_complaint(text))
    whole, fraction, suffix, exponent = match.groups("")
    power_of_two = _BINARY_SUFFIXES.get(suffix, 0)
    power_of_ten = int(exponent) if exponent else _DECIMAL_SUFFIXES.get(suffix, 0)
    format_: _Format = "BinarySI" if power_of_two else "DecimalExponent" if exponent else "DecimalSI"
    return text[0] == "-", whole or "0", fraction, power_of_two, power_of_ten - len(fraction), format_


def _complaint(text: str) -> str:
    shown = repr(text if len(text) <= 40 else text[:40] + "…")
    suffix = text.lstrip("+-.0123456789")
    if not text.removesuffix(suffix).strip("+-."):
        reason = "no number"
    elif not suffix:
        reason = "malformed number"
    elif re.fullmatch("[eE][+-]?[0-9]+", suffix):
        reason = "the exponent has more than nine digits"
    else:
        reason = f"unknown suffix {suffix[:20]!r}"
    return (
        f"{shown} is not a quantity ({reason}): expected a number, then nothing or one of n u m k M G T P E, "
        'Ki Mi Gi Ti Pi Ei, or an exponent like e3; for example "250m", "1.5" or "64Mi"'
    )


def _parse(text: str) -> tuple[Decimal, _Format]:
    negative, whole, fraction, power_of_two, power_of_ten, format_ = _split(text)
    amount = Decimal(f"{whole}{fraction}e{power_of_ten}")
    if not amount:
        return Decimal(0), format_
    if power_of_two:
        amount = _EXACT.multiply(amount, 2**power_of_two)
    if power_of_ten < -9:
        amount = amount.quantize(_NANO, context=_EXACT)
    if power_of_two:
        amount = min(amount, _BINARY_LIMIT)
        if amount < 1:
            format_ = "DecimalSI"
    return (_EXACT.minus(amount) if negative else amount), format_


def _is_printed_as_written(text: str) -> bool:
    """Whether apimachinery takes `text` for canonical and repeats it; it does so with `1.234` and `+1Ki`, too."""
    _, whole, fraction, power_of_two, power_of_ten, _ = _split(text)
    digits = whole + fraction
    if power_of_two:
        return not fraction and len(whole) <= 14 - power_of_two * 3 // 10 and int(whole) % 8 != 0
    if power_of_ten < -9 or power_of_ten % 3 != 0 or len(digits) > 18:
        return False
    return digits[0] != "0" and not digits.endswith("000")


def _canonical(amount: Decimal, format_: _Format) -> str:
    """The amount without a decimal point, with the largest suffix that allows it."""
    if not amount:
        return "0"
    if format_ == "BinarySI" and _EXACT.abs(amount) >= 1024 and amount == amount.to_integral_value():
        integer, power_of_two = int(amount), 0
        while integer % 1024 == 0 and power_of_two < 60:
            integer //= 1024
            power_of_two += 10
        return f"{integer}{_BINARY_SUFFIX_OF[power_of_two]}"

    normalized = _EXACT.normalize(amount)
    digits = "".join(map(str, normalized.as_tuple().digits))
    exponent = normalized.adjusted() - len(digits) + 1
    digits += "0" * (exponent % 3)
    exponent -= exponent % 3
    suffix = _DECIMAL_SUFFIX_OF.get(exponent) if exponent == 0 or format_ != "DecimalExponent" else None
    return f"{'-' if amount < 0 else ''}{digits}{f'e{exponent}' if suffix is None else suffix}"


def _sum(left: tuple[Decimal, _Format], right: tuple[Decimal, _Format]) -> Quantity:
    try:
        amount = _EXACT_SUM.add(left[0], right[0])
    except Inexact:
        raise OverflowError(f"the exact sum has more than {_MAX_DIGITS} digits") from None
    return _calculated(amount, left[1] if left[0] else right[1])


def _integer(amount: Decimal) -> int:
    if amount.adjusted() > _MAX_DIGITS:
        raise OverflowError(f"the integer has more than {_MAX_DIGITS} digits; as_decimal() has the exact amount")
    return int(amount.to_integral_value(ROUND_UP))


def _number(value: Quantity | int) -> Decimal | int:
    return value.as_decimal() if isinstance(value, Quantity) else value


def _calculated(amount: Decimal, format_: _Format) -> Quantity:
    quantity = Quantity.__new__(Quantity)
    quantity._source = None
    quantity._amount = amount, format_
    return quantity
