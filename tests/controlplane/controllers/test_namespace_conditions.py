from __future__ import annotations

import copy
from collections import Counter
from datetime import UTC, datetime

from kubewright.api.core.v1 import Namespace, NamespaceCondition, NamespaceStatus
from kubewright.api.meta import ObjectMeta
from kubewright.client.errors import ConnectionLost, ServiceUnavailable, Status
from kubewright.controlplane.controllers.namespace_conditions import DeletionFindings

FIRST, SECOND = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)


def namespace(*conditions: NamespaceCondition) -> Namespace:
    return Namespace(metadata=ObjectMeta(name="shop"), status=NamespaceStatus(conditions=list(conditions)))


def reported(findings: DeletionFindings) -> dict[str, tuple[str, str | None, str | None]]:
    obj = namespace()
    assert findings.report(obj, FIRST)
    return {each.type: (each.status, each.reason, each.message) for each in obj.status.conditions}


def test_an_empty_namespace_has_five_conditions_that_are_false() -> None:
    assert reported(DeletionFindings()) == {
        "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered", "All resources successfully discovered"),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": ("False", "ContentRemoved", "All content successfully removed"),
        "NamespaceFinalizersRemaining": (
            "False",
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    }
    assert not DeletionFindings().failed


def test_what_remains_is_counted_by_kind_and_by_finalizer() -> None:
    findings = DeletionFindings()
    findings.remaining({"secrets.": 1, "configmaps.": 2}, Counter({"example.com/b": 1, "example.com/a": 3}))
    conditions = reported(findings)
    assert conditions["NamespaceContentRemaining"] == (
        "True",
        "SomeResourcesRemain",
        "Some resources are remaining: configmaps. has 2 resource instances, secrets. has 1 resource instances",
    )
    assert conditions["NamespaceFinalizersRemaining"] == (
        "True",
        "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: "
        "example.com/a in 3 resource instances, example.com/b in 1 resource instances",
    )
    assert not findings.failed


def test_all_failures_to_delete_are_in_one_condition() -> None:
    findings = DeletionFindings()
    findings.deletion_failed("pods: no")
    findings.deletion_failed("jobs: no")
    assert reported(findings)["NamespaceDeletionContentFailure"] == (
        "True",
        "ContentDeletionFailed",
        "Failed to delete all resource types, 2 remaining: jobs: no, pods: no",
    )
    assert findings.failed


def test_groups_that_cannot_be_discovered_are_named_with_the_message_of_the_server() -> None:
    findings = DeletionFindings()
    unavailable = ServiceUnavailable(Status(code=503, message="the server is currently unable"), "discover b/v1")
    findings.discovery_failed({"b/v1": unavailable, "a/v1": ConnectionLost("cut")})
    assert reported(findings)["NamespaceDeletionDiscoveryFailure"] == (
        "True",
        "DiscoveryFailed",
        "Discovery failed for some groups, 2 failing: unable to retrieve the complete list of server APIs: "
        "a/v1: cut, b/v1: the server is currently unable",
    )
    assert findings.failed


def test_the_same_findings_give_the_same_conditions_at_any_time() -> None:
    obj = namespace()
    assert DeletionFindings().report(obj, FIRST)
    before = copy.deepcopy(obj.status)
    assert not DeletionFindings().report(obj, SECOND)
    assert obj.status == before


def test_only_a_change_of_status_is_a_transition() -> None:
    remaining, fewer = DeletionFindings(), DeletionFindings()
    remaining.remaining({"secrets.": 2}, Counter())
    fewer.remaining({"secrets.": 1}, Counter())
    obj = namespace()

    def times() -> dict[str, datetime | None]:
        return {each.type: each.last_transition_time for each in obj.status.conditions}

    remaining.report(obj, FIRST)
    assert fewer.report(obj, SECOND)
    assert times()["NamespaceContentRemaining"] == FIRST
    assert DeletionFindings().report(obj, SECOND)
    assert times()["NamespaceContentRemaining"] == SECOND
    assert times()["NamespaceFinalizersRemaining"] == FIRST


def test_conditions_of_others_are_kept() -> None:
    other = NamespaceCondition(type="example.com/Audited", status="True")
    obj = namespace(other)
    DeletionFindings().report(obj, FIRST)
    assert obj.status.conditions[0] == other
