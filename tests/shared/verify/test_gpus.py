"""GPUs are allocated within the capacity of live nodes, and released once."""

from __future__ import annotations

from shared.contracts.attempts import AllocationReleased, JobSucceeded
from shared.contracts.base import Event
from shared.contracts.nodes import NodeLost
from shared.contracts.placement import Allocation, JobPlaced
from shared.verify.gpus import GpuCapacityRule
from tests.shared.ledger_events import ledger_event, node_joined

JOINED = node_joined(gpus=2, cpus=4, mem_gib=8)
LOST = NodeLost(node_id="n1", incarnation="i", reason="silent")


def placed(job_id: str, *gpus: int, node: str = "n1", milli: int = 1000, cpus: float = 1) -> Event:
    allocation = Allocation(rank=0, node_id=node, gpus=gpus, gpu_milli=milli, cpus=cpus, mem_gib=1)
    return JobPlaced(
        job_id=job_id,
        tenant="red",
        attempt=1,
        allocations=(allocation,),
        waited_ms=0,
        policy="fcfs",
    )


def released(job_id: str, seq: int) -> Event:
    """The release of the allocation that record `seq` made."""
    return AllocationReleased(
        job_id=job_id, attempt=1, allocation_id=f"0/{seq}/0/0", node_id="n1", reason="exited"
    )


def succeeded(job_id: str) -> Event:
    return JobSucceeded(job_id=job_id, tenant="red", attempt=1)


def violations(*messages: Event, ledger: str = "placement") -> list[tuple[str, str]]:
    """Check records of one event each, from seq 1."""
    rule = GpuCapacityRule()
    for seq, message in enumerate(messages, 1):
        rule.observe(ledger_event(ledger, message, seq=seq))
    return [(violation.position, violation.detail) for violation in rule.finish()]


def test_a_gpu_may_be_reused_after_its_release() -> None:
    messages = (JOINED, placed("a", 0, 1), released("a", 2), succeeded("a"), placed("b", 0))
    assert violations(*messages) == []


def test_fractions_of_a_gpu_share_its_capacity() -> None:
    halves = (placed("a", 0, milli=500), placed("b", 0, milli=500))
    assert violations(JOINED, *halves) == []
    assert violations(JOINED, *halves, placed("c", 0, milli=1)) == [
        ("placement/0/4/0", "n1 GPU 0 has 1001 of 1000 milli-GPU in use")
    ]


def test_a_gpu_in_use_is_not_allocated_again() -> None:
    assert violations(JOINED, placed("a", 0), placed("b", 0)) == [
        ("placement/0/3/0", "n1 GPU 0 has 2000 of 1000 milli-GPU in use")
    ]


def test_a_gpu_beyond_the_node_is_reported() -> None:
    assert violations(JOINED, placed("a", 2)) == [
        ("placement/0/2/0", "n1 GPU 2 has 1000 of 1000 milli-GPU in use")
    ]


def test_cpu_and_memory_have_a_capacity_too() -> None:
    assert violations(JOINED, placed("a", 0, cpus=3), placed("b", 1, cpus=2)) == [
        ("placement/0/3/0", "n1 has more CPU or memory in use than its capacity")
    ]


def test_a_lost_node_gets_no_allocation_until_it_joins_again() -> None:
    detail = "0/3/0/0 is on n1, which is not a live node"
    assert violations(JOINED, LOST, placed("a", 0)) == [("placement/0/3/0", detail)]
    assert violations(JOINED, LOST, JOINED, placed("a", 0)) == []


def test_a_node_that_joins_again_keeps_its_open_allocations() -> None:
    assert violations(JOINED, placed("a", 0), LOST, JOINED, placed("b", 0)) == [
        ("placement/0/5/0", "n1 GPU 0 has 2000 of 1000 milli-GPU in use")
    ]


def test_an_unknown_node_is_reported() -> None:
    assert violations(placed("a", 0, node="n9")) == [
        ("placement/0/1/0", "0/1/0/0 is on n9, which is not a live node")
    ]


def test_an_allocation_is_released_once() -> None:
    again = (JOINED, placed("a", 0), released("a", 2), released("a", 2))
    assert violations(*again) == [("placement/0/4/0", "0/2/0/0 is released again")]
    assert violations(JOINED, released("a", 7)) == [
        ("placement/0/2/0", "0/7/0/0 is released but never allocated")
    ]


def test_a_job_ends_after_the_release_of_its_gpus() -> None:
    assert violations(JOINED, placed("a", 0), succeeded("a")) == [
        ("placement/0/3/0", "a has job.succeeded.v1 before all its GPUs are released")
    ]


def test_other_ledgers_are_not_checked() -> None:
    assert violations(placed("a", 0), ledger="admission") == []
