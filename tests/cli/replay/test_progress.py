"""The progress of a replay, folded from two ledgers."""

from __future__ import annotations

from cli.replay.progress import ReplayProgress
from shared.contracts.admission import JobAdmitted, JobRejected
from shared.contracts.attempts import AllocationReleased, JobSucceeded
from shared.contracts.base import Event
from shared.contracts.job_spec import JobSpec
from shared.contracts.placement import Allocation, JobEnqueued, JobPlaced
from shared.ledger.decider import Fact
from tests.shared.ledger_events import node_joined

SPEC = JobSpec(name="x")


def fact(event: Event, ledger: str = "placement", seq: int = 1, at: int = 1000) -> Fact:
    return Fact(event, ledger, 0, seq, 0, at, "", "")


def admitted(job_id: str) -> Fact:
    return fact(JobAdmitted(job_id=job_id, tenant="t", submitted_at=1, spec=SPEC), "admission")


def enqueued(job_id: str) -> Fact:
    return fact(JobEnqueued(job_id=job_id, tenant="t", submitted_at=1, spec=SPEC))


def joined(node_id: str) -> Fact:
    return fact(node_joined(node_id))


def placed(job_id: str, node_id: str, seq: int, at: int) -> Fact:
    leases = (Allocation(rank=0, node_id=node_id, gpus=(0, 1)),)
    return fact(
        JobPlaced(
            job_id=job_id, tenant="t", attempt=1, allocations=leases, waited_ms=500, policy="p"
        ),
        seq=seq,
        at=at,
    )


def released(job_id: str, seq: int) -> Fact:
    return fact(
        AllocationReleased(
            job_id=job_id, attempt=1, allocation_id=f"0/{seq}/0/0", node_id="n1", reason="exited"
        )
    )


def succeeded(job_id: str) -> Fact:
    return fact(JobSucceeded(job_id=job_id, tenant="t", attempt=1))


def test_a_job_without_a_record_is_missing() -> None:
    progress = ReplayProgress({"a"})
    assert progress.counts() == {"unknown": 1}
    assert progress.missing() == ["a (unknown)"]


def test_placement_goes_before_admission_in_whatever_order_they_come() -> None:
    life = [admitted("a"), enqueued("a"), succeeded("a")]
    for order in (life, life[::-1][-1:] + life[1:], [*life[1:], life[0]]):
        progress = ReplayProgress({"a"})
        progress.see(order)
        assert progress.counts() == {"succeeded": 1}
        assert progress.missing() == []


def test_a_rejected_job_has_ended() -> None:
    progress = ReplayProgress({"a"})
    progress.see([fact(JobRejected(job_id="a", tenant="t", reason="infeasible"), "admission")])
    assert progress.missing() == []
    assert "infeasible" in progress.decisions[0]


def test_gpus_are_used_from_placed_to_released() -> None:
    progress = ReplayProgress({"a"})
    progress.see([joined("n1"), placed("a", "n1", 7, 2000)])
    assert progress.utilisation() == {"a100": (2.0, 8)}
    assert (progress.first_placed_at, progress.p50_wait_s()) == (2000, 0.5)
    assert progress.placed_per_s(3000) == 0.2
    progress.see([released("a", 7)])
    assert progress.utilisation() == {"a100": (0.0, 8)}


def test_jobs_of_others_are_not_counted() -> None:
    progress = ReplayProgress({"a"})
    progress.see([enqueued("b"), succeeded("b")])
    assert progress.counts() == {"unknown": 1}
