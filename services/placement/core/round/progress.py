"""Limits the stops of a job by rank, so that it makes progress; RULES.md, 14 and 16, are exact.

All functions are scalar and in whole ms. The compiled kernel compiles these very functions, but the
one of reports, so that both engines stop a job at the same ms.
"""

from __future__ import annotations

import math

from shared.contracts.checkpoint import OVERDUE_INTERVALS

NEVER = 1 << 62
DOUBLINGS_MOST = 30
CHECKPOINT_PART = 20
"""The window after a checkpoint is at least 1 / so much of the interval."""
LEAST_FILL = 0.02
"""Share of the loss budget below which a stop gets no dearer."""


def stop_window_ms(checkpoint_window_ms: int, interval_ms: int) -> int:
    """Return how long after a checkpoint rank may stop a job, ms of work."""
    return max(checkpoint_window_ms, interval_ms // CHECKPOINT_PART)


def least_work_ms(
    starts: int,
    min_residency_ms: int,
    debt_ms: int,
    start_protection_ms: int,
    cheap_restarts: int,
    interval_ms: int,
    stop_cost_ms: int,
) -> int:
    """Return the work that a start does before rank may stop it, ms; its restart is no work.

    `starts` counts this one. From the second start on a stopped start keeps at least what the last
    stop cost (`debt_ms`: the work lost and the restart), in whole checkpoints: so a job makes
    progress with each start, and it has at most 2 + work / interval of them. The protection of a
    start doubles with each restart beyond `cheap_restarts`, which bounds them far lower.
    `stop_cost_ms` is lost at a stop that writes a checkpoint; 0: a stop writes none.
    """
    doublings = min(max(0, starts - 1 - cheap_restarts), DOUBLINGS_MOST)
    work_ms = max(min_residency_ms, start_protection_ms << doublings)
    if starts <= 1:
        return work_ms
    work_ms = max(work_ms, debt_ms, 1)
    if stop_cost_ms > 0:
        return work_ms + stop_cost_ms
    return -(-work_ms // interval_ms) * interval_ms


def next_stop_ms(
    now: int, safe_ms: int, work_from_ms: int, interval_ms: int, window_ms: int
) -> int:
    """Return the first ms from `now` on at which the job is not protected.

    That is after `safe_ms`, and at most `window_ms` of work after a checkpoint: else at the next
    one. Checkpoints are counted from `work_from_ms`, when the restart was paid.
    """
    at_ms = max(now, safe_ms)
    phase_ms = (at_ms - work_from_ms) % interval_ms
    return at_ms if phase_ms <= window_ms else at_ms + interval_ms - phase_ms


def next_reported_stop_ms(
    now: int,
    safe_ms: int,
    kept_from_ms: int,
    reported_ms: int,
    interval_ms: int | None,
    window_ms: int,
) -> int:
    """Return the same for a job that reports its checkpoints, the last one at `reported_ms`.

    Rank stops it within the window after that one, if it lies at `kept_from_ms` or later, and then
    waits for the next report. One that has not come after two intervals never will: from then on
    checkpoints are at intervals from the last report. Without an interval there is no such end.
    The kernel has no twin of this: simulated jobs report no checkpoints.
    """
    at_ms = max(now, safe_ms)
    if reported_ms >= kept_from_ms and at_ms - reported_ms <= window_ms:
        return at_ms
    if interval_ms is None:
        return NEVER
    intervals = max(OVERDUE_INTERVALS, -((reported_ms - kept_from_ms) // interval_ms))
    silent_ms = reported_ms + intervals * interval_ms
    return next_stop_ms(now, max(safe_ms, silent_ms), reported_ms, interval_ms, window_ms)


def price_of(cost_s: float, gittins_s: float, price: float) -> float:
    """Return what the cost of a stop adds to the victim's score; inf: it costs more than it gains.

    `gittins_s` is the victim's Gittins rank: its score rises as if that were shorter by `price`
    times the cost.
    """
    paid_s = price * cost_s
    if paid_s >= gittins_s:
        return math.inf
    return -math.log(1.0 - paid_s / gittins_s)


def scaled_price(price: float, fill: float) -> float:
    """Return the price of a stop where that share of the loss budget is left."""
    return price / max(LEAST_FILL, fill)
