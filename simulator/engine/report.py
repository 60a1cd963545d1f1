"""A simulation as one JSON object."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from simulator.engine.options import SimulationOptions
from simulator.engine.run import Simulation
from simulator.engine.sizing import Sizing
from simulator.metrics.measures import Measures, measure

Json = dict[str, Any]

ORACLE_ORDERS = frozenset({"srtf", "srsf"})
NEEDS_RUNTIME = frozenset({"sjf", "saf", "f1", "wfp3", "unicep", "qssf", "gittins"}) | ORACLE_ORDERS
"""Base policies with a run time in their formula."""


def report(simulation: Simulation, sizing: Sizing, options: SimulationOptions) -> Json:
    """Return the report, times in cluster seconds; NaN is null."""
    measures = measure(simulation.outcome)
    jobs = len(simulation.outcome)
    return {
        "policy": options.base_policy,
        "runtime_source": runtime_source_of(options),
        "mode": options.queue_mode,
        "preemption": options.preemption,
        "learned": options.learned,
        "solver": options.solver,
        "jobs": jobs,
        "nodes": sizing.nodes,
        "gpus_per_node": sizing.gpus_per_node,
        "load": round(sizing.load, 4),
        "window_s": list(sizing.window_s),
        "time_scale": options.time_scale,
        **to_json(measures),
        "rejected": simulation.rejected,
        "node_failures": len(simulation.scenario.failures),
        "cpu_s": round(simulation.cpu_s, 3),
        "jobs_per_cpu_s": round(jobs / simulation.cpu_s, 1),
        "records": simulation.records,
    }


def runtime_source_of(options: SimulationOptions) -> str:
    """Return `oracle` wherever a true run time could decide; else `history`, `user` or `blind`."""
    uses_runtime = options.base_policy in NEEDS_RUNTIME or options.learned is not None
    is_easy = options.queue_mode == "easy"
    uses_true_walltime = is_easy and options.walltime == "oracle"
    if uses_true_walltime or (uses_runtime and options.runtime == "oracle"):
        return "oracle"
    if uses_runtime:
        return options.runtime
    return options.easy_runtime if is_easy else "blind"


def to_json(measures: Measures) -> Json:
    """Return the measures as JSON objects; NaN is null."""
    return {name: _plain(value) for name, value in asdict(measures).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value
