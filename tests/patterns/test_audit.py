from __future__ import annotations

import asyncio
import logging
import os
import resource
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from tests.patterns.errands import Errand, ErrandReconciler, errand, world

from kubewright import ControlPlane, Field, Manager, controller_for
from kubewright.api import now
from kubewright.api.core.v1 import Event
from kubewright.patterns import FileAudit
from kubewright.patterns.audit import AuditRecord
from kubewright.testing import RecordedEvents, World, explore, run_virtual


def test_item_87_a_record_has_creator_action_outcome_and_duration(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"

    async def slow(request: Errand) -> str:
        await asyncio.sleep(3)
        return "fetched"

    async def main() -> None:
        async with ControlPlane.embedded(definitions=[Errand], controllers=[]) as plane, plane.client() as admin:
            created = await admin.create(errand(user="bob"))
            reconciler = ErrandReconciler(Manager(admin).client, RecordedEvents(), FileAudit(path))
            reconciler.acting = slow
            await reconciler.reconcile(created.key)

    run_virtual(main)
    start, end = (msgspec.json.decode(line) for line in path.read_text().splitlines())
    assert start["phase"] == "Processing"
    assert "seconds" not in start or start["seconds"] is None
    assert end.pop("id") == f"{end.pop('uid')}/Completed"
    del end["time"]
    assert end == {
        "kind": "Errand",
        "namespace": "default",
        "name": "one",
        "generation": 1,
        "creator": "alice",
        "action": {"action": "Fetch", "user": "bob"},
        "before": "Processing",
        "phase": "Completed",
        "attempt": 1,
        "seconds": 3.0,
        "message": "fetched",
        "controller": "test",
    }


def test_records_go_to_the_log_by_default(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kubewright.audit")

    async def main() -> None:
        async with ControlPlane.embedded(definitions=[Errand], controllers=[]) as plane, plane.client() as admin:
            created = await admin.create(errand())
            await ErrandReconciler(Manager(admin).client, RecordedEvents()).reconcile(created.key)

    run_virtual(main)
    lines = [msgspec.json.decode(record.getMessage()) for record in caplog.records if record.name == "kubewright.audit"]
    assert [line["phase"] for line in lines] == ["Processing", "Completed"]


def test_a_sink_that_fails_changes_nothing_for_the_request(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    async def main() -> None:
        async with ControlPlane.embedded(definitions=[Errand], controllers=[]) as plane, plane.client() as admin:
            created = await admin.create(errand())
            audit = FileAudit(tmp_path / "missing" / "audit.jsonl")
            await ErrandReconciler(Manager(admin).client, RecordedEvents(), audit).reconcile(created.key)
            assert (await admin.get(created)).status.phase == "Completed"

    run_virtual(main)
    assert "the audit record of default/one could not be written ([Errno 2] No such file or directory: " in caplog.text
    assert '"phase":"Completed"' in caplog.text, "it is in the log instead"
    assert "Traceback" not in caplog.text


def audited(name: str) -> AuditRecord:
    return AuditRecord(
        id=name,
        time=now(),
        kind="Errand",
        namespace="default",
        name=name,
        uid="1",
        generation=1,
        creator="",
        action={},
        before="Pending",
        phase="Processing",
        attempt=1,
    )


async def test_a_record_that_no_longer_fits_on_the_disk_leaves_no_half_of_itself(tmp_path: Path) -> None:
    """By the limit for the size of files, which cuts a write short as a full disk does."""
    audit, path, request = FileAudit(tmp_path / "audit.jsonl"), tmp_path / "audit.jsonl", errand()
    await audit.write(audited("first"), request)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, hard))
    try:
        with pytest.raises(OSError, match=r"File too large: '.*audit.jsonl'"):
            await audit.write(audited("second"), request)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    await audit.write(audited("third"), request)
    assert [msgspec.json.decode(line)["name"] for line in path.read_text().splitlines()] == ["first", "third"]


def test_a_sink_that_does_not_answer_holds_up_no_request(caplog: pytest.LogCaptureFixture) -> None:
    class Stuck:
        async def write(self, record: AuditRecord, request: object) -> None:
            if record.phase == "Completed":
                raise asyncio.CancelledError  # of what it waits for
            await asyncio.Event().wait()

    async def main() -> None:
        async with ControlPlane.embedded(definitions=[Errand], controllers=[]) as plane, plane.client() as admin:
            created = await admin.create(errand())
            events = RecordedEvents()
            await ErrandReconciler(Manager(admin).client, events, Stuck()).reconcile(created.key)
            assert (await admin.get(created)).status.phase == "Completed"
            assert events.reasons == ["Completed"]

    run_virtual(main)
    assert [f'"phase":"{phase}"' in caplog.text for phase in ("Processing", "Completed")] == [True, True]


async def test_a_pipe_without_a_reader_is_an_error(tmp_path: Path) -> None:
    """To open it would stop the whole process until somebody does."""
    pipe = tmp_path / "audit"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="No such device or address"):
        await FileAudit(pipe).write(audited("lost"), errand())


async def test_the_error_of_a_full_disk_names_the_file() -> None:
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        await FileAudit("/dev/full").write(audited("lost"), errand())


def test_the_annotation_of_the_creator_is_that_of_the_class() -> None:
    class Stamped(ErrandReconciler):
        creator_annotation = "example.com/creator"

    async def main() -> None:
        async with world(made=Stamped) as it:
            request = errand()
            request.metadata.annotations["example.com/creator"] = "bob"
            await it.admin.create(request)
            await asyncio.sleep(1)
            assert [record.creator for record in it.records.records] == ["bob", "bob"]

    run_virtual(main)


@dataclass
class Trail:
    """An audit trail that outlives processes."""

    records: list[AuditRecord] = field(default_factory=list)

    async def write(self, record: AuditRecord, request: object) -> None:
        self.records.append(record)


ONE = errand(user="bob")


def errands(manager: Manager, trail: Trail) -> None:
    reconciler = ErrandReconciler(manager.client, manager.recorder("errands"), trail)
    controller_for(manager, Errand).complete(reconciler)


def once_unless_taken_over(world: World[Trail]) -> None:
    """Of one process no two records have the same id; and nothing is finished of which there is no record."""
    found = world.get(ONE)
    records = world.outside.records
    if found is not None and found.status.is_finished:
        assert [record.phase for record in records][-1:] == [found.status.phase]
    processes = 1 + sum(record.before == "Processing" == record.phase for record in records)
    assert len(records) <= 2 * processes


def test_every_phase_has_a_record_whatever_fails() -> None:
    explore(
        errands,
        outside=Trail,
        kinds=[Errand],
        when=lambda world: world.create(ONE),
        until=lambda world: world.wait(ONE, Field("status.phase").equals("Completed")),
        always=once_unless_taken_over,
        compare=lambda world: (
            sorted({record.id.partition("/")[2] for record in world.outside.records}),
            {event.reason for event in world.list(Event)},  # events are best effort, and here nothing delays one
        ),
        ignore={Errand: ["status.attempts"]},
        events=1,
        seeds=3,
    ).same_end()


def test_there_is_one_record_of_each_phase_and_one_event_although_answers_are_lost() -> None:
    explore(
        errands,
        outside=Trail,
        kinds=[Errand],
        when=lambda world: world.create(ONE),
        until=lambda world: world.wait(ONE, Field("status.phase").equals("Completed")),
        compare=lambda world: [(record.before, record.phase, record.attempt) for record in world.outside.records],
        events=0,
        faults=["conflict", "throttle", "error", "errors", "timeout", "lost-answer", "late", "cut", "expired"],
    ).same_end()
