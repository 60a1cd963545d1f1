"""Arrays with a program that is recorded once: from their acceptance until their last job ended."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.pool.state import Pool
from shared.contracts.admission import ArrayAccepted, ArrayEnded
from shared.contracts.construct import construct
from shared.contracts.placement import ArrayProgramNoted
from shared.ledger.decider import Decision, Input


def note_program(pool: Pool, message: ArrayAccepted, item: Input) -> Iterator[Decision]:
    """Record the program for the executors, which read this ledger alone."""
    if message.job_id in pool.arrays:
        return
    yield item.decision(
        construct(
            ArrayProgramNoted,
            job_id=message.job_id,
            tenant=message.tenant,
            command=message.spec.command,
            env=message.spec.env,
        )
    )


def end_array(pool: Pool, message: ArrayEnded, item: Input) -> Iterator[Decision]:
    if message.job_id in pool.arrays:
        yield item.decision(message)
