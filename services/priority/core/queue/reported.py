"""The rest of a running job by the iterations that it reports, as far as ranks believe it.

A report is a tenant's word, and a job that says that it is about to end is not stopped by rank. So
its first report binds the job, over all its starts: with `d` the distance between the work that it
has done and the whole work by that report, its rest counts as `DOUBT * d` at least. Whatever it
says later, it passes as one with `x` s left for at most `2 * x / DOUBT` s of work in its life,
where an honest job does for `x`.
"""

from __future__ import annotations

import math

from services.priority.core.queue.table import COLUMN, JobTable

DOUBT = 0.5
"""Part of the distance to the end by the first report that a later one cannot remove."""
KEPT, RAN, GO, ENDS, TOTAL, RESTARTS, RESTART = (
    COLUMN[name]
    for name in ("kept_ms", "ran_ms", "go_ms", "ends_ms", "total_ms", "restarts", "restart_s")
)


def believed_left_s(left_s: float, total_s: float, attained_s: float) -> float:
    """Return the rest in s of a job that reports `left_s`, and first reported `total_s` in all."""
    return max(left_s, DOUBT * abs(total_s - attained_s))


def attained_ms(values: list[float], at: float, time_scale: float) -> float:
    """Return the wall ms of work that a row of the table has done at that ms: that which is kept,
    and since its start.
    """
    if not 0 < values[GO] < at:
        return values[KEPT]
    paid_ms = round(values[RESTART] * 1000 / time_scale) if values[RESTARTS] > 0 else 0
    return values[KEPT] + max(0.0, at - values[GO] - paid_ms)


def left_of_row_s(values: list[float], at: float, time_scale: float) -> float:
    """Return the believed rest of a running job in cluster s; nan: it reported none."""
    if values[ENDS] <= at:
        return math.nan
    total_s = values[TOTAL] / 1000.0 * time_scale
    attained_s = attained_ms(values, at, time_scale) / 1000.0 * time_scale
    return believed_left_s((values[ENDS] - at) / 1000.0 * time_scale, total_s, attained_s)


def note_report(table: JobTable, row: int, ends_at: int, time_scale: float) -> None:
    """Note when a running job says that it ends; its first report says how long the whole takes."""
    values = table.values[:, row].tolist()
    table.put(row, ends_ms=ends_at)
    if values[GO] and not values[TOTAL]:
        # What it will have done by then, were it not stopped.
        table.put(row, total_ms=max(1.0, attained_ms(values, ends_at, time_scale)))


def left_after_stop_s(
    table: JobTable, row: int, ran_ms: int, kept_ms: int, time_scale: float
) -> float:
    """Return the rest of a job that a stop left with these totals, in cluster s, what it has to do
    again included; nan: it reported none.
    """
    values = table.values[:, row].tolist()
    at = values[GO] + ran_ms - values[RAN]
    again_ms = attained_ms(values, at, time_scale) - kept_ms
    return left_of_row_s(values, at, time_scale) + again_ms / 1000.0 * time_scale
