"""All that expressions may use, by name: the functions and the names of types of Kubernetes 1.36.

Rules of custom resources and of admission use `RULES`; expressions that make patches, `PATCHES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kubewright.controlplane.embedded.cel.library.authorizer import AUTHORIZER_FUNCTIONS
from kubewright.controlplane.embedded.cel.library.formats import FORMAT_FUNCTIONS
from kubewright.controlplane.embedded.cel.library.lists import LIST_FUNCTIONS
from kubewright.controlplane.embedded.cel.library.network import CIDR, IP, NETWORK_FUNCTIONS
from kubewright.controlplane.embedded.cel.library.optionals import OPTIONAL_FUNCTIONS
from kubewright.controlplane.embedded.cel.library.overload import Overload
from kubewright.controlplane.embedded.cel.library.patches import PATCH_FUNCTIONS, patch_type
from kubewright.controlplane.embedded.cel.library.quantities import QUANTITY_FUNCTIONS
from kubewright.controlplane.embedded.cel.library.regular_expressions import REGEX_FUNCTIONS
from kubewright.controlplane.embedded.cel.library.standard import OPERATORS, STANDARD_FUNCTIONS
from kubewright.controlplane.embedded.cel.library.strings import STRING_FUNCTIONS
from kubewright.controlplane.embedded.cel.library.times import TIME_FUNCTIONS
from kubewright.controlplane.embedded.cel.library.urls import URL_FUNCTIONS
from kubewright.controlplane.embedded.cel.library.versions import VERSION_FUNCTIONS
from kubewright.controlplane.embedded.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    CelType,
    list_of,
    map_of,
    optional_of,
    parameter,
)


def _by_name(*overloads: Sequence[Overload]) -> Mapping[str, Sequence[Overload]]:
    found: dict[str, list[Overload]] = {}
    for group in overloads:
        for overload in group:
            found.setdefault(overload.name, []).append(overload)
    return found


FUNCTIONS: Final = _by_name(
    OPERATORS,
    STANDARD_FUNCTIONS,
    TIME_FUNCTIONS,
    STRING_FUNCTIONS,
    LIST_FUNCTIONS,
    REGEX_FUNCTIONS,
    URL_FUNCTIONS,
    QUANTITY_FUNCTIONS,
    NETWORK_FUNCTIONS,
    FORMAT_FUNCTIONS,
    VERSION_FUNCTIONS,
    OPTIONAL_FUNCTIONS,
    AUTHORIZER_FUNCTIONS,
)
"""Every function with its overloads."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The functions of expressions, and the types of what they can make with `Name{field: value}`."""

    functions: Mapping[str, Sequence[Overload]]
    message_type: Callable[[str], CelType | None]


RULES: Final = Environment(FUNCTIONS, lambda name: None)
PATCHES: Final = Environment({**FUNCTIONS, **_by_name(PATCH_FUNCTIONS)}, patch_type)

TYPES: Final[Mapping[str, CelType]] = {
    "bool": BOOL,
    "bytes": BYTES,
    "double": DOUBLE,
    "google.protobuf.Duration": DURATION,
    "google.protobuf.Timestamp": TIMESTAMP,
    "int": INT,
    "list": list_of(parameter("A")),
    "map": map_of(parameter("A"), parameter("B")),
    "net.CIDR": CIDR,
    "net.IP": IP,
    "null_type": NULL,
    "optional_type": optional_of(parameter("V")),
    "string": STRING,
    "type": TYPE,
    "uint": UINT,
}
"""The types that have a name in rules, as in `type(self.port) == int`."""
