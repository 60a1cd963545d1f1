"""Goals of a year of operation, and whether the figures of a run meet them."""

from __future__ import annotations

from typing import Any

from benchmarks.parts.goals import met

MOST_GB_PER_DAY = 1.0
MOST_START_S = 10.0
MOST_RSS_MIB = 300.0


def goals_of(result: dict[str, Any]) -> dict[str, str]:
    """Return each goal with `met` or `not met` and its figures."""
    largest = max(result["rss_mib"], key=result["rss_mib"].__getitem__)
    figures = {
        f"all topics grow by at most {MOST_GB_PER_DAY:g} GB a day": (
            result["gb_per_day"],
            MOST_GB_PER_DAY,
            "GB",
        ),
        f"a decider starts from its checkpoint in {MOST_START_S:g} s": (
            result["start_s_checkpoint"],
            MOST_START_S,
            "s",
        ),
        f"no decider uses more than {MOST_RSS_MIB:g} MiB": (
            result["rss_mib"][largest],
            MOST_RSS_MIB,
            f"MiB, {largest}",
        ),
    }
    return {
        goal: f"{met(figure <= most)}: {figure:g} {unit}"
        for goal, (figure, most, unit) in figures.items()
    }
