"""Second copies of a transferred job are violations; one on its way is none."""

from __future__ import annotations

import pytest

from shared.contracts.admission import JobAdmitted, JobDeferred
from shared.contracts.attempts import JobCancelled
from shared.contracts.base import Event
from shared.contracts.job_spec import JobSpec
from shared.contracts.transfers import Transferred, TransferTarget, transferred_job_id
from shared.verify.row_store import RowStore
from shared.verify.rules import Bounds
from shared.verify.transfers import TransferRule
from tests.shared.ledger_events import ledger_event

THERE = transferred_job_id("red", "b", "j")


def left(job_id: str = "j", there: str = THERE) -> JobCancelled:
    target = TransferTarget(pool="b", job_id=there)
    return JobCancelled(job_id=job_id, tenant="red", transferred_to=target)


def spec(from_job_id: str) -> JobSpec:
    before = Transferred(
        from_job_id=from_job_id, from_pool="a", first_job_id=from_job_id, transfers=1
    )
    return JobSpec(name="j", pools=("a", "b"), transferred=before)


def arrived(from_job_id: str = "j") -> JobAdmitted:
    return JobAdmitted(job_id=THERE, tenant="red", submitted_at=1, spec=spec(from_job_id))


def deferred() -> JobDeferred:
    return JobDeferred(job_id=THERE, tenant="red", reason="quota", spec=spec("j"))


def violations(*events: Event, kept: RowStore | None = None, seen: int = 100) -> list[str]:
    rule = TransferRule(Bounds({("admission", 0): seen}), kept or RowStore())
    for number, event in enumerate(events, 1):
        ledger = "placement" if isinstance(event, JobCancelled) else "admission"
        rule.observe(ledger_event(ledger, event, seq=number))
    return [violation.detail for violation in rule.finish()]


@pytest.mark.parametrize(
    "events",
    [(left(), arrived()), (arrived(), left()), (left(),), (left(), deferred(), arrived())],
    ids=["in order", "ledgers in another order", "on its way", "deferred first"],
)
def test_a_job_that_left_arrives_at_most_once(events: tuple[Event, ...]) -> None:
    assert violations(*events) == []


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ((arrived(),), "has not left"),
        ((left(), left()), "as another job did"),
        ((left(there="x"),), "is not its id"),
        ((left(), arrived("other")), "comes from other"),
        ((arrived("other"), left()), "comes from other"),
    ],
    ids=["a copy", "twice", "another id", "another origin", "another origin, read first"],
)
def test_each_damage_is_seen(events: tuple[Event, ...], words: str) -> None:
    (detail,) = violations(*events)
    assert words in detail


def test_an_arrival_behind_the_reading_is_not_judged_yet() -> None:
    assert violations(arrived(), seen=0) == []


def test_a_run_behind_a_mark_knows_what_left_before_it() -> None:
    kept = RowStore()
    assert violations(left(), kept=kept) == []
    assert violations(arrived(), kept=kept) == []
