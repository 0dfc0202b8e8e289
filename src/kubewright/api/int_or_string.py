"""Fields that hold an integer or a string: a port by number or name, a number of pods or a percentage of them.

`IntOrString` is plain `int | str` to Python and to msgspec. The mark in its annotation makes the rendered schema say
`x-kubernetes-int-or-string`, without which a structural schema cannot allow both.
"""

import re
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

INT_OR_STRING: Final = Meta(extra={"x-kubernetes-int-or-string": True})

IntOrString: TypeAlias = Annotated[int | str, INT_OR_STRING]

_PERCENTAGE: Final = r"([+-]?[0-9]+)%"


def scaled_value(value: IntOrString, total: int, *, round_up: bool) -> int:
    """`value` itself when it is an integer, else that percentage of `total`, rounded up or down.

    Kubernetes rounds up for maxSurge and minAvailable, and down for maxUnavailable of a Deployment.
    """
    if isinstance(value, int):
        return value
    match = re.fullmatch(_PERCENTAGE, value)
    if match is None:
        raise ValueError(f'{value!r} is neither an integer nor a percentage: expected a value like 3 or "25%"')
    hundredths = int(match[1]) * total
    return -(-hundredths // 100) if round_up else hundredths // 100
