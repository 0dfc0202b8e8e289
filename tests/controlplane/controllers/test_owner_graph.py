from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.dynamic import PartialObject, metadata_only
from kubewright.api.meta import ObjectMeta, OwnerReference
from kubewright.controlplane.controllers.owner_graph import (
    ObjectIdentity,
    OwnerGraph,
    identities,
    identity_of,
    waits_for,
)

View = metadata_only(ConfigMap)


def seen(
    uid: str, *owners: str, blocking: bool = False, going: bool = False, finalizers: tuple[str, ...] = ()
) -> PartialObject:
    references = [
        OwnerReference(api_version="v1", kind="ConfigMap", name=owner, uid=owner, block_owner_deletion=blocking)
        for owner in owners
    ]
    metadata = ObjectMeta(
        name=uid,
        namespace="shop",
        uid=uid,
        owner_references=references,
        finalizers=list(finalizers),
        deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC) if going else None,
    )
    return View(metadata=metadata)


def test_an_object_without_owners_gives_no_work() -> None:
    assert OwnerGraph().put(seen("a")) == []


def test_an_object_is_reconciled_when_its_owners_change_and_only_then() -> None:
    graph = OwnerGraph()
    assert graph.put(seen("child", "a")) == ["child"]
    assert graph.put(seen("child", "a")) == []
    assert graph.put(seen("child", "a", "b")) == ["child"]
    assert graph.put(seen("child", "a", "b", blocking=True)) == ["child"]
    assert graph.put(seen("child")) == ["child"]


def test_dependents_are_reconciled_when_their_owner_is_deleted() -> None:
    graph = OwnerGraph()
    graph.put(seen("owner"))
    graph.put(seen("one", "owner"))
    graph.put(seen("two", "owner"))
    assert graph.remove("owner") == ["one", "two"]
    assert graph.get("owner") is None


def test_dependents_of_an_owner_that_was_never_seen_are_known() -> None:
    graph = OwnerGraph()
    child = seen("child", "owner")
    graph.put(child)
    assert graph.dependents("owner") == [child]


def test_an_object_that_has_gone_is_no_dependent_any_more() -> None:
    graph = OwnerGraph()
    graph.put(seen("child", "owner"))
    graph.remove("child")
    assert graph.dependents("owner") == []
    assert graph.remove("owner") == []


def test_an_object_that_gave_up_an_owner_is_no_dependent_any_more() -> None:
    graph = OwnerGraph()
    graph.put(seen("child", "a", "b"))
    graph.put(seen("child", "b"))
    assert graph.dependents("a") == []
    assert len(graph.dependents("b")) == 1


def test_only_blocking_references_block() -> None:
    graph = OwnerGraph()
    graph.put(seen("free", "owner"))
    graph.put(seen("blocking", "owner", blocking=True))
    assert [dependent.metadata.uid for dependent in graph.blocking_dependents("owner")] == ["blocking"]


def test_the_beginning_of_a_foreground_deletion_concerns_the_dependents_too() -> None:
    graph = OwnerGraph()
    graph.put(seen("owner"))
    graph.put(seen("child", "owner"))
    going = seen("owner", going=True, finalizers=("foregroundDeletion",))
    assert graph.put(going) == ["owner", "child"]
    assert graph.put(going) == []


def test_an_owner_in_foreground_deletion_is_reconciled_when_a_dependent_changes_or_is_deleted() -> None:
    graph = OwnerGraph()
    graph.put(seen("owner", going=True, finalizers=("foregroundDeletion",)))
    assert graph.put(seen("child", "owner", blocking=True)) == ["child", "owner"]
    assert graph.put(seen("child", "owner")) == ["child", "owner"]
    assert graph.remove("child") == ["owner"]


def test_the_beginning_of_an_orphaning_concerns_the_owner_alone() -> None:
    graph = OwnerGraph()
    graph.put(seen("owner"))
    graph.put(seen("child", "owner"))
    assert graph.put(seen("owner", going=True, finalizers=("orphan",))) == ["owner"]


@pytest.mark.parametrize(
    ("finalizers", "going", "expected"),
    [
        (("foregroundDeletion",), False, None),
        (("foregroundDeletion",), True, "foregroundDeletion"),
        (("orphan",), True, "orphan"),
        (("example.com/other",), True, None),
    ],
)
def test_finalizers_count_once_the_deletion_has_begun(
    finalizers: tuple[str, ...], going: bool, expected: str | None
) -> None:
    assert waits_for(seen("a", going=going, finalizers=finalizers)) == expected


def test_a_reference_means_an_object_of_the_same_namespace_or_of_none() -> None:
    owner, child = seen("owner"), seen("child", "owner")
    possible = identities(child.metadata.owner_references[0], child)
    assert identity_of(owner) in possible
    assert [identity.namespace for identity in possible] == ["shop", ""]
    assert ObjectIdentity("v1", "ConfigMap", "elsewhere", "owner", "owner") not in possible
