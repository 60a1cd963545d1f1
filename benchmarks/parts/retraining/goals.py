"""Goals of retraining beside serving, and whether the figures of a run meet them."""

from __future__ import annotations

from typing import Any

from benchmarks.parts.goals import met

Row = dict[str, Any]
TARGET = "mace 0.1"


def goals_of(cells: dict[str, dict[str, Row]], freshness_s: float) -> dict[str, str]:
    """Return each goal with `met` or `not met` and its figures."""
    pairs = [
        (any(dominates(row, periodic) for row in maces(rows)), f"{name}: {policy}")
        for name, rows in cells.items()
        for policy, periodic in rows.items()
        if policy.startswith("periodic")
    ]
    open_ = [name for is_dominated, name in pairs if not is_dominated]
    behind = max(
        rows["serve_only"]["attainment"] - rows[TARGET]["attainment"] for rows in cells.values()
    )
    oldest_s = max(rows[TARGET]["worst_stale_s"] for rows in cells.values())
    busy = min(rows[TARGET]["busy_ratio"] for rows in cells.values())
    lower = [
        1 - rows[TARGET]["tpot_p99_s"] / rows["continuous"]["tpot_p99_s"] for rows in cells.values()
    ]
    return {
        "for each period a point of MACE has no longer p99 TTFT and no larger gap": (
            f"{met(not open_)}: {len(pairs) - len(open_)} of {len(pairs)}"
            + (f"; not {', '.join(open_)}" if open_ else "")
        ),
        "MACE meets as many deadlines as serving alone, less 1 % at most": (
            f"{met(behind <= 0.01)}: {behind:.1%} fewer at most"
        ),
        f"MACE updates every user within {freshness_s:.0f} s, and 10 % more": (
            f"{met(oldest_s <= 1.1 * freshness_s)}: {oldest_s:.1f} s at most"
        ),
        "the GPU works at least 85 % of the time": f"{met(busy >= 0.85)}: {busy:.1%} at least",
        "p99 TPOT is lower than that of continuous retraining": (
            f"{met(min(lower) > 0)}: by {min(lower):.0%} to {max(lower):.0%}"
        ),
    }


def maces(rows: dict[str, Row]) -> list[Row]:
    return [row for policy, row in rows.items() if policy.startswith("mace")]


def dominates(row: Row, other: Row) -> bool:
    return bool(row["ttft_p99_s"] <= other["ttft_p99_s"] and row["mean_gap"] <= other["mean_gap"])
