"""Evictions and waits of spot jobs under quotas from a forecast, against first fit without one.

Guaranteed and spot jobs are drawn by the statistics of Alibaba's spot trace, and run on its A100
nodes. `--ablations` also runs each part of the rules alone; `--out DIR` writes a page.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.parts.command import Json, serve
from benchmarks.parts.result import finish
from benchmarks.parts.schedulers.spot import DAYS, measure
from benchmarks.parts.schedulers.spot_page import render_page
from shared.process.progress import ReportLine
from simulator.spot.nodes import NODES, TRACE
from simulator.workload.errors import TraceError


@dataclass(frozen=True, slots=True)
class SpotOptions:
    """`trace`: a list of nodes, shared by name or a file, of which the first `nodes` are used."""

    trace: str = TRACE
    nodes: int = NODES
    seeds: int = 5
    days: int = DAYS
    ablations: bool = False
    out: str = ""


async def run(options: SpotOptions, report_line: ReportLine) -> Json:
    """Return the result of `measure`. Raises ValueError for a wrong option or trace."""
    for name, least in (("seeds", 1), ("nodes", 16), ("days", 3)):
        if getattr(options, name) < least:
            raise ValueError(f"{name}: {getattr(options, name)}, must be at least {least}")
    began_s = time.process_time()
    try:
        result = measure(
            options.seeds,
            report_line,
            options.trace,
            options.ablations,
            options.days,
            options.nodes,
        )
    except TraceError as error:
        raise ValueError(str(error)) from None
    return finish({"bench": "spot", **result}, began_s, options.out, render_page)


if __name__ == "__main__":
    serve(run, SpotOptions, __doc__ or "")
