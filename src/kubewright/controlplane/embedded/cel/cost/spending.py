"""What the rules of a schema may cost together when they judge one object."""

from __future__ import annotations

from typing import Final

_BUDGET: Final = 10_000_000
# Where even the worst case is far below every limit, nothing is counted. (Far: for a few functions the estimate is less
# than what they can cost.)
_HARMLESS: Final = 50_000
_HARMLESS_TOGETHER: Final = 500_000


class NeedsMeter(Exception):
    """The rules might cost too much: they have to run again, with a meter."""


class Exhausted(Exception):
    """No further rules are run."""


class Spending:
    """What is left of the budget. Without a meter it is only certain that this is enough."""

    def __init__(self, *, metered: bool) -> None:
        self.metered = metered
        self.left = _BUDGET
        self._worst = 0

    def expect(self, worst: int) -> None:
        """Something that costs so much at worst is about to run."""
        self._worst += worst
        if not self.metered and (worst > _HARMLESS or self._worst > _HARMLESS_TOGETHER):
            raise NeedsMeter

    def pay(self, cost: int) -> bool:
        """Whether there was enough left for this."""
        if cost > self.left:
            return False
        self.left -= cost
        return True
