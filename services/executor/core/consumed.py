"""The event types of the placement ledger that an executor folds."""

from __future__ import annotations

from functools import cache

from shared.contracts.admission import ArrayEnded
from shared.contracts.attempts import (
    AllocationReleased,
    JobCancelled,
    JobFailed,
    JobMigrated,
    JobPreempted,
    JobResized,
    JobStarted,
    JobStartFailed,
    JobStopRequested,
    JobSucceeded,
)
from shared.contracts.injections import FaultInjected, InjectionEnded
from shared.contracts.node_problems import NodeProblemNoted
from shared.contracts.nodes import NodeJoined, NodeLost
from shared.contracts.placement import ArrayProgramNoted, JobEnqueued, JobPlaced
from shared.contracts.pools import PoolConfigured

CONSUMED = frozenset(
    cls.TYPE.rpartition(".")[0]
    for cls in (
        AllocationReleased,
        ArrayEnded,
        ArrayProgramNoted,
        FaultInjected,
        InjectionEnded,
        JobCancelled,
        JobEnqueued,
        JobFailed,
        JobMigrated,
        JobPlaced,
        JobPreempted,
        JobResized,
        JobStarted,
        JobStartFailed,
        JobStopRequested,
        JobSucceeded,
        NodeJoined,
        NodeLost,
        NodeProblemNoted,
        PoolConfigured,
    )
)
"""Wire types without their version."""


@cache
def is_consumed(wire_type: str) -> bool:
    """Return whether an executor folds a type, in any version; others are not decoded."""
    return wire_type.rpartition(".")[0] in CONSUMED
