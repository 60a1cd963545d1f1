"""Rows of histories are counted against the events of jobs."""

from __future__ import annotations

import pytest

from shared.contracts.base import Event
from shared.projections.source import LedgerPartition
from shared.projections.timeline import JOB_TYPES
from shared.verify.histories import HistoryRule, StoredHistories
from tests.contracts.fixture_events import events_of_ledger
from tests.shared.ledger_events import ledger_event

EVENTS = {ledger: events_of_ledger(ledger) for ledger in ("admission", "placement")}
OF_JOBS: dict[LedgerPartition, int] = {
    (ledger, 0): sum(event.TYPE in JOB_TYPES for event in events)
    for ledger, events in EVENTS.items()
}


def violations(counts: dict[LedgerPartition, int], left: int = 0) -> list[str]:
    seqs = {(ledger, 0): len(events) for ledger, events in EVENTS.items()}
    rule = HistoryRule(StoredHistories(counts, left), seqs)
    for ledger, events in EVENTS.items():
        later: list[Event] = [*events, *events]
        for seq, event in enumerate(later, 1):
            rule.observe(ledger_event(ledger, event, seq=seq))
    return [f"{violation.position}: {violation.detail}" for violation in rule.finish()]


def test_a_row_for_each_event_of_a_job_up_to_the_cursor_is_right() -> None:
    assert min(OF_JOBS.values()) > 1
    assert violations(OF_JOBS) == []


@pytest.mark.parametrize("by", [-1, 1])
def test_a_row_that_is_gone_or_too_many_is_a_violation(by: int) -> None:
    (line,) = violations(OF_JOBS | {("placement", 0): OF_JOBS["placement", 0] + by})
    assert line.startswith("job_event placement-0: ")


def test_rows_that_have_left_are_missing_and_no_others() -> None:
    counts = OF_JOBS | {("placement", 0): OF_JOBS["placement", 0] - 1}
    assert violations(counts, left=1) == []
    (line,) = violations(counts, left=2)
    assert line == "job_event: 1 rows are missing; 2 have left by their retention"


def test_an_emptied_table_is_named_for_each_lane() -> None:
    assert len(violations({})) == 2
