"""The one place where facts of placement's ledger change the pool: a case per event type."""

from __future__ import annotations

from services.placement.core.pool import fold_gangs, fold_nodes, fold_queue
from services.placement.core.pool.state import Pool
from shared.contracts.access import PoolConfigured
from shared.contracts.jobs import CommandAccepted, CommandRefused
from shared.contracts.nodes import (
    NodeCordoned,
    NodeHealthNoted,
    NodeHeard,
    NodeHeldBack,
    NodeJoined,
    NodeLost,
    NodeSuspected,
    NodeTermsApplied,
    NodeUncordoned,
    WorkerStuckNoted,
)
from shared.contracts.placement import (
    AllocationReleased,
    JobAttemptFailed,
    JobCancelled,
    JobEnqueued,
    JobFailed,
    JobHeld,
    JobMigrated,
    JobPlaced,
    JobPreempted,
    JobRequeued,
    JobResized,
    JobStarted,
    JobStartFailed,
    JobStopRequested,
    JobSucceeded,
    RanksNoted,
    RoundEnded,
    RoundOpened,
    WorkersReady,
)
from shared.contracts.rejected import InputQuarantined, InputRejected
from shared.ledger.decider import Fact


def fold(pool: Pool, fact: Fact) -> None:
    """Apply one fact; raises TypeError on an event type that this ledger does not hold."""
    match fact.event:
        case JobEnqueued() | JobRequeued() | JobHeld() | RanksNoted() as event:
            fold_queue.fold_job(pool, event, fact)
        case RoundOpened() | RoundEnded() as event:
            fold_queue.fold_round(pool, event, fact)
        case JobPlaced() | WorkersReady() | JobStarted() | AllocationReleased() as event:
            fold_gangs.fold_worker(pool, event, fact)
        case (
            JobStartFailed() | JobPreempted() | JobMigrated() | JobResized() | JobStopRequested()
        ) as event:
            fold_gangs.fold_stop(pool, event, fact)
        case JobAttemptFailed() | JobSucceeded() | JobFailed() | JobCancelled() as event:
            fold_gangs.fold_end(pool, event, fact)
        case (
            NodeJoined()
            | NodeLost()
            | NodeCordoned()
            | NodeUncordoned()
            | NodeHealthNoted()
            | NodeHeldBack()
            | NodeSuspected()
            | NodeHeard()
            | NodeTermsApplied()
        ) as event:
            fold_nodes.fold_node(pool, event, fact)
        case PoolConfigured() as event:
            fold_nodes.configure(pool, event, fact)
        case CommandAccepted() | CommandRefused() as event:
            pool.answered.apply(event)
        case WorkerStuckNoted() | InputRejected() | InputQuarantined():
            pass
        case event:
            raise TypeError(f"no fold of {type(event).__name__} in placement's ledger")
