"""The one place where facts of placement's ledger change the pool: a fold per event type."""

from __future__ import annotations

from services.placement.core.pool import fold_gangs, fold_nodes, fold_queue
from services.placement.core.pool.state import Pool
from shared.contracts.admission import ArrayEnded
from shared.contracts.attempts import (
    AllocationReleased,
    JobAttemptFailed,
    JobCancelled,
    JobCheckpointed,
    JobFailed,
    JobMigrated,
    JobPreempted,
    JobProgressed,
    JobRequeued,
    JobResized,
    JobStarted,
    JobStartFailed,
    JobStopRequested,
    JobSucceeded,
    WorkersReady,
)
from shared.contracts.base import Event
from shared.contracts.clocks import ClockStepped
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.injections import FaultInjected, InjectionEnded
from shared.contracts.mitigation import MitigationTurnedDown
from shared.contracts.node_problems import NodeProblemNoted
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
    ArrayProgramNoted,
    JobEnqueued,
    JobHeld,
    JobPlaced,
    JobStopDeferred,
    PreemptionPaused,
    RanksChanged,
    RanksNoted,
    RoundEnded,
    RoundOpened,
)
from shared.contracts.pools import PoolConfigured
from shared.contracts.schedules import GpusAllotted, ProposalOpened, ShadowProposed
from shared.ledger.answers import fold_answer
from shared.ledger.folds import INPUT_FOLDS, EventFold, folding, note_clock_step

FOLDS: dict[type[Event], EventFold[Pool]] = {
    JobEnqueued: fold_queue.enqueue,
    JobRequeued: fold_queue.requeue,
    ArrayProgramNoted: fold_queue.note_array,
    ArrayEnded: fold_queue.end_array,
    JobHeld: fold_queue.note_hold,
    RanksNoted: fold_queue.note_ranks,
    RanksChanged: fold_queue.change_ranks,
    ProposalOpened: fold_queue.open_proposal,
    GpusAllotted: fold_queue.note_allotments,
    ShadowProposed: fold_queue.note_shadow,
    RoundOpened: fold_queue.open_round,
    RoundEnded: fold_queue.end_round,
    JobPlaced: fold_gangs.place,
    WorkersReady: fold_gangs.note_ready,
    JobStarted: fold_gangs.start,
    JobCheckpointed: fold_gangs.note_checkpoint,
    JobProgressed: fold_gangs.note_progress,
    AllocationReleased: fold_gangs.release,
    JobStartFailed: fold_gangs.fail_start,
    JobPreempted: fold_gangs.preempt,
    JobMigrated: fold_gangs.migrate,
    JobResized: fold_gangs.resize,
    JobStopDeferred: fold_gangs.defer_stop,
    PreemptionPaused: fold_gangs.note_pause,
    JobStopRequested: fold_gangs.request_stop,
    MitigationTurnedDown: fold_gangs.turn_down,
    JobAttemptFailed: fold_gangs.park,
    JobSucceeded: fold_gangs.end,
    JobFailed: fold_gangs.end,
    JobCancelled: fold_gangs.end,
    NodeJoined: fold_nodes.join,
    NodeLost: fold_nodes.lose,
    NodeCordoned: fold_nodes.cordon,
    NodeUncordoned: fold_nodes.uncordon,
    NodeHealthNoted: fold_nodes.note_health,
    NodeProblemNoted: fold_nodes.note_problem,
    NodeHeldBack: fold_nodes.hold_back,
    NodeSuspected: fold_nodes.suspect,
    NodeHeard: fold_nodes.hear,
    NodeTermsApplied: fold_nodes.apply_terms,
    PoolConfigured: fold_nodes.configure,
    CommandAccepted: fold_answer,
    CommandRefused: fold_answer,
    WorkerStuckNoted: fold_gangs.note_stuck,
    FaultInjected: fold_nodes.inject,
    InjectionEnded: fold_nodes.end_injection,
    ClockStepped: note_clock_step,
    **INPUT_FOLDS,
}
"""Every event type of the placement ledger, and its fold."""

evolve = folding("placement", FOLDS)
