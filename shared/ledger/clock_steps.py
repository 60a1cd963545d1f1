"""Steps of the clock of a lane's host, as a decider records them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared.contracts.clocks import ClockStepObserved, ClockStepped
from shared.contracts.pools import PoolConfigured
from shared.ledger.decider import Decision, Input

FIRST_RELEASE = 1
"""Earlier releases cannot read the event."""


def note_steps(
    inputs: Sequence[Input], pool: PoolConfigured | None, service: str, now: int
) -> Iterator[Decision]:
    """Record the steps among the inputs, once no earlier release can take over the lane.

    Nothing of what is decided depends on it: the host keeps the time of the ledger steady.
    """
    if pool is None or pool.release < FIRST_RELEASE:
        return
    for item in inputs:
        if isinstance(item.message, ClockStepObserved):
            step = item.message
            yield item.decision(
                ClockStepped(
                    service=service,
                    partition=pool.partition,
                    by_ms=step.by_ms,
                    before_ms=now + step.ahead_ms - step.by_ms,
                    after_ms=now + step.ahead_ms,
                    ahead_ms=step.ahead_ms,
                )
            )


def last_step(state: object) -> ClockStepped | None:
    """Return the last step in the state of a lane; None where it has or keeps none."""
    step: ClockStepped | None = getattr(state, "clock_step", None)
    return step
