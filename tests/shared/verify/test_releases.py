"""GPUs of a lost node are released by proof; a log in which they are not is reported."""

from __future__ import annotations

import pytest

from shared.contracts.attempts import AllocationReleased
from shared.contracts.base import Event
from shared.contracts.nodes import NodeHeard, NodeJoined, NodeLost, NodeSuspected, NodeTermsApplied
from shared.contracts.placement import Allocation, JobPlaced
from shared.contracts.pools import PoolConfigured
from shared.verify.releases import ReleaseProofRule
from tests.shared.ledger_events import ledger_event

POOL = PoolConfigured(partition=0, pool="p", backends=("agent",), lease_s=2.0)
W_S = 773.75


def joined(generation: int = 1, **more: object) -> NodeJoined:
    fields = {
        "node_id": "n1",
        "incarnation": f"i{generation}",
        "executor_id": "e",
        "backend": "agent",
        "gpu_type": "a100",
        "gpus": 2,
        "cpus": 4,
        "mem_gib": 8,
        "generation": generation,
        "boot_id": f"boot-{generation}",
        "pid_namespace": "1",
        "hardware": "machine",
        **more,
    }
    return NodeJoined.model_validate(fields)


def lost(silent_s: float = W_S, reason: str = "silent", **more: object) -> NodeLost:
    fields = {"node_id": "n1", "incarnation": "i1", "reason": reason, "silent_s": silent_s}
    return NodeLost.model_validate({**fields, **more})


def suspected(incarnation: str = "i1") -> NodeSuspected:
    return NodeSuspected(node_id="n1", incarnation=incarnation, silent_ms=30_000, offset=1)


def placed(gpu: int = 0) -> JobPlaced:
    allocation = Allocation(rank=0, node_id="n1", gpus=(gpu,))
    return JobPlaced(
        job_id="a", tenant="t", attempt=1, allocations=(allocation,), waited_ms=0, policy="fcfs"
    )


RELEASED = AllocationReleased(
    job_id="a", attempt=1, allocation_id="0/3/0/0", node_id="n1", reason="lease_over"
)
EXITED = RELEASED.model_copy(update={"reason": "exited"})


def violations(*messages: Event) -> list[str]:
    """Check records of one event each, from seq 1."""
    rule = ReleaseProofRule()
    for seq, message in enumerate(messages, 1):
        rule.observe(ledger_event("placement", message, seq=seq))
    return [violation.detail for violation in rule.finish()]


@pytest.mark.parametrize(
    "proof",
    [
        (lost(), RELEASED),
        (lost(0, "left"), lost(), RELEASED),
        (lost(0, "declared", powered_off=True), RELEASED),
        (lost(0, "replaced"), RELEASED, joined(2)),
        (lost(0, "replaced"), RELEASED, joined(2, boot_id="boot-1", hardware="")),
        (lost(0, "replaced"), RELEASED, joined(2, boot_id="boot-1", pid_namespace="1/abc")),
        (lost(0, "declared"), EXITED),
        (lost(0, "replaced"), RELEASED),
    ],
)
def test_a_proof_releases(proof: tuple[Event, ...]) -> None:
    assert violations(POOL, joined(), placed(), *proof) == []


def test_silence_that_is_too_short_is_reported() -> None:
    assert violations(POOL, joined(), lost(W_S - 0.001)) == [
        "n1 is lost after 773.749 s of silence"
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"hardware": "another"},
        {"hardware": ""},
        {"boot_id": ""},
        {"boot_id": "boot-1", "pid_namespace": "2"},
        {"boot_id": "boot-1", "pid_namespace": "2/abc"},
    ],
)
@pytest.mark.parametrize("reason", ["replaced", "declared", "left"])
def test_a_release_for_another_machine_is_reported(other: dict[str, str], reason: str) -> None:
    details = violations(POOL, joined(), placed(), lost(0, reason), RELEASED, joined(2, **other))
    assert details == ["0/3/0/0 is released, and another machine joins"]


def test_terms_count_until_they_are_dropped() -> None:
    short = POOL.model_copy(update={"stop_after_s": 60.0})
    keep = POOL.model_copy(update={"stop_after_s": "keep"})
    applied = NodeTermsApplied(node_id="n1", incarnation="i1", terms_id="3.0")
    assert violations(POOL, joined(), short, lost(98.75)) != []
    assert violations(POOL, joined(), short, applied, lost(98.75)) == []
    assert violations(short, joined(), POOL, lost(98.75)) != []
    assert violations(keep, joined(), POOL, lost(10**6)) != []
    assert violations(POOL, joined(), short, joined(2, terms_id="1.0"), lost_of("i2", 98.75)) != []


def lost_of(incarnation: str, silent_s: float) -> NodeLost:
    return lost(silent_s, incarnation=incarnation)


def test_a_node_inside_an_executor_is_lost_after_two_leases() -> None:
    virtual = joined(backend="virtual")
    assert violations(POOL, virtual, placed(), lost(4.0), RELEASED) == []
    assert violations(POOL, virtual, lost(3.9)) != []


def test_an_older_ledger_releases_by_the_clock() -> None:
    old = joined(0, incarnation="i1", backend="virtual", boot_id="", hardware="", pid_namespace="")
    assert violations(POOL, old, placed(), lost(2.1), RELEASED) == []
    again = old.model_copy(update={"incarnation": "i2"})
    assert violations(POOL, old, placed(), lost(0, "replaced"), RELEASED, again) == []


def test_a_release_of_a_living_node_is_reported_when_another_machine_joins() -> None:
    assert violations(POOL, joined(), placed(), RELEASED, joined(2, hardware="another")) != []


def test_generations_rise() -> None:
    assert violations(POOL, joined(2), joined(2, incarnation="x")) == [
        "n1 joins with generation 2 after 2"
    ]
    assert violations(POOL, joined(2), joined(1)) == ["n1 joins with generation 1 after 2"]


def test_events_name_the_joined_incarnation() -> None:
    late = (suspected("i0"), NodeHeard(node_id="n1", incarnation="i0"), lost(incarnation="i0"))
    for event in late:
        (detail,) = violations(POOL, joined(), event)
        assert detail == f"{event.TYPE} names i0, the node joined as i1"


def test_nothing_is_placed_on_a_suspected_node_or_an_unusable_gpu() -> None:
    assert violations(POOL, joined(), suspected(), placed()) == [
        "a worker is placed on n1, not heard of"
    ]
    heard = NodeHeard(node_id="n1", incarnation="i1")
    assert violations(POOL, joined(), suspected(), heard, placed()) == []
    assert violations(POOL, joined(unusable_gpus=(1,)), placed(1)) == [
        "a worker gets an unusable GPU of n1"
    ]


def test_events_of_other_ledgers_do_not_count() -> None:
    rule = ReleaseProofRule()
    rule.observe(ledger_event("admission", lost(1.0), seq=1))
    assert list(rule.finish()) == []
