"""The slices of a soak: figures of each, and what they say together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parts.goals import met

SETTLED = 0.5
"""First share of the time, in which caches fill; growth is measured over the rest."""
THIRD_PARTY = frozenset({"broker", "postgres"})
"""Processes whose caches have their own bounds."""
FILE, BEGUN = "slices.json", "begun"
LAST = 3
"""Growth is measured over so many slices."""
MOST_MIB_PER_H = 1.0
MOST_START_S = 60.0
MOST_START_GROWTH_S = 5.0


def read_slices(folder: Path) -> list[dict[str, Any]]:
    """Return the slices so far; none in a new folder."""
    path = folder / FILE
    slices: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    return slices


def write_slices(folder: Path, slices: list[dict[str, Any]]) -> None:
    (folder / FILE).write_text(json.dumps(slices) + "\n")


def begin_slice(folder: Path) -> int:
    """Note that a slice begins, and return how many have begun, it included.

    One that is cut short has no figures, and its number is not used again: what it has submitted is
    in the ledgers.
    """
    path = folder / BEGUN
    number = int(path.read_text()) + 1 if path.exists() else 1
    path.write_text(f"{number}\n")
    return number


def growth_mib_per_h(slices: list[dict[str, Any]]) -> dict[str, float]:
    """Return the slope of each service's memory over the settled parts of the last slices.

    Hours are those in which the stack ran; the first half of each slice fills caches anew.
    """
    points: dict[str, list[tuple[float, float]]] = {}
    begin_h = 0.0
    for one in slices[-LAST:]:
        at_s, length_s = one["at_s"], one["at_s"][-1]
        for name, values in one["mib"].items():
            settled = [
                (begin_h + at / 3600, mib)
                for at, mib in zip(at_s, values, strict=True)
                if at >= SETTLED * length_s
            ]
            points.setdefault(name, []).extend(settled)
        begin_h += length_s / 3600
    return {
        name: round(float(np.polyfit([at for at, _ in of], [mib for _, mib in of], 1)[0]), 2)
        for name, of in points.items()
        if name not in THIRD_PARTY and len({at for at, _ in of}) > 1
    }


def goals_of(slices: list[dict[str, Any]]) -> dict[str, str]:
    """Return each goal with `met` or `not met` and its figures."""
    growth = growth_mib_per_h(slices)
    worst = max(growth, key=growth.__getitem__, default="")
    errors = sum(one["lines_of_errors"] for one in slices)
    llm_failures = sum(one["llm_failures"] for one in slices)
    failed = [n for n, one in enumerate(slices, 1) if one["verify"] != "ok" or not one["all_ended"]]
    starts_s = [one["start_s"] for one in slices]
    start_s, grown_s = max(starts_s), starts_s[-1] - min(starts_s[1:], default=starts_s[0])
    is_flat = bool(growth) and growth[worst] < MOST_MIB_PER_H and len(slices) >= LAST
    return {
        f"each service grows by less than {MOST_MIB_PER_H:g} MiB/h over {LAST} slices": (
            f"{met(is_flat)}: {growth.get(worst, float('nan')):g} MiB/h, {worst}, "
            f"{min(len(slices), LAST)} slices"
        ),
        "no error in a log": f"{met(errors == 0)}: {errors} lines",
        "every LLM request is answered or refused for its tenant's limit": (
            f"{met(llm_failures == 0)}: {llm_failures} failures"
        ),
        "every job ends, and verify is right after each slice": (
            f"{met(not failed)}: {len(slices) - len(failed)} of {len(slices)} slices"
        ),
        f"the stack starts in {MOST_START_S:g} s": f"{met(start_s < MOST_START_S)}: {start_s:g} s",
        f"starts over data grow by less than {MOST_START_GROWTH_S:g} s over {LAST} slices": (
            f"{met(grown_s < MOST_START_GROWTH_S and len(slices) >= LAST)}: {grown_s:.1f} s, "
            f"{len(slices)} slices"
        ),
    }
