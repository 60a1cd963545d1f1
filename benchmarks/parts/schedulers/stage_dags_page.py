"""The section on jobs of stages of the page of schedulers, from the JSON alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.parts.markdown import table
from benchmarks.parts.schedulers.over_seeds import range_of

HEAD = """
## Jobs of stages

Decima's world ([how](../schedulers.md#jobs-of-stages)), on synthetic jobs: of each sequence
{jobs} jobs of 2 to 8 dependent stages, with a load of {load} on {executors} executors. A move takes
{move:g} s, and a task at its end {warm_up:g} s more. Seeds {seeds}, each a sequence that neither
tuning nor training has seen; intervals are 95 % of the mean over seeds by bootstrap. Moves are
those of executors, per job. The weighted fair heuristic was tuned on other sequences: alpha
{alpha:g}, executors beyond shares are {rest}. Generations that the
network was trained by the evolution strategy: {generations}; its weights are those {kept}.
The published figures are of TPC-H queries, whose measured durations are not here.

"""
NAMES = {
    "fifo": "FIFO",
    "critical_path": "critical path",
    "sjf_cp": "SJF-CP",
    "fair": "fair",
    "naive_weighted_fair": "weighted fair, naive",
    "weighted_fair": "weighted fair, tuned",
    "network": "network",
}


def stage_dags_section(own: dict[str, Any]) -> Iterator[str]:
    yield HEAD.format(
        **{name: own[name] for name in ("jobs", "load", "executors", "alpha")},
        generations=own["generations"],
        kept=f"of generation {own['kept']}" if own["kept"] else "before the first one",
        move=own["move_s"],
        warm_up=own["warm_up_s"],
        seeds=range_of(own["seeds"]),
        rest="used" if own["conserves"] else "idle",
    )
    rows = [
        (
            NAMES[name],
            f"{row['jct_s']['mean']:.1f} ({row['jct_s']['low']:.1f} to {row['jct_s']['high']:.1f})",
            f"{row['moves']:.1f}",
        )
        for name, row in own["rows"].items()
    ]
    yield table(("policy", "mean JCT, s", "moves"), rows)
    mean, low, high = (0.0 - own["gain"][key] for key in ("mean", "low", "high"))
    yield f"\nThe network against the tuned heuristic: {mean:+.1%} ({high:+.1%} to {low:+.1%})."
    if own["ships"] == "network":
        yield " It is the policy to take.\n"
    else:
        yield " That is no gain beyond chance: the heuristic is the policy to take.\n"
