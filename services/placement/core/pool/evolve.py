"""The one place where facts of placement's ledger change the pool: a fold per event type."""

from __future__ import annotations

from services.placement.core.pool import fold_gangs, fold_nodes, fold_queue
from services.placement.core.pool.state import Pool
from shared.contracts.access import PoolConfigured
from shared.contracts.base import Event
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
from shared.contracts.rejected import InputQuarantined, InputRejected, InputRetried
from shared.ledger.answers import fold_answer
from shared.ledger.decider import Fact
from shared.ledger.folds import EventFold, ignore, unknown_event

FOLDS: dict[type[Event], EventFold[Pool]] = {
    JobEnqueued: fold_queue.enqueue,
    JobRequeued: fold_queue.requeue,
    JobHeld: fold_queue.note_hold,
    RanksNoted: fold_queue.note_ranks,
    RoundOpened: fold_queue.open_round,
    RoundEnded: fold_queue.end_round,
    JobPlaced: fold_gangs.place,
    WorkersReady: fold_gangs.note_ready,
    JobStarted: fold_gangs.start,
    AllocationReleased: fold_gangs.release,
    JobStartFailed: fold_gangs.fail_start,
    JobPreempted: fold_gangs.preempt,
    JobMigrated: fold_gangs.migrate,
    JobResized: fold_gangs.resize,
    JobStopRequested: fold_gangs.request_stop,
    JobAttemptFailed: fold_gangs.park,
    JobSucceeded: fold_gangs.end,
    JobFailed: fold_gangs.end,
    JobCancelled: fold_gangs.end,
    NodeJoined: fold_nodes.join,
    NodeLost: fold_nodes.lose,
    NodeCordoned: fold_nodes.cordon,
    NodeUncordoned: fold_nodes.uncordon,
    NodeHealthNoted: fold_nodes.note_health,
    NodeHeldBack: fold_nodes.hold_back,
    NodeSuspected: fold_nodes.suspect,
    NodeHeard: fold_nodes.hear,
    NodeTermsApplied: fold_nodes.apply_terms,
    PoolConfigured: fold_nodes.configure,
    CommandAccepted: fold_answer,
    CommandRefused: fold_answer,
    WorkerStuckNoted: fold_gangs.note_stuck,
    InputRejected: ignore,
    InputQuarantined: ignore,
    InputRetried: ignore,
}
"""Every event type of the placement ledger, and its fold."""


def evolve(pool: Pool, fact: Fact) -> None:
    """Fold one event; raises TypeError on a type that placement does not write."""
    event = fact.event
    fold = FOLDS.get(type(event))
    if fold is None:
        raise unknown_event("placement", event)
    fold(pool, event, fact)
