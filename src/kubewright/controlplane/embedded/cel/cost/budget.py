"""The budget of rules: of each one, and of all rules of a definition together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import text
from kubewright.controlplane.embedded.apimachinery.status import FieldError, forbidden_field
from kubewright.controlplane.embedded.cel.cost.size import limited

_RULE_LIMIT: Final = 10_000_000
_TOTAL_LIMIT: Final = 100_000_000
_MAX_NAMED: Final = 4


@dataclass
class Budget:
    """What the rules of one definition cost so far."""

    total: int = 0
    _expensive: list[tuple[int, str]] = field(default_factory=list)

    def spend(self, path: str, what: str, cost: int) -> Iterator[FieldError]:
        """Counts a rule or message; too expensive ones are refused."""
        if cost > _RULE_LIMIT:
            yield forbidden_field(path, _exceeded(f"estimated {what} cost", cost, _RULE_LIMIT))
        self.total = limited(self.total + cost)
        if cost >= _TOTAL_LIMIT // 100:
            self._expensive.append((cost, path))
            self._expensive.sort(key=lambda entry: -entry[0])
            del self._expensive[_MAX_NAMED:]

    def overdrawn(self, path: str) -> Iterator[FieldError]:
        """What is wrong with the sum, with the rules that have the largest part in it."""
        if self.total <= _TOTAL_LIMIT:
            return
        for _, rule in self._expensive:
            detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield forbidden_field(rule, detail)
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden_field(path, _exceeded(what, self.total, _TOTAL_LIMIT))


def _exceeded(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    # Never "by factor of 1.0x".
    shown = "more than 100x" if factor > 100 else f"{factor:.6f}x" if factor < 1.5 else f"{factor:.1f}x"
    advice = (
        "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings"
    )
    return f"{what} exceeds budget by factor of {shown} ({advice} are declared)"


def multiplied(cardinality: int | None, schema: JSONObject) -> int | None:
    """How often values directly below a schema can be there; None when nothing limits that."""
    if cardinality is None:
        return None
    match text(schema, "type"):
        case "object" if schema.get("additionalProperties") is not None:
            limit = schema.get("maxProperties")
        case "array":
            limit = schema.get("maxItems")
        case _:
            return cardinality
    return limited(cardinality * max(int(limit), 0)) if isinstance(limit, int | float) else None
