"""The proposals of a pool's scheduler as events: when one is opened, and what it allots.

`decide` never waits for a scheduler, which may take seconds: it opens a proposal (a fact) and goes
on. The shell that drives the decider reads `state.schedule.open`, has the request of `request.py`
answered, and offers the answer as a local input. A service does so from another process; a
simulation calls `request.propose_now` at the same instant.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from services.placement.core.pool.state import Pool
from services.placement.core.scheduled.allotments import allotments, bytes_of, still_allotted
from services.placement.core.scheduled.claims import has_unclaimed_room, has_vain_claim
from services.placement.core.scheduled.request import MEMORY_BYTES
from shared.contracts.checkpoint import wall_ms
from shared.contracts.construct import construct
from shared.contracts.proposals import ProposalReady
from shared.contracts.schedules import AllottedGpus, GpusAllotted, ProposalFailure, ProposalOpened
from shared.ledger.decider import Decision

PROPOSAL_MS = 60_000
"""Wall ms that a proposal may take: schedulers of the field take up to 5 s for a full view on one
core, and their process has to start first."""
EARLY_PARTS = 10
"""A proposal comes a part of a round after the last one at the earliest, where GPUs are free."""
ALLOTTED_BYTES = 500_000
"""Most bytes of allotments in a record of the ledger, which has its bounds."""
FAILURES = {
    "late": f"made no proposal within {PROPOSAL_MS // 1000} s",
    "died": "its process ended before it made a proposal",
}


def next_step(pool: Pool, now: int) -> Decision | None:
    """Return what precedes a round: that a proposal is opened, or that none came in its time."""
    open_ = pool.schedule.open
    if open_ is None:
        return open_proposal(pool, now) if is_due(pool, now) else None
    return without_proposal(pool, "late", now) if now >= open_.until else None


def is_due(pool: Pool, now: int) -> bool:
    """Return whether the scheduler has to decide: at the end of its round, or earlier where a job
    could start on GPUs that it gave to none, or cannot on those that it gave to it.
    """
    settings, last = pool.settings, pool.schedule
    if settings is None or settings.scheduler is None:
        return False
    if last.scheduler != settings.scheduler or now >= last.until:
        return True
    if last.refused or now < early_ms(pool):
        return False
    return has_unclaimed_room(pool) or has_vain_claim(pool)


def early_ms(pool: Pool) -> int:
    """Return the ms before which no proposal follows the last one."""
    assert pool.settings is not None
    return pool.schedule.at + round_ms(pool) // EARLY_PARTS


def round_ms(pool: Pool) -> int:
    assert pool.settings is not None
    return max(1, wall_ms(pool.settings.scheduler_round_s, pool.time_scale))


def open_proposal(pool: Pool, now: int) -> Decision:
    return Decision(
        construct(
            ProposalOpened, pool=pool.name, scheduler=scheduler_of(pool), until=now + PROPOSAL_MS
        )
    )


def apply_proposal(pool: Pool, message: ProposalReady, now: int) -> Iterator[Decision]:
    """Yield the proposal as an event; an answer to another one than the open one is too late."""
    open_ = pool.schedule.open
    if open_ is None or open_.seq != message.at_seq:
        return
    if message.failed:
        yield without_proposal(pool, message.failed, now)
        return
    allotted = tuple(allotments(pool, message.proposed))
    refused = message.refused or too_large(pool, allotted, message.memory)
    if refused:
        yield recorded(pool, now, refused=refused)
    else:
        yield recorded(
            pool, now, allotted, message.memory, rest_ms=until_next_ms(pool, message, now)
        )


def until_next_ms(pool: Pool, message: ProposalReady, now: int) -> int:
    """Return the ms until the next proposal: a round, or less where the scheduler wakes before.

    It is a part of a round at least: a timer of seconds would have a proposal for each of them.
    """
    whole = round_ms(pool)
    if message.wake_s is None:
        return whole
    wake_ms = math.ceil(message.wake_s / pool.time_scale * 1000) - now
    return min(whole, max(wake_ms, whole // EARLY_PARTS, 1))


def without_proposal(pool: Pool, failed: ProposalFailure, now: int) -> Decision:
    """Return the event that keeps the last allotments; without any the ranked queue decides."""
    last = pool.schedule
    if not last.scheduler or last.refused:
        return recorded(pool, now, refused=f"scheduler {scheduler_of(pool)}: {FAILURES[failed]}")
    return recorded(pool, now, still_allotted(pool), last.memory, kept=failed)


def recorded(
    pool: Pool,
    now: int,
    allotted: tuple[AllottedGpus, ...] = (),
    memory: str = "{}",
    *,
    refused: str = "",
    kept: ProposalFailure = "",
    rest_ms: int | None = None,
) -> Decision:
    """Return the event; `rest_ms` until the next proposal, by default a round."""
    return Decision(
        construct(
            GpusAllotted,
            pool=pool.name,
            scheduler=scheduler_of(pool),
            number=pool.schedule.number + 1,
            allotted=allotted,
            until=now + (round_ms(pool) if rest_ms is None else rest_ms),
            memory=memory,
            refused=refused,
            kept=kept,
        )
    )


def scheduler_of(pool: Pool) -> str:
    return (pool.settings.scheduler if pool.settings else None) or ""


def too_large(pool: Pool, allotted: Iterable[AllottedGpus], memory: str) -> str:
    """Return the rule that a proposal breaks which fits in no record, "" if it fits."""
    sizes = (
        ("allotments", sum(map(bytes_of, allotted)), ALLOTTED_BYTES),
        ("memory", len(memory), MEMORY_BYTES),
    )
    for part, size, most in sizes:
        if size > most:
            return f"scheduler {scheduler_of(pool)}: {part} of {size} bytes, must be at most {most}"
    return ""
