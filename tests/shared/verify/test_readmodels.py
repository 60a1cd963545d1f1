"""Stored rows equal an independent fold of the ledgers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shared.contracts.admission import JobAdmitted
from shared.contracts.attempts import AllocationReleased, JobRequeued, JobStarted, JobSucceeded
from shared.contracts.base import Event
from shared.contracts.command_answers import CommandAccepted
from shared.contracts.job_spec import JobSpec
from shared.contracts.placement import Allocation, JobEnqueued, JobPlaced
from shared.contracts.rejected import (
    InputQuarantined,
    InputRejected,
    InputRetried,
    InputRetryRequested,
    InputSkipped,
)
from shared.verify.readmodels import ReadModelRule, StoredRows
from shared.verify.row_store import Figures
from tests.shared.ledger_events import AT, ledger_event
from tests.shared.verify.rows import stored_rows

Rows = dict[str, Figures]
SPEC = JobSpec(name="train")
ADMISSION: list[Event] = [
    JobAdmitted(job_id="j", tenant="red", submitted_at=1, spec=SPEC),
    CommandAccepted(command_id="c", command_type="job.submit.v1"),
    InputRejected(topic="commands", partition=0, offset=4, reason="no JSON", sha256="ab"),
]
PLACEMENT: list[Event] = [
    JobEnqueued(job_id="j", tenant="red", submitted_at=1, spec=SPEC),
    JobPlaced(
        job_id="j",
        tenant="red",
        attempt=1,
        allocations=(Allocation(rank=0, node_id="n1", gpu_milli=500),),
        waited_ms=0,
        policy="fcfs",
    ),
    JobStarted(job_id="j", tenant="red", attempt=1),
    AllocationReleased(
        job_id="j", attempt=1, allocation_id="0/2/0/0", node_id="n1", reason="stopped"
    ),
    JobRequeued(job_id="j", tenant="red", attempt=2, reason="higher_class", gpu_s=1.5),
]


def stored_tables() -> dict[str, Rows]:
    """The rows of a right projector."""
    return {
        "job_placement": {"j": ("waiting", 2, 1500, 0)},
        "job_admission": {"j": ("admitted",)},
        "allocation": {"0/2/0/0": ("j", "n1", 500, True)},
        "command": {"c": ("admission", True, 1)},
        "dead_letter": {"admission/0/3/0": ("commands", 4, "ab", "rejected")},
    }


def violations(
    tables: dict[str, Rows], *later: Event, placement_seq: int = 5
) -> list[tuple[str, str]]:
    seqs = {("admission", 0): 3, ("placement", 0): placement_seq}
    rule = ReadModelRule(StoredRows(seqs, stored_rows(tables)))
    for ledger, messages in (("admission", ADMISSION), ("placement", [*PLACEMENT, *later])):
        for seq, message in enumerate(messages, 1):
            rule.observe(ledger_event(ledger, message, seq=seq))
    return [(violation.position, violation.detail) for violation in rule.finish()]


def test_right_rows_equal_the_fold() -> None:
    assert violations(stored_tables()) == []


def test_events_beyond_the_cursor_are_not_expected() -> None:
    later = JobSucceeded(job_id="j", tenant="red", attempt=2)
    assert violations(stored_tables(), later) == []


def test_a_stale_row_is_reported_with_both_values() -> None:
    later = JobSucceeded(job_id="j", tenant="red", attempt=2)
    assert violations(stored_tables(), later, placement_seq=6) == [
        (
            "job_placement j",
            f"stored ('waiting', 2, 1500, 0), the fold gives ('succeeded', 2, 1500, {AT})",
        )
    ]


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ([], "open"),
        ([("access", InputSkipped(input_id="admission/0/1/0", reason="x"))], "skipped"),
        ([("access", InputRetryRequested(input_id="admission/0/1/0"))], "retrying"),
        (
            [
                ("admission", InputRetried(input_id="admission/0/1/0", outcome="decided")),
                ("access", InputRetryRequested(input_id="admission/0/1/0")),
            ],
            "retried",
        ),
    ],
)
def test_a_row_in_another_state_than_that_of_its_decision_is_reported(
    events: list[tuple[str, Event]], state: str
) -> None:
    quarantined = InputQuarantined(topic="reports", partition=0, offset=7, reason="E", sha256="ab")
    for stored, wrong in ((state, False), ("lost", True)):
        rows: Rows = {"admission/0/1/0": ("reports", 7, "ab", stored)}
        seqs = {("admission", 0): 9, ("access", 0): 9}
        tables = dict.fromkeys(stored_tables(), Rows()) | {"dead_letter": rows}
        rule = ReadModelRule(StoredRows(seqs, stored_rows(tables)))
        rule.observe(ledger_event("admission", quarantined, seq=1))
        for seq, (ledger, event) in enumerate(events, 2):
            rule.observe(ledger_event(ledger, event, seq=seq))
        assert bool(list(rule.finish())) == wrong


@pytest.mark.parametrize("table", sorted(stored_tables()))
@pytest.mark.parametrize(
    "damage",
    [
        lambda rows: rows.clear(),
        lambda rows: rows.update(extra=("row",)),
        lambda rows: rows.update({key: (*row[:-1], "changed") for key, row in rows.items()}),
    ],
    ids=["missing", "extra", "changed"],
)
def test_a_damaged_table_is_reported(table: str, damage: Callable[[Rows], None]) -> None:
    tables = stored_tables()
    damage(tables[table])
    (violation,) = violations(tables)
    assert violation[0].startswith(f"{table} ")
