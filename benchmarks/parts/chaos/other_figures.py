"""Measurements of other benchmarks, whose results lie in the same folder as those of chaos."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.parts.chaos import service_figures
from benchmarks.parts.chaos.figures import Figures, Measurement, shortfall, together
from benchmarks.parts.chaos.slices import LAST, MOST_MIB_PER_H, growth_mib_per_h

FILES = {"soak": "soak.json", "flood": "flood.json"}
SOAK_PER_S = 20.0
MOST_DELAY_S = 5.0


def read_others(folder: Path) -> dict[str, Any]:
    """Return the results of the other benchmarks that are there, by name."""
    paths = {name: folder / file for name, file in FILES.items()}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def soak(result: Figures, fuzz: Figures) -> Measurement | None:
    """Judge the slices of `make soak`; without any, the soak in one piece of a chaos run."""
    slices = result.get("others", {}).get("soak", {}).get("slices")
    if not slices:
        return service_figures.soak(result, fuzz)
    growth = growth_mib_per_h(slices)
    worst = max(growth, key=growth.__getitem__, default="")
    minutes = sum(one["at_s"][-1] for one in slices) / 60
    errors = sum(one["lines_of_errors"] for one in slices)
    right = sum(one["verify"] == "ok" and one["all_ended"] for one in slices)
    grown = growth.get(worst, float("inf"))
    return Measurement(
        f"{len(slices)} slices, {minutes:.0f} min: growth over the last {min(len(slices), LAST)} "
        f"at most {grown:g} MiB/h, of {worst}; error lines: {errors}; all jobs ended and verify ok "
        f"after {right} slices",
        grown < MOST_MIB_PER_H and errors == 0 and right == len(slices),
        together(
            shortfall(minutes, service_figures.SOAK_MINUTES, "min"),
            shortfall(min(one["per_s"] for one in slices), SOAK_PER_S, "jobs/s"),
            shortfall(len(slices), LAST, "slices, over which growth is measured"),
        ),
        "`make soak`",
    )


def tenants_flood(result: Figures, _: Figures) -> Measurement | None:
    """Judge `berth bench flood`: the malformed records lie in the topic of their tenant."""
    figures = result.get("others", {}).get("flood")
    if not figures:
        return None
    delay_s = max(figures["while_published_s"]["max"], figures["behind_s"]["max"])
    placed, jobs, sent = figures["placed"], figures["good_jobs"], figures["malformed"]
    return Measurement(
        f"{sent} published, {figures['dead_letters']} read meanwhile; jobs of another tenant "
        f"waited at most {delay_s} s, {placed} of {jobs} placed; verify **{figures['verify']}**",
        delay_s < MOST_DELAY_S and placed == jobs and figures["verify"] == "ok",
        shortfall(sent, service_figures.MALFORMED, "records"),
        "`berth bench flood`",
    )
