"""Conformance, start latency, throughput and kills of the executor, by engine that runs the jobs.

An engine that is not on the machine is left out with the reason. `--out DIR` writes a page.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from benchmarks.parts.command import Json, serve
from benchmarks.parts.engines.conformance import conformance_of
from benchmarks.parts.engines.gang_load import WORKERS
from benchmarks.parts.engines.measure import KILLED_GANG_S, measure
from benchmarks.parts.engines.options import ENGINES, EnginesOptions, check_options
from benchmarks.parts.engines.page import goals_of, render_page
from benchmarks.parts.engines.sites import END_S, POLL_S, missing
from benchmarks.parts.result import finish
from shared.process.progress import ReportLine

NAME = "engines"


async def run(options: EnginesOptions, report_line: ReportLine) -> Json:
    """Return the figures of each engine. Raises ValueError for wrong options."""
    check_options(options)
    began_s = time.process_time()
    engines = earlier(options) if options.only else {}
    for engine in (options.only,) if options.only else ENGINES:
        engines[engine] = await figures_of(engine, options, report_line)
    result: Json = {"bench": NAME, "engines": engines, "settings": settings_of(options)}
    result["goals"] = goals_of(engines)
    return finish(result, began_s, options.out, render_page)


async def figures_of(engine: str, options: EnginesOptions, report_line: ReportLine) -> Json:
    """Measure an engine, and run the suite for it; only say why where it is not here."""
    if reason := missing(engine):
        return {"left_out": reason}
    report_line(f"{engine}: the conformance suite")
    conformance = await conformance_of(engine)
    load = {"load_1m": round(os.getloadavg()[0], 1)}
    return {"conformance": conformance, **load, **await measure(engine, options, report_line)}


def earlier(options: EnginesOptions) -> dict[str, Any]:
    """Return the figures of the engines in an earlier run, none without one.

    Raises ValueError where that run had other settings: a page has one row of them.
    """
    path = Path(options.out) / f"{NAME}.json"
    if not options.out or not path.exists():
        return {}
    result = json.loads(path.read_text())
    if result["settings"] != settings_of(options):
        raise ValueError(f"out: {path} is of a run with other settings: {result['settings']}")
    return dict(result["engines"])


def settings_of(options: EnginesOptions) -> dict[str, object]:
    return {
        "cores": os.cpu_count() or 0,
        "starts": options.starts,
        "gangs": options.gangs,
        "kills": options.kills,
        "seed": options.seed,
        "workers": WORKERS,
        "poll_s": POLL_S,
        "killed_gang_s": KILLED_GANG_S,
        "end_s": END_S,
    }


if __name__ == "__main__":
    serve(run, EnginesOptions, __doc__ or "")
