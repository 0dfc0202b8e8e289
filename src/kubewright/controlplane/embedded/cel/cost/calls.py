"""What calling a function costs, apart from its arguments, and how large its result is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from kubewright.controlplane.embedded.cel.cost.size import ONE, UNLIMITED, Size, exactly, limited, scaled
from kubewright.controlplane.embedded.cel.library.overload import Overload
from kubewright.controlplane.embedded.cel.syntax import Literal_, Node
from kubewright.controlplane.embedded.cel.types import STRING, CelType

TRAVERSAL: Final = 0.1
_REGEX: Final = 0.25
_NEW_LIST: Final = 10
_MAX_FORMAT: Final = 128
_AUTHORIZATION: Final = 350_000
_ADDRESS: Final = Size(4, 16)


@dataclass(frozen=True, slots=True)
class CallCost:
    """The most a call costs, and the size of what it returns where that is known better than by its type."""

    maximum: int
    result: Size | None = None


class Sized(Protocol):
    """What knows the sizes of the parts of an expression."""

    def size(self, node: Node) -> Size:
        """The size of a value; unknown where nothing limits it."""

    def element_size(self, node: Node) -> Size:
        """The size of the elements of a list."""


_Estimate = Callable[[Sized, Sequence[Node], Overload], CallCost | None]


def call_cost(sizes: Sized, function: str, parts: Sequence[Node], overload: Overload) -> CallCost:
    """The cost of one overload of a function; `parts` begin with what a method is called on."""
    estimate = _ESTIMATES.get(function)
    if estimate is not None:
        found = estimate(sizes, parts, overload)
        if found is not None:
            return found
    return CallCost(1)


def _text_once(sizes: Sized, parts: Sequence[Node], _overload: Overload) -> CallCost:
    return CallCost(scaled(sizes.size(parts[0]).maximum, TRAVERSAL))


def _text_once_kept(sizes: Sized, parts: Sequence[Node], _overload: Overload) -> CallCost:
    size = sizes.size(parts[0])
    return CallCost(scaled(size.maximum, TRAVERSAL), size)


def _text_twice(sizes: Sized, parts: Sequence[Node], _overload: Overload) -> CallCost:
    return CallCost(scaled(sizes.size(parts[0]).maximum, 2 * TRAVERSAL))


def _elements(sizes: Sized, parts: Sequence[Node], _overload: Overload) -> CallCost:
    target = parts[0]
    size = sizes.size(target)
    if not target.type.parameters:
        return CallCost(scaled(size.maximum, TRAVERSAL))
    each = 1
    if target.type.parameters[0].kind in ("string", "bytes"):
        each = limited(1 + scaled(sizes.element_size(target).maximum, TRAVERSAL))
    return CallCost(limited(size.maximum * each))


def _replace(sizes: Sized, parts: Sequence[Node], _overload: Overload) -> CallCost:
    size, old, new = (sizes.size(part) for part in parts[:3])
    kept_maximum, kept_minimum = 0, 0
    if old.minimum == 0:
        count_maximum, kept_maximum = limited(size.maximum + 1), size.maximum
    elif new.maximum <= old.minimum:
        count_maximum, kept_maximum = 0, size.maximum
    else:
        count_maximum = scaled(size.maximum, 1 / old.minimum)
    if old.maximum == 0:
        count_minimum, kept_minimum = limited(size.minimum + 1), size.minimum
    elif old.maximum <= new.minimum:
        count_minimum, kept_minimum = 0, size.minimum
    else:
        count_minimum = scaled(size.minimum, 1 / old.maximum)
    result = Size(count_minimum, count_maximum).times(new).plus(Size(kept_minimum, kept_maximum))
    return CallCost(scaled(size.maximum, 2 * TRAVERSAL), result)


def _split(sizes: Sized, parts: Sequence[Node], _overload: Overload) -> CallCost:
    size = sizes.size(parts[0])
    maximum = size.maximum
    if len(parts) > 2 and isinstance(parts[2], Literal_) and isinstance(parts[2].value, int):
        maximum = parts[2].value % 2**64
    return CallCost(scaled(size.maximum, 2 * TRAVERSAL), Size(0, maximum))


def _join(sizes: Sized, parts: Sequence[Node], _overload: Overload) -> CallCost:
    count = sizes.size(parts[0])
    size = count.times(sizes.element_size(parts[0])) if parts[0].type.parameters else Size(0, 0)
    if len(parts) > 1:
        between = Size(max(count.minimum - 1, 0), max(count.maximum - 1, 0))
        size = size.plus(sizes.size(parts[1]).times(between))
    return CallCost(scaled(size.maximum, TRAVERSAL), size)


def _find(sizes: Sized, parts: Sequence[Node], _overload: Overload) -> CallCost:
    size = sizes.size(parts[0])
    pattern = scaled(sizes.size(parts[1]).maximum, _REGEX)
    return CallCost(limited(scaled(size.plus(ONE).maximum, TRAVERSAL) * pattern), Size(0, size.maximum))


def _matches(sizes: Sized, parts: Sequence[Node], overload: Overload) -> CallCost | None:
    if not overload.member:
        return None
    return CallCost(_find(sizes, parts, overload).maximum)


def _contains(sizes: Sized, parts: Sequence[Node], _overload: Overload) -> CallCost:
    return CallCost(
        limited(scaled(sizes.size(parts[0]).maximum, TRAVERSAL) * scaled(sizes.size(parts[1]).maximum, TRAVERSAL))
    )


def _affix(sizes: Sized, parts: Sequence[Node], _overload: Overload) -> CallCost:
    return CallCost(scaled(sizes.size(parts[1]).maximum, TRAVERSAL))


def _ip(sizes: Sized, parts: Sequence[Node], overload: Overload) -> CallCost | None:
    return None if overload.member else _text_once(sizes, parts, overload)


def _contains_ip(sizes: Sized, parts: Sequence[Node], overload: Overload) -> CallCost:
    return CallCost(limited(scaled(_ADDRESS.plus(_ADDRESS).maximum, TRAVERSAL) + _second_text(sizes, parts, overload)))


def _contains_cidr(sizes: Sized, parts: Sequence[Node], overload: Overload) -> CallCost:
    own = scaled(_ADDRESS.plus(_ADDRESS).maximum, TRAVERSAL) + scaled(_ADDRESS.maximum, TRAVERSAL) + 1
    return CallCost(limited(own + _second_text(sizes, parts, overload)))


def _second_text(sizes: Sized, parts: Sequence[Node], overload: Overload) -> int:
    return scaled(sizes.size(parts[1]).maximum, TRAVERSAL) if overload.parameters[1] == STRING else 0


def _validate(sizes: Sized, parts: Sequence[Node], _overload: Overload) -> CallCost:
    return CallCost(scaled(scaled(sizes.size(parts[1]).maximum, TRAVERSAL), _MAX_FORMAT * _REGEX))


def _bytes(sizes: Sized, parts: Sequence[Node], overload: Overload) -> CallCost | None:
    if overload.parameters[0] != STRING:
        return None
    size = sizes.size(parts[0])
    return CallCost(scaled(size.maximum, TRAVERSAL), Size(size.minimum, size.maximum * 4 % 2**64))


def _string(sizes: Sized, parts: Sequence[Node], overload: Overload) -> CallCost | None:
    if overload.parameters[0].kind != "bytes":
        return None
    size = sizes.size(parts[0])
    return CallCost(scaled(size.maximum, TRAVERSAL), Size(size.minimum // 4, size.maximum))


def _quote(sizes: Sized, parts: Sequence[Node], _overload: Overload) -> CallCost:
    size = sizes.size(parts[0])
    return CallCost(scaled(size.maximum, TRAVERSAL), Size(size.minimum + 2, (size.maximum * 2 + 2) % 2**64))


def _membership(sizes: Sized, parts: Sequence[Node], overload: Overload) -> CallCost | None:
    return CallCost(sizes.size(parts[1]).maximum) if overload.parameters[1].kind == "list" else None


def _sum(sizes: Sized, parts: Sequence[Node], overload: Overload) -> CallCost | None:
    kind = overload.parameters[0].kind
    if kind not in ("string", "bytes", "list"):
        return None
    size = sizes.size(parts[0]).plus(sizes.size(parts[1]))
    return CallCost(1 if kind == "list" else scaled(size.maximum, TRAVERSAL), size)


def _comparison(sizes: Sized, parts: Sequence[Node], overload: Overload) -> CallCost | None:
    if overload.parameters[0].kind not in ("string", "bytes", "parameter"):
        return None
    return CallCost(scaled(min(sizes.size(parts[0]).maximum, sizes.size(parts[1]).maximum), TRAVERSAL))


_CONSTANT_EQUALITY: Final = frozenset(("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"))


def _equality(sizes: Sized, parts: Sequence[Node], overload: Overload) -> CallCost | None:
    type_: CelType = parts[0].type
    if type_ == parts[1].type:
        if type_.name in _CONSTANT_EQUALITY:
            return CallCost(1)
        if type_.name == "kubernetes.NamedFormat":
            return CallCost(scaled(64, TRAVERSAL))
        if type_.name == "kubernetes.URL":
            size = sizes.size(parts[1]).maximum
            return CallCost(scaled(1 if size == UNLIMITED else size, TRAVERSAL))
    return _comparison(sizes, parts, overload)


def _list(cost: float, size: Size) -> CallCost:
    return CallCost(limited(scaled(size.maximum, cost) + 1 + _NEW_LIST), size)


def _literal(node: Node, otherwise: int) -> int:
    if isinstance(node, Literal_) and type(node.value) is int:
        return max(node.value, 0)
    return otherwise


def _slice(sizes: Sized, parts: Sequence[Node], _overload: Overload) -> CallCost:
    start, end = _literal(parts[1], 0), _literal(parts[2], sizes.size(parts[0]).maximum)
    return _list(1, exactly((end - start) % 2**64))


def _range(_sizes: Sized, parts: Sequence[Node], _overload: Overload) -> CallCost:
    return _list(1, exactly(_literal(parts[0], UNLIMITED)))


def _reverse(sizes: Sized, parts: Sequence[Node], _overload: Overload) -> CallCost:
    return _list(1, sizes.size(parts[0]))


def _flatten(sizes: Sized, parts: Sequence[Node], _overload: Overload) -> CallCost:
    depth = _literal(parts[1], UNLIMITED) if len(parts) > 1 else 1
    return _list(float(depth), sizes.size(parts[0]))


def _distinct(sizes: Sized, parts: Sequence[Node], _overload: Overload) -> CallCost:
    size = sizes.size(parts[0])
    return _list(2, size.times(size))


def _sort(sizes: Sized, parts: Sequence[Node], overload: Overload) -> CallCost:
    return sort_cost(sizes.size(parts[0]), overload.parameters[0].parameters[0])


def sort_cost(size: Size, key: CelType) -> CallCost:
    """The cost of sorting so many elements by keys of a type."""
    return _list(2 + TRAVERSAL if key.kind in ("string", "bytes") else 2, size.times(size))


def _authorization(_sizes: Sized, _parts: Sequence[Node], _overload: Overload) -> CallCost:
    return CallCost(_AUTHORIZATION)


def _sets(factor: int) -> _Estimate:
    def estimate(sizes: Sized, parts: Sequence[Node], _overload: Overload) -> CallCost:
        pairs = sizes.size(parts[0]).times(sizes.size(parts[1]))
        return CallCost(limited(scaled(pairs.maximum, factor) + 1))

    return estimate


_ESTIMATES: Final[dict[str, _Estimate]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _elements),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"), _text_once_kept),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _text_once),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_", "_!=_"), _comparison),
    "_==_": _equality,
    "_+_": _sum,
    "@in": _membership,
    "bytes": _bytes,
    "check": _authorization,
    "contains": _contains,
    "containsCIDR": _contains_cidr,
    "containsIP": _contains_ip,
    "distinct": _distinct,
    "endsWith": _affix,
    "find": _find,
    "findAll": _find,
    "flatten": _flatten,
    "format": _text_once,
    "ip": _ip,
    "ip.isCanonical": _text_twice,
    "join": _join,
    "lists.range": _range,
    "matches": _matches,
    "replace": _replace,
    "reverse": _reverse,
    "sets.contains": _sets(1),
    "sets.equivalent": _sets(2),
    "sets.intersects": _sets(1),
    "slice": _slice,
    "sort": _sort,
    "split": _split,
    "startsWith": _affix,
    "string": _string,
    "strings.quote": _quote,
    "validate": _validate,
}
