"""A load run that lost or repeated something has no figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.users.outcome import check_costs, check_records
from bench.users.traffic import Counts
from bench.widgets.program import ProgramFailed

from kubewright import now
from kubewright.patterns import AuditRecord


def record(uid: str, phase: str) -> AuditRecord:
    return AuditRecord(
        id=f"{uid}/{phase}",
        time=now(),
        kind="Operationrequest",
        namespace="user-system",
        name=uid,
        uid=uid,
        generation=1,
        creator="",
        action={},
        before="Pending",
        phase=phase,
        attempt=1,
    )


def trails(directory: Path, *records: list[AuditRecord]) -> list[Path]:
    """The files of several processes."""
    paths = [directory / f"{number}.jsonl" for number in range(len(records))]
    for path, each in zip(paths, records, strict=True):
        path.write_bytes(b"\n".join(record.json() for record in each))
    return paths


UIDS = [f"uid-{number}" for number in range(6)]
ALL = [record(uid, phase) for uid in UIDS for phase in ("Processing", "Completed")]


def test_what_the_second_process_has_written_again_is_counted(tmp_path: Path) -> None:
    assert check_records(UIDS, *trails(tmp_path, ALL[:4], ALL[4:])) == 0
    assert check_records(UIDS, *trails(tmp_path, ALL, ALL[:10])) == 10


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([ALL[1:]], "1 changes of phases have no audit record, and 0 records no change"),
        ([ALL, [record("other", "Completed")]], "0 changes of phases have no audit record, and 1 records no change"),
        ([ALL[:4], [*ALL[4:], ALL[4]]], "1 audit records were written again by the same process"),
        ([ALL, ALL], "12 audit records were written again, of 5 requests at a time"),
    ],
)
def test_records_that_are_lost_or_repeated_end_the_run(
    tmp_path: Path, records: list[list[AuditRecord]], message: str
) -> None:
    with pytest.raises(ProgramFailed, match=message):
        check_records(UIDS, *trails(tmp_path, *records))


def test_users_that_cost_more_than_they_are_to_end_the_run() -> None:
    check_costs(2, Counts(9, 30), Counts(0, 0))
    with pytest.raises(ProgramFailed, match="2 users took 31 writes: expected at most 15 each"):
        check_costs(2, Counts(9, 31), Counts(0, 0))
    with pytest.raises(ProgramFailed, match="at rest there were 1 reads and 0 writes"):
        check_costs(2, Counts(9, 30), Counts(1, 0))
