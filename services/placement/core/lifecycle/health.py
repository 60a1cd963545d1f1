"""The suspicions of fail-slow, restated as the health of the nodes under the workers.

A suspicion that ended only because its job did proves nothing: the node stays suspect for a while,
so that the next job is not led to where the last one suffered. Jobs report their own times, so one
tenant's jobs that have ended leave few nodes suspect: half of what mitigation may cordon, and one.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.pool.state import Pool
from shared.contracts.breaker import most_out_of_use
from shared.contracts.faults import FaultCleared, FaultDismissed, FaultSuspected
from shared.contracts.mitigation import NodeHealthScored
from shared.contracts.nodes import TENANTS_FROM, NodeHealthNoted
from shared.ledger.decider import Decision, Input

MEMORY_S = 3600.0
"""Cluster seconds that a node stays suspect after the job that suffered there has ended."""
FORGOTTEN_PER_STEP = 100
HEALTHY = 1.0
LARGEST_SLOWDOWN = 10.0
"""Bound on what a suspicion counts for: jobs report their own times, which may be any numbers."""
HISTORY = "history"
"""Stands in the place of a suspicion's id for the history of faults of the node."""
HISTORY_WEIGHT = 0.1
"""Slowdown that a burden of 1 counts for: of nodes that fit equally well the better one is taken,
but a node with a history is not as bad as one that is slow now."""
HISTORY_S = 7 * 86_400.0
"""Cluster seconds after which a score is too old: by then half of it is forgotten."""

Fault = FaultSuspected | FaultCleared | FaultDismissed


def note_fault(pool: Pool, message: Fault, item: Input, now: int) -> Iterator[Decision]:
    """Note a suspicion or its end; unknown nodes and suspicions are ignored."""
    node_id, fault_id = message.node_id, message.fault_id
    slowdowns = pool.board.slow.get(node_id, {})
    match message:
        case FaultSuspected(slowdown=slowdown, gpu=gpu):
            if node_id in pool.board.nodes:
                yield restate_health(pool, node_id, fault_id, slowdown, item, gpu=gpu)
        case FaultCleared(reason="job_ended") if fault_id in slowdowns:
            yield remember(pool, message, item, now)
        case FaultCleared(reason="recovered"):
            for other in [f for f in slowdowns if f == fault_id or is_fading(pool, f)]:
                yield restate_health(pool, node_id, other, HEALTHY, item)
        case FaultDismissed():
            if fault_id in slowdowns:
                yield restate_health(pool, node_id, fault_id, HEALTHY, item)


def remember(pool: Pool, message: FaultCleared, item: Input, now: int) -> Decision:
    """Return that the node stays suspect, or that it does not, as its tenant's jobs left enough."""
    node_id, fault_id, tenant = message.node_id, message.fault_id, message.tenant
    fading = pool.board.fading.values()
    left = {own.node_id for own in fading if own.tenant == tenant} - {node_id}
    if tenant and len(left) >= most_left(pool):
        return restate_health(pool, node_id, fault_id, HEALTHY, item)
    until = now + round(MEMORY_S * 1000 / pool.time_scale)
    slowdown, gpu = pool.board.slow[node_id][fault_id], pool.board.slow_gpus.get(fault_id)
    return restate_health(pool, node_id, fault_id, slowdown, item, until, gpu, tenant)


def most_left(pool: Pool) -> int:
    """Return how many nodes one tenant's jobs that have ended may leave suspect."""
    share = pool.settings.mitigation_share if pool.settings else 0.0
    return max(1, most_out_of_use(share, len(pool.board.nodes)) // 2)


def is_fading(pool: Pool, fault_id: str) -> bool:
    """Return whether it is a suspicion of a job that ended; a recovery does not end a history."""
    return fault_id in pool.board.fading and not fault_id.startswith(f"{HISTORY}/")


def note_score(pool: Pool, message: NodeHealthScored, item: Input, now: int) -> Iterator[Decision]:
    """Note the history of a node's faults for a half-life; a healthy score ends it."""
    node_id = message.node_id
    if node_id not in pool.board.nodes:
        return
    slowdown = 1 + HISTORY_WEIGHT * (1 / message.score - 1)
    fault_id = f"{HISTORY}/{node_id}" + ("" if message.gpu is None else f"/{message.gpu}")
    if slowdown > HEALTHY:
        until = now + round(HISTORY_S * 1000 / pool.time_scale)
        yield restate_health(pool, node_id, fault_id, slowdown, item, until, message.gpu)
    elif fault_id in pool.board.slow.get(node_id, {}):
        yield restate_health(pool, node_id, fault_id, HEALTHY, item)


def restate_health(
    pool: Pool,
    node_id: str,
    fault_id: str,
    slowdown: float,
    item: Input | None,
    until: int | None = None,
    gpu: int | None = None,
    tenant: str = "",
) -> Decision:
    """Return the node's health with this slowdown; `item`: the message that leads to it, if any."""
    slowdown = min(slowdown, LARGEST_SLOWDOWN)
    others = pool.board.slow.get(node_id, {})
    worst = max([slowdown, *(s for f, s in others.items() if f != fault_id)])
    event = NodeHealthNoted(
        node_id=node_id,
        fault_id=fault_id,
        slowdown=slowdown,
        health=1 / worst,
        until=until,
        gpu=gpu,
        tenant=tenant if pool.settings and pool.settings.release >= TENANTS_FROM else "",
    )
    return item.decision(event) if item else Decision(event)


def forget_faults(pool: Pool, now: int) -> Iterator[Decision]:
    """Forget suspicions whose time is over; `next_wake` stays due until none is left."""
    over = [f for f, fading in pool.board.fading.items() if fading.until <= now]
    for fault_id in over[:FORGOTTEN_PER_STEP]:
        yield restate_health(pool, pool.board.fading[fault_id].node_id, fault_id, HEALTHY, None)


def due_at(pool: Pool) -> int | None:
    """Return the ms when the next suspicion is forgotten."""
    return min((fading.until for fading in pool.board.fading.values()), default=None)
