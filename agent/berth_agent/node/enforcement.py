"""The agent as second enforcer: it kills what outlived its time, also where its disk fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic, sleep

from berth_agent.linux import processes
from berth_agent.node.files.allocation import SPARE_MS, AllocationFolder

STRAYS_S = 10.0
"""Longest time in which unknown processes that were killed may end."""
LOOK_S = 0.05


def kill_overdue(
    allocations: Iterable[AllocationFolder], now_ms: int, deadline_ms: int | None
) -> None:
    """Kill steps that outlived the deadline or a grace.

    All steps come first, by what is in memory: the rest reads files of a disk that may not answer.
    """
    lapsed = deadline_ms is not None and now_ms > deadline_ms + SPARE_MS
    due = []
    for allocation in allocations:
        ignored = allocation.kill_due_ms is not None and now_ms > allocation.kill_due_ms
        lives = allocation.phase not in ("dead", "stuck") and not allocation.launching
        if (lapsed or ignored) and lives:
            allocation.kill_step()
            due.append(allocation)
    for allocation in due:
        allocation.kill()


def end_strays(strays: Callable[[], list[int]], longest_s: float = STRAYS_S) -> bool:
    """Kill unknown processes of the node until there are none; return whether that was reached."""
    ends_s = monotonic() + longest_s
    while left := strays():
        processes.kill_each(left)
        if monotonic() > ends_s:
            return False
        sleep(LOOK_S)
    return True


def all_of(*acts: Callable[[], None]) -> None:
    """Do each, whatever happens to the others. Raises the first OSError."""
    problem: OSError | None = None
    for act in acts:
        try:
            act()
        except OSError as error:
            problem = problem or error
    if problem is not None:
        raise problem
