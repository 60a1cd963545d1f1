"""A drift of the predicted intervals is reported once, and once more when they hold again."""

from __future__ import annotations

from collections.abc import Iterator

from services.priority.core.history.coverage import CLAIMED
from services.priority.core.state import PriorityState
from shared.contracts.ranking import IntervalsDrifted, IntervalsRecovered
from shared.ledger.decider import Decision


def report_drift(queue: PriorityState) -> Iterator[Decision]:
    """Yield the event of a drift, or of its end; nothing while it lasts."""
    drifted = queue.coverage.find_change()
    if drifted is None:
        return
    event = IntervalsDrifted if drifted else IntervalsRecovered
    yield Decision(
        event(
            pool=queue.name,
            coverage=round(queue.coverage.share, 4),
            claimed=CLAIMED,
            samples=queue.coverage.samples,
        )
    )
