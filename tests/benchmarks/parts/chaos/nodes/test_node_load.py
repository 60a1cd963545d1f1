"""Attempts of jobs follow from the records of placement."""

from __future__ import annotations

from typing import cast

from benchmarks.parts.chaos.nodes.node_load import NodeLoad
from benchmarks.parts.stack import Bench
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker
from shared.contracts.attempts import AllocationReleased, JobStarted
from shared.contracts.base import Event
from shared.contracts.failures import Failure
from shared.contracts.placement import Allocation, JobPlaced
from shared.ledger.partition import TP
from shared.ledger.reader import Reader


def load() -> NodeLoad:
    return NodeLoad(cast("Bench", None), per_s=1.0, report_line=lambda line: None)


def test_jobs_are_short_and_long_and_some_are_gangs() -> None:
    stack, specs = load(), []
    for stack.number in range(1, 41):
        specs.append(stack.next_spec())
    times = [float(spec.command[-1]) for spec in specs]
    assert sum(seconds == 30.0 for seconds in times) == 4
    assert {spec.gang.workers for spec in specs} == {1, 2}
    assert {spec.gang.gpus_per_worker for spec in specs} == {1, 2}


def test_uniform_jobs_are_all_long() -> None:
    stack = load()
    stack.is_uniform, stack.number = True, 4
    spec = stack.next_spec()
    assert (spec.gang.workers, spec.command[-1]) == (1, "30.00")


def placed(attempt: int) -> JobPlaced:
    allocations = tuple(Allocation(rank=rank, node_id=f"n{rank}", gpus=(0,)) for rank in (0, 1))
    return JobPlaced(
        job_id="j", tenant="t", attempt=attempt, allocations=allocations, waited_ms=1, policy="p"
    )


def released(rank: int, **fields: object) -> AllocationReleased:
    return AllocationReleased.model_validate(
        {"job_id": "j", "attempt": 1, "allocation_id": f"0/1/0/{rank}", "node_id": f"n{rank}"}
        | {"reason": "stopped"}
        | fields
    )


def test_an_attempt_that_is_followed_by_another_has_failed() -> None:
    stack, broker = load(), MemoryBroker()
    writer, reader = LedgerWriter(broker, "placement"), Reader("placement", 0)
    records: list[list[Event]] = [
        [placed(1), JobStarted(job_id="j", tenant="t", attempt=1)],
        [released(0, reason="exited", failure=Failure(reason="step_lost"))],
        [released(1)],
        [placed(2)],
    ]
    for events in records:
        writer.write(events)
    for entry in broker.entries(TP("placement", 0)):
        accepted = reader.offer(entry.offset, entry.value)
        assert accepted is not None
        stack.note(accepted)
    [attempt] = stack.failed_attempts()
    assert attempt.nodes == {"0/1/0/0": "n0", "0/1/0/1": "n1"} and attempt.is_started
    assert attempt.ends == ["exited step_lost", "stopped"]
    assert list(stack.released_at_ms()) == [("j", 1, 0), ("j", 1, 1)]
    assert attempt.released_at[0] == attempt.ended_at <= attempt.released_at[1]
    assert attempt.placed_at < attempt.ended_at < stack.attempts["j", 2].placed_at
