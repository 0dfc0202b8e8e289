"""Testing operators: pytest fixtures on control planes that the test run starts itself, and helpers for measurements.

The fixtures (`control_plane`, `admin`, `namespace`, `install`, `running`, `local_webhooks`) come with the pytest
plugin, which is loaded wherever kubewright is installed; see `docs/testing.md`. Everything here is imported when it is
first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubewright.testing.clock import VirtualClock
    from kubewright.testing.events import EventCall, RecordedEvents
    from kubewright.testing.exploration import APICall, Exploration, Fault, Finding, Problem, World, explore
    from kubewright.testing.fixtures import Install, Running
    from kubewright.testing.namespaces import unique_name
    from kubewright.testing.requests import RequestCount, count_requests
    from kubewright.testing.roles import (
        RecordedPermissions,
        compare_permissions,
        recorded_permissions,
        restricted_client,
    )
    from kubewright.testing.round_trips import assert_round_trips
    from kubewright.testing.settling import settled
    from kubewright.testing.virtual_time import NeverEnds, run_virtual, virtual
    from kubewright.testing.webhooks import LocalWebhooks

__all__ = [
    "APICall",
    "EventCall",
    "Exploration",
    "Fault",
    "Finding",
    "Install",
    "LocalWebhooks",
    "NeverEnds",
    "Problem",
    "RecordedEvents",
    "RecordedPermissions",
    "RequestCount",
    "Running",
    "VirtualClock",
    "World",
    "assert_round_trips",
    "compare_permissions",
    "count_requests",
    "explore",
    "recorded_permissions",
    "restricted_client",
    "run_virtual",
    "settled",
    "unique_name",
    "virtual",
]

_MODULES = {
    "clock": ("VirtualClock",),
    "events": ("EventCall", "RecordedEvents"),
    "exploration": ("APICall", "Exploration", "Fault", "Finding", "Problem", "World", "explore"),
    "fixtures": ("Install", "Running"),
    "namespaces": ("unique_name",),
    "requests": ("RequestCount", "count_requests"),
    "roles": ("RecordedPermissions", "compare_permissions", "recorded_permissions", "restricted_client"),
    "round_trips": ("assert_round_trips",),
    "settling": ("settled",),
    "virtual_time": ("NeverEnds", "run_virtual", "virtual"),
    "webhooks": ("LocalWebhooks",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:  # a module with __getattr__ has every name, as far as type checkers know

    def __getattr__(name: str) -> object:
        module = _MODULE_OF.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value: object = getattr(importlib.import_module(f"{__name__}.{module}"), name)
        globals()[name] = value
        return value
