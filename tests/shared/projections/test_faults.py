"""A suspicion is open until it is cleared or dismissed."""

from __future__ import annotations

import pytest

from shared.contracts.base import Event
from shared.contracts.faults import FaultCleared, FaultDismissed, FaultSuspected
from shared.contracts.mitigation_account import MitigationAccounted
from shared.contracts.nodes import NodeUncordoned
from shared.projections.faults import FaultRow, fold_fault
from shared.projections.ledger_events import NotFolded
from tests.shared.ledger_events import AT, ledger_event

SUSPECTED = FaultSuspected(
    fault_id="f",
    job_id="j1",
    tenant="red",
    node_id="n1",
    allocation_id="0/1/0/0",
    slowdown=2,
    iteration_s=2,
    peers_s=1,
    score=9,
    reports=3,
)


def suspected_row() -> FaultRow:
    row = FaultRow("f", 0)
    fold_fault(row, ledger_event("failslow", SUSPECTED))
    return row


def test_a_suspicion_names_the_slow_worker() -> None:
    row = suspected_row()
    assert (row.job_id, row.tenant, row.node_id) == ("j1", "red", "n1")
    assert (row.allocation_id, row.slowdown, row.score) == ("0/1/0/0", 2, 9)
    assert (row.state, row.suspected_at, row.closed_at) == ("suspected", AT, 0)


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (FaultCleared(fault_id="f", job_id="j1", reason="recovered"), "cleared"),
        (FaultDismissed(fault_id="f", false_alarm=False, reason="recovered"), "dismissed"),
        (FaultDismissed(fault_id="f", false_alarm=True, reason="recovered"), "false_alarm"),
    ],
)
def test_a_suspicion_ends_in_one_of_three_states(end: Event, state: str) -> None:
    row = suspected_row()
    fold_fault(row, ledger_event("failslow", end, seq=2, at=AT + 5))
    assert (row.state, row.closed_at, row.reason) == (state, AT + 5, "recovered")


def test_a_suspicion_may_come_back() -> None:
    row = suspected_row()
    fold_fault(row, ledger_event("failslow", FaultCleared(fault_id="f", job_id="j1", reason="x")))
    fold_fault(row, ledger_event("failslow", SUSPECTED, seq=3, at=AT + 9))
    assert (row.state, row.suspected_at) == ("suspected", AT + 9)


def test_an_event_of_another_kind_is_an_error() -> None:
    with pytest.raises(NotFolded, match=r"node\.uncordoned\.v1"):
        fold_fault(FaultRow("f", 0), ledger_event("failslow", NodeUncordoned(node_id="n1")))


def test_a_fault_has_its_cause_its_loss_and_the_gain_of_its_migration() -> None:
    row = FaultRow("f", 0)
    known = SUSPECTED.model_copy(update={"cause": "compute", "part": "gpu"})
    fold_fault(row, ledger_event("failslow", known))
    cleared = FaultCleared(fault_id="f", job_id="j1", reason="job_ended", lost_gpu_s=80)
    fold_fault(row, ledger_event("failslow", cleared))
    account = MitigationAccounted(
        plan_id="p",
        fault_id="f",
        job_id="j1",
        ran_s=100,
        gpus=4,
        cost_s=10,
        avoided_s=50,
        observed_faults=3,
    )
    fold_fault(row, ledger_event("failslow", account))
    assert (row.cause, row.part) == ("compute", "gpu")
    assert (row.lost_gpu_s, row.cost_gpu_s, row.avoided_gpu_s) == (80, 40, 200)
