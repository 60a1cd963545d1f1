"""Goals of the placement of adapters, and whether the figures of a run meet them."""

from __future__ import annotations

from typing import Any

from benchmarks.parts.adapters.baselines import BASELINES
from benchmarks.parts.goals import met
from simulator.llm.adapters.throughput import ERROR_BOUNDS

MOST_TWIN_ERROR = 0.05
MOST_OVERLOADED_ERROR = 0.10
MOST_ESTIMATE_ERROR = 0.10
MOST_PLAN_S = 10.0


def goals_of(result: dict[str, Any]) -> dict[str, str]:
    """Return each goal with `met` or `not met` and its figures."""
    return {**count_goals(result["scenarios"]), **error_goals(result)}


def count_goals(rows: list[dict[str, Any]]) -> dict[str, str]:
    totals = {
        name: sum(row[name] for row in rows) for name in ("planned", "lower_bound", *BASELINES)
    }
    confirmed = sum(row["confirmed"] for row in rows)
    more = [row for row in rows if any(row["planned"] > row[name] for name in BASELINES)]
    slowest = max(row["plan_s"] for row in rows)
    others = ", ".join(f"{name.replace('_', ' ')} {totals[name]}" for name in BASELINES)
    return {
        "no other placement needs fewer engines in any scenario": (
            f"{met(not more)}: {len(more)} scenarios; engines in all: {totals['planned']}, {others}"
        ),
        "engines above the lower bound are at most 20 %": (
            f"{met(totals['planned'] <= 1.2 * totals['lower_bound'])}:"
            f" {totals['planned']} to {totals['lower_bound']}"
        ),
        "the twin confirms every plan at the rates with headroom": (
            f"{met(confirmed == len(rows))}: {confirmed} of {len(rows)}"
        ),
        f"a plan takes at most {MOST_PLAN_S:.0f} CPU seconds without the check": (
            f"{met(slowest <= MOST_PLAN_S)}: {slowest:.1f} at most"
        ),
    }


def error_goals(result: dict[str, Any]) -> dict[str, str]:
    twin, memory, ratios = result["twin"], result["memory_rule"], result["capacity_ratios"]
    low, high = (1 + bound for bound in ERROR_BOUNDS)
    return {
        "real runs started where the rule of memory says so": (
            f"{met(memory['agreed'] == memory['runs'])}: {memory['agreed']} of {memory['runs']}"
        ),
        f"the twin's tokens per s differ by {MOST_TWIN_ERROR:.0%} from served real runs": (
            f"{met(twin['served_smape'] <= MOST_TWIN_ERROR)}: {twin['served_smape']:.1%} SMAPE"
            f" of {twin['served_runs']} runs"
        ),
        f"and by {MOST_OVERLOADED_ERROR:.0%} from overloaded ones": (
            f"{met(twin['overloaded_smape'] <= MOST_OVERLOADED_ERROR)}:"
            f" {twin['overloaded_smape']:.1%} SMAPE of {twin['overloaded_runs']} runs"
        ),
        "what the twin serves is within the bounds that the estimate states": (
            f"{met(low <= ratios[0] and ratios[-1] <= high)}: {ratios[0]} to {ratios[-1]} times"
            f" the capacity, allowed {low} to {high}"
        ),
        f"the estimate's error against the twin is at most {MOST_ESTIMATE_ERROR:.0%}": (
            f"{met(result['estimate_smape'] <= MOST_ESTIMATE_ERROR)}:"
            f" {result['estimate_smape']:.1%} SMAPE of {len(ratios)} capacities"
        ),
    }
