"""The conditions of a namespace that is being deleted, with kube-controller-manager's reasons and messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from kubewright.api.core.v1 import Namespace
from kubewright.api.errors import KubernetesError
from kubewright.client.errors import APIError
from kubewright.patterns.conditions import set_condition


class _ConditionText(NamedTuple):
    reason: str
    message: str


# In the order in which they are added.
_ALL_IS_WELL = {
    "NamespaceDeletionDiscoveryFailure": _ConditionText("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": _ConditionText(
        "ParsedGroupVersions", "All legacy kube types successfully parsed"
    ),
    "NamespaceDeletionContentFailure": _ConditionText(
        "ContentDeleted", "All content successfully deleted, may be waiting on finalization"
    ),
    "NamespaceContentRemaining": _ConditionText("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": _ConditionText(
        "ContentHasNoFinalizers", "All content-preserving finalizers finished"
    ),
}

_FAILURES = ("NamespaceDeletionDiscoveryFailure", "NamespaceDeletionContentFailure")


class DeletionFindings:
    """What one attempt to empty a namespace found."""

    def __init__(self) -> None:
        self._problems: dict[str, _ConditionText] = {}
        self._failures: list[str] = []

    @property
    def failed(self) -> bool:
        """True when it is not known whether the namespace is empty, or when something cannot be deleted."""
        return not self._problems.keys().isdisjoint(_FAILURES)

    def discovery_failed(self, failures: Mapping[str, KubernetesError]) -> None:
        """Discovery failed for some groups."""
        failing = ", ".join(f"{api_version}: {message_of(error)}" for api_version, error in sorted(failures.items()))
        self._problems["NamespaceDeletionDiscoveryFailure"] = _ConditionText(
            "DiscoveryFailed",
            f"Discovery failed for some groups, {len(failures)} failing: "
            f"unable to retrieve the complete list of server APIs: {failing}",
        )

    def deletion_failed(self, message: str) -> None:
        """One kind could not be emptied."""
        self._failures.append(message)
        self._problems["NamespaceDeletionContentFailure"] = _ConditionText(
            "ContentDeletionFailed",
            f"Failed to delete all resource types, {len(self._failures)} remaining: "
            f"{', '.join(sorted(self._failures))}",
        )

    def remaining(self, kinds: Mapping[str, int], finalizers: Counter[str]) -> None:
        """Objects that are still there, by `plural.group`, and the finalizers they wait for."""
        if kinds:
            counted = ", ".join(sorted(f"{kind} has {number} resource instances" for kind, number in kinds.items()))
            self._problems["NamespaceContentRemaining"] = _ConditionText(
                "SomeResourcesRemain", f"Some resources are remaining: {counted}"
            )
        if finalizers:
            counted = ", ".join(sorted(f"{name} in {number} resource instances" for name, number in finalizers.items()))
            self._problems["NamespaceFinalizersRemaining"] = _ConditionText(
                "SomeFinalizersRemain", f"Some content in the namespace has finalizers remaining: {counted}"
            )

    def report(self, namespace: Namespace, now: datetime) -> bool:
        """Set the conditions, and return whether one of them has changed."""
        changed = False
        for name, well in _ALL_IS_WELL.items():
            found = self._problems.get(name)
            changed |= set_condition(namespace, name, found is not None, *(found or well), at=now)
        return changed


def message_of(error: KubernetesError) -> str:
    """The server's message, if there is one."""
    return error.status.message if isinstance(error, APIError) else str(error)
