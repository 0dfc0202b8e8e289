"""Building blocks of reconcilers: objects, pipelines, requests, conditions, children, finalizers.

Each can be used alone, and each can be replaced by code on the client. All of them use the public API only.
Everything is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubewright.patterns.audit import AuditRecord, AuditSink, EventAudit, FileAudit, LogAudit
    from kubewright.patterns.children import Ensured, check_adoption, create_or_update, ensure
    from kubewright.patterns.conditions import (
        get_condition,
        is_true,
        remove_condition,
        reporting,
        set_condition,
        summarize,
    )
    from kubewright.patterns.conflicts import retry_on_conflict
    from kubewright.patterns.context import Context
    from kubewright.patterns.external import External
    from kubewright.patterns.finalizers import add_finalizer, remove_finalizer
    from kubewright.patterns.not_yet import NotYet
    from kubewright.patterns.object_reconciler import ObjectReconciler
    from kubewright.patterns.pipeline import Hook, Pipeline, StepOutcome
    from kubewright.patterns.request_outcome import Permanent
    from kubewright.patterns.request_status import RequestStatus
    from kubewright.patterns.requests import RequestReconciler
    from kubewright.patterns.steps import Done, Step, step

__all__ = [
    "AuditRecord",
    "AuditSink",
    "Context",
    "Done",
    "Ensured",
    "EventAudit",
    "External",
    "FileAudit",
    "Hook",
    "LogAudit",
    "NotYet",
    "ObjectReconciler",
    "Permanent",
    "Pipeline",
    "RequestReconciler",
    "RequestStatus",
    "Step",
    "StepOutcome",
    "add_finalizer",
    "check_adoption",
    "create_or_update",
    "ensure",
    "get_condition",
    "is_true",
    "remove_condition",
    "remove_finalizer",
    "reporting",
    "retry_on_conflict",
    "set_condition",
    "step",
    "summarize",
]

_MODULES = {
    "audit": (
        "AuditRecord",
        "AuditSink",
        "EventAudit",
        "FileAudit",
        "LogAudit",
    ),
    "children": (
        "Ensured",
        "check_adoption",
        "create_or_update",
        "ensure",
    ),
    "conditions": (
        "get_condition",
        "is_true",
        "remove_condition",
        "reporting",
        "set_condition",
        "summarize",
    ),
    "conflicts": ("retry_on_conflict",),
    "context": ("Context",),
    "external": ("External",),
    "finalizers": (
        "add_finalizer",
        "remove_finalizer",
    ),
    "not_yet": ("NotYet",),
    "object_reconciler": ("ObjectReconciler",),
    "pipeline": (
        "Hook",
        "Pipeline",
        "StepOutcome",
    ),
    "request_outcome": ("Permanent",),
    "request_status": ("RequestStatus",),
    "requests": ("RequestReconciler",),
    "steps": (
        "Done",
        "Step",
        "step",
    ),
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
