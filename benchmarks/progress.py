"""Jobs that report their iterations, against the same jobs without reports, by the live rules.

Parts of each trace are replayed by the cores of the services on a virtual clock, in a pool where
reports enter ranks and prices of stops (`gittins`, with preemption by rank) and in one where they
enter the reservation of EASY. Each report is wrong by up to a tenth, drawn by `--seeds` seeds.
`met` or `not met` per goal; `--out DIR` writes a page.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.parts.command import Json, serve
from benchmarks.parts.progress.cells import ProgressCell, compare
from benchmarks.parts.progress.page import render_page
from benchmarks.parts.progress.replays import SETTINGS, parts_of
from benchmarks.parts.result import finish
from benchmarks.parts.traces import chosen_traces
from shared.process.progress import ReportLine

SHARED = ("helios_venus", "philly", "msft_itp", "alibaba_pai_2020")
SYNTHETIC = ("synthetic:helios",)


@dataclass(frozen=True, slots=True)
class ProgressOptions:
    """`trace` is a path or a name; without one every shared trace, or a synthetic one."""

    trace: str = ""
    jobs: int = 2_000
    parts: int = 3
    seeds: int = 2
    out: str = ""


async def run(options: ProgressOptions, report_line: ReportLine) -> Json:
    """Return `cells` with gains and their intervals, and the goals.

    Raises ValueError where an option leaves nothing to compare.
    """
    for name in ("jobs", "parts", "seeds"):
        if getattr(options, name) < 1:
            raise ValueError(f"{name}: {getattr(options, name)}, must be at least 1")
    began_s = time.process_time()
    cells: list[ProgressCell] = []
    for trace in chosen_traces(options.trace, SHARED, SYNTHETIC):
        parts = list(parts_of(trace, options.jobs, options.parts))
        for setting in SETTINGS:
            report_line(f"{trace}, {setting}: {sum(len(part.jobs) for part in parts):,} jobs")
            cells.append(compare(trace, setting, parts, options.seeds))
            report_line(f"  {cells[-1].gain:+.1%} [{cells[-1].low:+.1%}..{cells[-1].high:+.1%}]")
    verdicts = [verdict for cell in cells for verdict in cell.goals.values()]
    result: Json = {
        "bench": "progress",
        "jobs": options.jobs,
        "seeds": options.seeds,
        "cells": [cell.plain() for cell in cells],
        "goals_met": verdicts.count("met"),
        "goals_not_met": verdicts.count("not met"),
    }
    return finish(result, began_s, options.out, render_page)


if __name__ == "__main__":
    serve(run, ProgressOptions, __doc__ or "")
