"""Controllers: sources, predicates, handlers, a work queue, and the reconciler that it feeds."""

from kubewright.controller.builder import controller_for
from kubewright.controller.controllers import Controller
from kubewright.controller.defaults import ControllerDefaults
from kubewright.controller.event import Event
from kubewright.controller.handler import Handler, for_object, for_owner, mapped
from kubewright.controller.predicates import (
    Predicate,
    annotations_changed,
    beyond_status,
    changed,
    finalizers_changed,
    foreign_write,
    generation_changed,
    has_labels,
    in_namespaces,
    labels_changed,
    predicate,
    resource_version_changed,
)
from kubewright.controller.queue import Queue
from kubewright.controller.ratelimit import Bucket, ExponentialBackoff, MaxOf, RateLimiter
from kubewright.controller.reconcile import Attempt, Reconciler, Request, Result, TerminalError
from kubewright.controller.source import Channel, Function, Polled, Source
from kubewright.controller.thread import run_in_loop
from kubewright.controller.watched import Watched

__all__ = [
    "Attempt",
    "Bucket",
    "Channel",
    "Controller",
    "ControllerDefaults",
    "Event",
    "ExponentialBackoff",
    "Function",
    "Handler",
    "MaxOf",
    "Polled",
    "Predicate",
    "Queue",
    "RateLimiter",
    "Reconciler",
    "Request",
    "Result",
    "Source",
    "TerminalError",
    "Watched",
    "annotations_changed",
    "beyond_status",
    "changed",
    "controller_for",
    "finalizers_changed",
    "for_object",
    "for_owner",
    "foreign_write",
    "generation_changed",
    "has_labels",
    "in_namespaces",
    "labels_changed",
    "mapped",
    "predicate",
    "resource_version_changed",
    "run_in_loop",
]
