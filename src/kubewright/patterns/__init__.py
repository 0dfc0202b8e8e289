"""Building blocks of reconcilers: objects, pipelines, requests, conditions, children, finalizers.

Each can be used alone, and each can be replaced by code on the client. All of them use the public API only.
"""

from kubewright.patterns.audit import AuditRecord, AuditSink, EventAudit, FileAudit, LogAudit
from kubewright.patterns.children import Ensured, create_or_update, ensure
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
from kubewright.patterns.requests import Permanent, RequestReconciler, RequestStatus
from kubewright.patterns.steps import Step, step

__all__ = [
    "AuditRecord",
    "AuditSink",
    "Context",
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
