"""Goals of the detection of slow jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

PRECISION, RECALL, DELAY = 0.995, 0.98, 6
ACCURACIES = {"1": 0.99, "2": 0.99, "4": 0.98}
"""By jitter, in percent."""
PER_S = 50_000
REMOVED_LONG, REMOVED_SHORT, WORST_FAULT = 0.75, 0.15, 1.0
SPEED_UP_AT_6 = 1.9
GAP = 0.02


def goals_of(result: dict[str, Any]) -> dict[str, str]:
    """Return `met` or `not met` by goal, with the figure."""
    return dict(_goals(result))


def _goals(result: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for jitter, accuracy in ACCURACIES.items():
        own = result["by_jitter"][jitter]["berth"]
        yield _goal(f"precision at {jitter} %", own["precision"], PRECISION)
        yield _goal(f"recall at {jitter} %", own["recall"], RECALL)
        yield _goal(f"job accuracy at {jitter} %", own["job_accuracy"], accuracy)
        yield _most(f"median delay at {jitter} %, iterations", own["median_delay_iterations"])
    yield _goal("observations per second and core", result["observations_per_s"], PER_S)
    saved = result["mitigated"]
    yield _goal("slowdown removed on production-like faults", saved["long"], REMOVED_LONG)
    yield _goal("slowdown removed on short faults", saved["short"], REMOVED_SHORT)
    worst = saved["worst_fault"]
    yield "worst fault, at most one level's cost", f"{_verdict(worst <= WORST_FAULT)}: {worst}"
    least = min(saved["long"], saved["short"])
    yield "the mean saved, never below zero", f"{_verdict(least >= 0)}: {least}"
    yield _goal("pipeline speed-up at a delay of 6", result["pipeline"]["6"], SPEED_UP_AT_6)
    gap = result["pipeline_gap"]
    name = (
        f"pipeline beside an exact solver, at most {GAP:.0%} longer in each of {gap['cases']} cases"
    )
    yield (
        name,
        f"{_verdict(gap['worst'] <= GAP)}: {gap['worst']:.2%} at worst, {gap['mean']:.2%} in mean",
    )
    real = result["real"]
    if real["bytedance"] is not None:
        named = real["bytedance"]["suspected"]
        is_right = [(one["stage"], one["dp_rank"]) for one in named] == [(0, 0)]
        yield "the slow worker of bytedance_straggler_AR", "met" if is_right else "not met"


def _goal(name: str, value: float, least: float) -> tuple[str, str]:
    return f"{name}, at least {least:,}", f"{_verdict(value >= least)}: {value:,}"


def _most(name: str, value: float | None) -> tuple[str, str]:
    is_met = value is not None and value <= DELAY
    return f"{name}, at most {DELAY}", f"{_verdict(is_met)}: {value}"


def _verdict(is_met: bool) -> str:
    return "met" if is_met else "not met"
