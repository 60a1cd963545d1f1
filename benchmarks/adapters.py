"""Placement of LoRA adapters: engines needed, plans that the twin confirms, errors of both models.

Seeded scenarios of rates, ranks and 16 to 384 adapters, and clients of real services, are planned
with 20 % headroom and compared with other placements. The twin is compared with real runs of vLLM,
and the estimate with the twin. `--quick` is a part of it; `--out DIR` writes a page.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from benchmarks.parts.adapters.accuracy import (
    capacity_ratio,
    measured_rows,
    memory_agreement,
    smape,
    twin_errors,
)
from benchmarks.parts.adapters.baselines import BASELINES, engines_needed
from benchmarks.parts.adapters.goals import goals_of
from benchmarks.parts.adapters.page import render_page
from benchmarks.parts.adapters.scenarios import AdapterScenario, grid, servegen
from benchmarks.parts.command import Json, serve
from benchmarks.parts.result import finish
from shared.process.progress import ReportLine
from simulator.llm.adapters.loads import AdapterLoad
from simulator.llm.adapters.placement import Planner
from simulator.llm.adapters.plan import Packer, lower_bound
from simulator.workload.locate import traces_folder

HEADROOM = 0.2


@dataclass(frozen=True, slots=True)
class AdapterOptions:
    """The fields are the flags of the benchmark, with their defaults."""

    seeds: int = 3
    quick: bool = False
    out: str = ""


async def run(options: AdapterOptions, report_line: ReportLine) -> Json:
    """Return a row per scenario, the errors, and the goals. Raises ValueError for bad options."""
    if options.seeds < 1:
        raise ValueError(f"seeds: {options.seeds}; 1 or more are allowed")
    began_s = time.process_time()
    scenarios = [*grid(1 if options.quick else options.seeds), *servegen(traces_folder())]
    if options.quick:
        scenarios = scenarios[:3]
    rows: list[dict[str, Any]] = []
    for scenario in scenarios:
        report_line(scenario.name)
        rows.append(scenario_row(scenario))
    measured = measured_rows()
    agreed, runs = memory_agreement(measured)
    report_line("the twin and real runs")
    twin = twin_errors(measured[:3] if options.quick else measured)
    ratios = []
    for scenario in scenarios[:: 3 if options.quick else 2]:
        report_line(f"the estimate and the twin: {scenario.name}")
        ratios.append(round(capacity_ratio(scenario.engine, part_of(scenario)), 3))
    result: Json = {
        "bench": "adapters",
        "headroom": HEADROOM,
        "scenarios": rows,
        "memory_rule": {"agreed": agreed, "runs": runs},
        "twin": twin,
        "capacity_ratios": sorted(ratios),
        "estimate_smape": round(smape([(ratio, 1.0) for ratio in ratios]), 4),
    }
    result["goals"] = goals_of(result)
    return finish(result, began_s, options.out, render_page)


def part_of(scenario: AdapterScenario) -> list[AdapterLoad]:
    """Return at most 64 adapters: one engine's, whose rates are then scaled to its capacity."""
    return list(scenario.loads[:64])


def scenario_row(scenario: AdapterScenario) -> dict[str, Any]:
    packer = Packer(scenario.engine)
    scaled = [load.scaled(1 + HEADROOM) for load in scenario.loads]
    began_s = time.process_time()
    packer.pack(scaled)
    plan_s = time.process_time() - began_s
    placement = Planner(scenario.engine, HEADROOM).place(scenario.loads)
    bound = lower_bound(scenario.engine, scaled)
    return {
        "scenario": scenario.name,
        "engine": scenario.engine.name,
        "rate_per_s": round(scenario.rate_per_s, 2),
        "planned": len(placement.engines),
        **{name: engines_needed(packer, name, scaled, bound) for name in BASELINES},
        "lower_bound": bound,
        "confirmed": placement.confirmed,
        "plan_s": round(plan_s, 3),
        "checked_s": round(time.process_time() - began_s, 2),
    }


if __name__ == "__main__":
    serve(run, AdapterOptions, __doc__ or "")
