"""Deletion of a definition: its objects first, then itself, with a condition for the progress."""

from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apiextensions.names import condition_holds, set_definition_condition
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, items, mapping

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that keeps a definition until its objects are deleted."""
_TERMINATING = "Terminating"


def begin_termination(definition: JSONObject, now: str) -> None:
    """Mark a definition that is to be deleted, and keep it for as long as it has objects."""
    metadata = inside(definition, "metadata")
    metadata["deletionTimestamp"] = now
    finalizers = items(metadata, "finalizers")
    if CLEANUP not in finalizers:
        metadata["finalizers"] = [*finalizers, CLEANUP]
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    set_definition_condition(definition, _TERMINATING, "True", "InstanceDeletionPending", message, now)


def is_terminating(definition: JSONObject) -> bool:
    """Whether no objects are created any more."""
    return condition_holds(definition, _TERMINATING)


def in_progress(definition: JSONObject, now: str) -> JSONObject:
    """The definition while its objects are being deleted."""
    changed = copied_object(definition)
    message = "CustomResource deletion is in progress"
    set_definition_condition(changed, _TERMINATING, "True", "InstanceDeletionInProgress", message, now)
    return changed


def failed(definition: JSONObject, why: str, now: str) -> JSONObject:
    """The definition when its objects cannot be listed to delete them."""
    changed = copied_object(definition)
    message = f"could not list instances: {why}"
    set_definition_condition(changed, _TERMINATING, "True", "InstanceDeletionFailed", message, now)
    return changed


def completed(definition: JSONObject, now: str) -> JSONObject:
    """The definition once it has no objects, or never had any."""
    changed = copied_object(definition)
    if condition_holds(definition, "Established"):
        set_definition_condition(
            changed, _TERMINATING, "False", "InstanceDeletionCompleted", "removed all instances", now
        )
    else:
        set_definition_condition(
            changed, _TERMINATING, "False", "NeverEstablished", "resource was never established", now
        )
    metadata = mapping(changed, "metadata")
    finalizers = [name for name in items(metadata, "finalizers") if name != CLEANUP]
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    return changed
