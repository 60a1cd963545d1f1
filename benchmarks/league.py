"""A league of policies: each that traces have data for, on the same days.

Policies of the queue are those of live pools, by the kernel; schedulers of the field run in rounds.
All have the same jobs, nodes, checkpoints and restarts. `--trace NAME` runs one trace, or several
with commas between; with `--out DIR` the other traces of `DIR/league.json` are kept if they were
run with the same flags, so a page can be made trace by trace. `--quick` runs a few policies.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.parts.command import Json, serve
from benchmarks.parts.league.days import COSTS, LeagueDays, traces_here
from benchmarks.parts.league.entrants import OURS, entrants, left_out
from benchmarks.parts.league.page import render_page
from benchmarks.parts.league.rounds import ROUND_S, SEED
from benchmarks.parts.league.standings import of_trace
from benchmarks.parts.policies.replays import LOAD
from benchmarks.parts.result import write_result
from shared.process.progress import ReportLine
from simulator.workload.errors import TraceError


@dataclass(frozen=True, slots=True)
class LeagueOptions:
    """The fields are the flags of the benchmark, with their defaults."""

    trace: str = ""
    parts: int = 2
    days: float = 5.0
    quick: bool = False
    slow: bool = False
    out: str = ""


async def run(options: LeagueOptions, report_line: ReportLine) -> Json:
    """Return `setting`, `ours`, `traces`: name -> `parts`, `rows`, `winner`, `equals`, `cpu_s`, and
    `left_out`. Raises ValueError for a wrong option or trace.
    """
    for name in ("parts", "days"):
        if getattr(options, name) <= 0:
            raise ValueError(f"{name}: {getattr(options, name)}, must be above 0")
    began_s = time.process_time()
    result: dict[str, Any] = {
        "bench": "league",
        "setting": setting(options),
        "ours": OURS,
        "traces": {},
        "left_out": left_out(options.slow),
    }
    if options.out:
        result["traces"] = kept_traces(Path(options.out) / "league.json", result)
    chosen = entrants(options.quick, options.slow)
    for trace in options.trace.split(",") if options.trace else traces_here():
        of_this_s = time.process_time()
        try:
            own = of_trace(trace, LeagueDays(options.parts, options.days), chosen, report_line)
        except TraceError as error:
            raise ValueError(str(error)) from None
        own["cpu_s"] = round(time.process_time() - of_this_s, 1)
        result["traces"][trace] = own
        if options.out:
            write_result(Path(options.out), "league", result, render_page(result))
    return {**result, "cpu_s": round(time.process_time() - began_s, 1)}


def setting(options: LeagueOptions) -> dict[str, Any]:
    """Return what the figures of all traces depend on."""
    return {
        "parts": options.parts,
        "days": options.days,
        "load": LOAD,
        "checkpoint_s": COSTS.checkpoint_s,
        "restart_s": COSTS.restart_s,
        "round_s": ROUND_S,
        "seed": SEED,
        "policies": [own.name for own in entrants(options.quick, options.slow)],
    }


def kept_traces(path: Path, result: dict[str, Any]) -> dict[str, Any]:
    """Return the traces of an earlier result in the same setting; none if there is no such one."""
    if not path.is_file():
        return {}
    earlier = json.loads(path.read_text())
    traces: dict[str, Any] = earlier["traces"] if earlier["setting"] == result["setting"] else {}
    return traces


if __name__ == "__main__":
    serve(run, LeagueOptions, __doc__ or "")
