"""Gangs and their telemetry, for the tests of fail-slow."""

from __future__ import annotations

from collections.abc import Sequence

from services.failslow.core.decide import FailSlow
from services.failslow.core.state import FailSlowState
from shared.contracts.base import Event
from shared.contracts.faults import GangsNoted, GangWorker, WatchedGang
from shared.contracts.mitigation import NodeHealthScored
from shared.contracts.placement import Allocation, JobPlaced
from shared.contracts.pools import PoolConfigured
from shared.contracts.reports import IterationTimes, TelemetryReported, WorkersIterated
from shared.ledger.decider import Input
from tests.harness.decider import AT, an_input, run

POOL = PoolConfigured(partition=0, pool="main", mitigation="approve")


def gang(job_id: str = "j1", workers: int = 4, attempt: int = 1) -> WatchedGang:
    return WatchedGang(
        job_id=job_id,
        tenant="acme",
        attempt=attempt,
        workers=tuple(
            GangWorker(rank=rank, node_id=f"n{rank}", allocation_id=f"0/9/0/{rank}", gpus=(0,))
            for rank in range(workers)
        ),
        gpus=float(workers),
        preemptible=True,
    )


def watched(*gangs: WatchedGang) -> GangsNoted:
    return GangsNoted(pool="main", started=gangs)


def placed(
    job_id: str = "j1",
    workers: int = 4,
    attempt: int = 1,
    tenant: str = "acme",
    preemptible: bool = True,
    first: int = 0,
    gpu: int = 0,
) -> Input:
    """A gang on as many nodes, from `n<first>` on."""
    allocations = tuple(
        Allocation(rank=r, node_id=f"n{first + r}", gpus=(gpu,)) for r in range(workers)
    )
    message = JobPlaced(
        job_id=job_id,
        tenant=tenant,
        attempt=attempt,
        preemptible=preemptible,
        allocations=allocations,
        waited_ms=0,
        policy="test",
    )
    return an_input(message, "placement", place="0/9/0")


def times(
    windows: Sequence[Sequence[float]], job_id: str = "j1", *, own: bool = False, first: int = 0
) -> tuple[IterationTimes, ...]:
    """One entry per worker, ranks in order; `own`: they are times of own work."""
    return tuple(
        IterationTimes(
            job_id=job_id,
            allocation_id=f"0/9/0/{rank}",
            node_id=f"n{first + rank}",
            rank=rank,
            iteration_s=tuple(window),
            own_s=tuple(window) if own and all(0 <= s <= 1e9 for s in window) else (),
        )
        for rank, window in enumerate(windows)
    )


def iterated(*windows: Sequence[float], job_id: str = "j1", first: int = 0) -> Input:
    rows = times(windows, job_id, own=True, first=first)
    return an_input(WorkersIterated(times=rows), "local")


def report(at: int, *values: float, job_id: str = "j1", executor: str = "e1") -> TelemetryReported:
    """One value per worker."""
    one_each = times([[value] for value in values], job_id)
    return TelemetryReported(executor_id=executor, at=at, times=one_each)


def verdicts(
    decider: FailSlow, state: FailSlowState, inputs: Sequence[Input], now: int = AT
) -> list[Event]:
    """Return the decided events, as `run` does, without the scores of nodes that follow them."""
    events = run(decider, state, inputs, now)
    return [event for event in events if not isinstance(event, NodeHealthScored)]
