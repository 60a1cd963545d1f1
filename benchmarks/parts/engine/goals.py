"""Goals of the real engine, and whether the figures of a run meet them."""

from __future__ import annotations

from typing import Any

from benchmarks.parts.goals import met

LEAST_RATIO = 2.1
"""That of the trace of VTC's authors, which `berth bench throttle` has as its goal too."""
LEAST_P10, MOST_P90 = 0.8, 1.25
LEAST_SPEED = 0.95


def goals_of(result: dict[str, Any]) -> dict[str, str]:
    """Return each goal with `met` or `not met`, and its figures."""
    fcfs, berth = result["fcfs"], result["berth"]
    ratio = fcfs["max_gap"] / max(berth["max_gap"], 1)
    speed = berth["tokens_per_s"] / max(fcfs["tokens_per_s"], 1e-9)
    waits = berth["wait_ratio"]
    is_within = waits["p10"] >= LEAST_P10 and waits["p90"] <= MOST_P90
    failed = fcfs["failed"] + berth["failed"]
    return {
        f"FCFS's maximum gap is at least {LEAST_RATIO} times Berth's": (
            f"{met(ratio >= LEAST_RATIO)}: {ratio:.1f}"
        ),
        f"estimated wait by real wait within {LEAST_P10} and {MOST_P90} from p10 to p90": (
            f"{met(is_within)}: {waits['p10']} to {waits['p90']}"
        ),
        f"Berth's tokens per second are at least {LEAST_SPEED} times FCFS's": (
            f"{met(speed >= LEAST_SPEED)}: {speed:.2f}"
        ),
        "no request failed": f"{met(not failed)}: {failed}",
    }
