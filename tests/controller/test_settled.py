"""What an operator costs while nothing changes: a manager with its controller and cache, in virtual time."""

from __future__ import annotations

import asyncio
import logging

import pytest
from tests.controller.scripted import LONG

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.meta import ObjectMeta
from kubewright.api.model import Model
from kubewright.api.resources import Resource, resource
from kubewright.cache import CachedClient
from kubewright.client import Client
from kubewright.client.wait import Field, established
from kubewright.controller import Request, Result, controller_for
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manager import Manager
from kubewright.manager.leader_election import LeaderElection
from kubewright.manifest.crd import definition_of
from kubewright.testing.virtual_time import virtual


class NoteSpec(Model):
    text: str


class NoteStatus(Model):
    shown: str = ""


@resource("settled.example.com/v1")
class Note(Resource[NoteSpec, NoteStatus]):
    """Has its text in a ConfigMap of its name, and in its status."""


class Showing:
    """Creates the child, or changes it, and writes the status; each only when it is not as it should be."""

    def __init__(self, client: CachedClient) -> None:
        self.client = client
        self.begun = 0

    async def reconcile(self, request: Request) -> None:
        self.begun += 1
        note = await self.client.get(Note, request)
        shown = {"text": note.spec.text}
        child = await self.client.find(ConfigMap, request)
        if child is None:
            owners = [note.as_owner()]
            metadata = ObjectMeta(name=request.name, namespace=request.namespace, owner_references=owners)
            await self.client.create(ConfigMap(metadata=metadata, data=shown))
        elif child.data != shown:
            child.data = shown
            await self.client.update(child)
        note.status.shown = note.spec.text
        await self.client.status.patch(note)


async def write(client: Client, name: str, text: str) -> None:
    """Make a note or change it, and wait until it is shown."""
    metadata = ObjectMeta(name=name, namespace="default")
    note = await client.apply(Note(metadata=metadata, spec=NoteSpec(text=text)))
    await client.wait_for(note, Field("status.shown").equals(text), timeout=60)


@virtual
async def test_a_settled_object_costs_no_reconcile_no_request_but_the_watches_and_no_log_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as client:
        assert isinstance(plane, EmbeddedControlPlane)
        definition = await client.create(definition_of(Note))
        await client.wait_for(definition, established, timeout=60)
        manager = Manager(client, election=LeaderElection(client, "notes", namespace="default"))
        showing = Showing(manager.client)
        controller_for(manager, Note, workers=2).owns(ConfigMap).complete(showing)
        async with asyncio.TaskGroup() as group:
            group.create_task(manager.run())
            for name in ("a", "b", "c"):
                await write(client, name, "hello")
            await asyncio.sleep(60)  # the echoes of its own writes are followed by reconciles, too
            begun = showing.begun
            plane.audit.events.clear()
            # The one that created the child and the one that wrote the status may be two.
            assert {message.partition(" in ")[0] for message in caplog.messages if "] reconciled" in message} == {
                f"[note default/{name}] reconciled" for name in ("a", "b", "c")
            }
            caplog.clear()

            await asyncio.sleep(LONG)

            assert showing.begun == begun
            assert caplog.messages == []
            # Every few minutes the server ends a watch, and it is resumed from where it was.
            requests = {(event.verb, event.resource) for event in plane.audit.events if event.resource != "leases"}
            assert requests == {("watch", "notes"), ("watch", "configmaps")}
            assert [informer.statistics.relists for informer in manager.cache.informers()] == [0, 0]
            # It was not asleep.
            await write(client, "a", "good-bye")
            assert showing.begun > begun
            manager.stop()


@virtual
async def test_an_operator_that_writes_what_is_there_already_is_settled(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as client:
        manager, reconciled = Manager(client), 0

        async def reconcile(request: Request) -> Result:
            nonlocal reconciled
            reconciled += 1
            settings = await manager.client.get(ConfigMap, request)
            settings.data["text"] = "hello"
            await manager.client.update(settings)
            await manager.live.update(await manager.live.get(ConfigMap, request))
            return Result(requeue_after=60)

        controller_for(manager, ConfigMap).complete(reconcile)
        async with manager.running():
            metadata = ObjectMeta(name="a", namespace="default")
            await client.create(ConfigMap(metadata=metadata))
            await asyncio.sleep(600)
            lines = [message for message in caplog.messages if "default/a] reconciled" in message]
            assert len(lines) == 1
            assert " with 1 write (" in lines[0]
            assert reconciled > 10, "it has not stopped"
