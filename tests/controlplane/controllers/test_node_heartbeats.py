"""Heartbeats that are written when they can be seen, and not otherwise."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import TypeVar

from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import Node
from kubewright.api.resources import Object
from kubewright.api.time import micro_now, now
from kubewright.client.wait import deleted, ready
from kubewright.client.watch import Watch
from kubewright.controlplane import ControlPlane
from kubewright.patterns.conditions import get_condition
from kubewright.testing import virtual

T = TypeVar("T", bound=Object)

NAMESPACE = "kube-node-lease"


@virtual
async def test_a_client_that_reads_finds_a_lease_that_was_just_renewed() -> None:
    async with ControlPlane.embedded() as plane, plane.client() as client:
        node = await client.wait_for(Node, "node-1", ready)
        assert node is not None
        for _ in range(3):
            await asyncio.sleep(3600)
            lease = await client.get(Lease, "node-1", namespace=NAMESPACE)
            assert lease.spec.renew_time is not None
            assert micro_now() - lease.spec.renew_time < timedelta(seconds=10)
        (listed,) = await client.list(Lease, namespace=NAMESPACE)

        assert (lease.spec.holder_identity, lease.spec.lease_duration_seconds) == ("node-1", 40)
        (owner,) = lease.metadata.owner_references
        assert (owner.kind, owner.name, owner.uid, owner.controller) == ("Node", "node-1", node.metadata.uid, None)
        assert listed == lease, "it is not renewed again within 10 seconds"


@virtual
async def test_the_status_of_a_node_that_is_read_is_at_most_five_minutes_old() -> None:
    async with ControlPlane.embedded() as plane, plane.client() as client:
        first = await client.wait_for(Node, "node-1", ready)
        await asyncio.sleep(3600)
        later = await client.get(Node, "node-1")

        assert first is not None
        before, after = get_condition(first, "Ready"), get_condition(later, "Ready")
        assert before is not None
        assert after is not None
        assert after.last_heartbeat_time is not None
        assert now() - after.last_heartbeat_time <= timedelta(minutes=5)
        assert after.last_transition_time == before.last_transition_time
        assert later.status.addresses == first.status.addresses


@virtual
async def test_a_client_that_watches_sees_a_renewal_every_10_seconds_and_a_status_every_5_minutes() -> None:
    async with ControlPlane.embedded() as plane, plane.client() as client:
        await client.wait_for(Node, "node-1", ready)
        async with (
            client.watch(Lease, namespace=NAMESPACE, initial_events=True, timeout=3600) as leases,
            client.watch(Node, initial_events=True, timeout=3600) as nodes,
        ):
            await asyncio.sleep(601)
            renewals = await _arrived(leases)
            reports = await _arrived(nodes)
        assert 59 <= renewals <= 62
        assert 2 <= reports <= 4
        plane.audit.events.clear()
        await asyncio.sleep(3600)
        assert [event.verb for event in plane.audit.events] == []


@virtual
async def test_leases_of_others_have_nothing_to_do_with_it() -> None:
    """Leaders renew theirs every few seconds."""
    async with ControlPlane.embedded() as plane, plane.client() as client:
        await client.wait_for(Node, "node-1", ready)
        plane.audit.events.clear()
        for _ in range(20):
            await client.find(Lease, "leader", namespace="default")
            await asyncio.sleep(5)

        assert {event.verb for event in plane.audit.events} <= {"get", "list", "watch"}


@virtual
async def test_a_node_that_failed_or_is_gone_has_no_heartbeats() -> None:
    async with ControlPlane.embedded(nodes=2) as plane, plane.client() as client:
        for name in ("node-1", "node-2"):
            await client.wait_for(Node, name, ready)
        before = await client.get(Lease, "node-1", namespace=NAMESPACE)
        plane.nodes.fail("node-1")
        await client.delete(Node, "node-2")
        await client.wait_for(Lease, "node-2", deleted, namespace=NAMESPACE, timeout=60)
        await asyncio.sleep(3600)

        assert await client.list(Lease, namespace=NAMESPACE) == [before]


async def _arrived(events: Watch[T]) -> int:
    """How often objects were seen to be changed."""
    changes = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(1):
            async for event in events:
                changes += event.type == "MODIFIED"
    return changes
