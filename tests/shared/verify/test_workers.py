"""Executors prepare only workers that were placed."""

from __future__ import annotations

import pytest

from shared.contracts.placement import Allocation, JobPlaced
from shared.verify.workers import ReadyWorker, ReadyWorkerRule
from tests.shared.ledger_events import ledger_event

PLACED = ledger_event(
    "placement",
    JobPlaced(
        job_id="j",
        tenant="red",
        attempt=1,
        allocations=tuple(Allocation(rank=rank, node_id="n1") for rank in range(2)),
        waited_ms=0,
        policy="fcfs",
    ),
    seq=4,
    index=2,
)


def violations(*ready: ReadyWorker) -> list[tuple[str, str]]:
    rule = ReadyWorkerRule(list(ready))
    rule.observe(PLACED)
    return [(violation.position, violation.detail) for violation in rule.finish()]


def test_a_placed_worker_may_be_ready() -> None:
    workers = [ReadyWorker(f"0/4/2/{rank}", "j", "reports/0/0") for rank in range(2)]
    assert violations(*workers) == []


@pytest.mark.parametrize(
    ("allocation_id", "job_id"), [("0/4/2/2", "j"), ("0/5/0/0", "j"), ("0/4/2/0", "other")]
)
def test_a_worker_that_was_not_placed_is_reported(allocation_id: str, job_id: str) -> None:
    detail = f"{allocation_id} is ready for {job_id} but was not placed"
    assert violations(ReadyWorker(allocation_id, job_id, "reports/0/7")) == [
        ("reports/0/7", detail)
    ]
