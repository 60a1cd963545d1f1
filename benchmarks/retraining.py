"""Retraining beside serving: waits, deadlines, gaps and ages of adapters under each policy.

Loads and drifts are seeded; MACE aims at several times per token, and periodic retraining has
several periods. `--quick` is a part of it; `--out DIR` writes a page.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from benchmarks.parts.command import Json, serve
from benchmarks.parts.result import finish
from benchmarks.parts.retraining.goals import goals_of
from benchmarks.parts.retraining.page import render_page
from services.throttle.core.retraining import RetrainingLimits
from shared.process.progress import ReportLine
from simulator.llm.retraining_study import RetrainingStudy
from simulator.llm.traces import servegen_requests

LOADS_PER_S = (0.3, 0.5, 0.75)
DRIFTS = (0.0025, 0.01)
TARGETS_S = (0.06, 0.08, 0.1, 0.15)
PERIODS_S = (15, 30, 60, 120)
TENANTS, SPAN_S = 12, 600.0


@dataclass(frozen=True, slots=True)
class RetrainingOptions:
    """The fields are the flags of the benchmark, with their defaults."""

    seeds: int = 4
    quick: bool = False
    out: str = ""


async def run(options: RetrainingOptions, report_line: ReportLine) -> Json:
    """Return the measures by cell and policy, and the goals. Raises ValueError for bad options."""
    if options.seeds < 1:
        raise ValueError(f"seeds: {options.seeds}; 1 or more are allowed")
    began_s = time.process_time()
    seeds, span_s = (1, 60.0) if options.quick else (options.seeds, SPAN_S)
    cells: dict[str, Any] = {}
    for per_s in LOADS_PER_S[1:2] if options.quick else LOADS_PER_S:
        for growth in DRIFTS[:1] if options.quick else DRIFTS:
            name = f"{per_s} requests per s, gaps grow by {growth} per s"
            report_line(name)
            cells[name] = cell(per_s, growth, seeds, span_s)
    result: Json = {
        "bench": "retraining",
        "seeds": seeds,
        "cells": cells,
        "goals": goals_of(cells, RetrainingLimits().freshness_s),
    }
    return finish(result, began_s, options.out, render_page)


def runs(study: RetrainingStudy) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the measures of each policy and setting."""
    yield "serve_only", asdict(study.run("serve_only"))
    for period_s in PERIODS_S:
        yield f"periodic {period_s}", asdict(study.run("periodic", period_s))
    yield "continuous", asdict(study.run("continuous"))
    for tpot_s in TARGETS_S:
        aiming = RetrainingStudy(
            study.requests,
            RetrainingLimits(tpot_s=tpot_s),
            growth_per_s=study.growth_per_s,
            seed=study.seed,
        )
        yield f"mace {tpot_s}", asdict(aiming.run("mace"))


def cell(per_s: float, growth: float, seeds: int, span_s: float) -> dict[str, dict[str, float]]:
    """Return the means over seeds by policy."""
    by_policy: dict[str, list[dict[str, float]]] = {}
    for seed in range(seeds):
        requests = servegen_requests(seed, TENANTS, span_s, per_s)
        for policy, row in runs(RetrainingStudy(requests, growth_per_s=growth, seed=seed)):
            by_policy.setdefault(policy, []).append(row)
    return {
        policy: {name: round(fmean(row[name] for row in rows), 4) for name in rows[0]}
        for policy, rows in by_policy.items()
    }


if __name__ == "__main__":
    serve(run, RetrainingOptions, __doc__ or "")
