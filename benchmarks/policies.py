"""Gains of Berth's policies over the schedulers that clusters run today, on real traces.

Continuous replay (60 % warm-up, the rest counts; loads 0.7, 0.9, 0.95, 1.1) and RLTune's batches.
A policy that is called deployable uses no oracle and no data of the evaluated part of a trace.
`--out DIR` writes JSON, tables and plots. `--trace FILE` replays that trace alone; `--quick` ends
within 50 s. `--checkpoint-s`, `--restart-s` and `--fixed-share` set what stopping a job costs.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.parts.command import Json, serve
from benchmarks.parts.policies.batches import batch_cells
from benchmarks.parts.policies.cells import GAIN
from benchmarks.parts.policies.goals import goals_of
from benchmarks.parts.policies.options import PoliciesOptions
from benchmarks.parts.policies.page import write_files
from benchmarks.parts.policies.replays import LOAD, evaluate, settings
from benchmarks.parts.policies.rules import committed
from benchmarks.parts.policies.summary import best, continuous_cells, describe
from shared.process.progress import ReportLine


async def run(options: PoliciesOptions, report_line: ReportLine) -> Json:
    """Return `best_deployable`, `replays` and `cells`."""
    began = time.process_time()
    network = committed(family=options.model)
    traces = [evaluate(*setting, network, options, report_line) for setting in settings(options)]
    cells = [cell for trace in traces for cell in continuous_cells(trace)]
    if not options.trace:
        cells += batch_cells(options, report_line)
    first = next(trace for trace in traces if trace.load == LOAD)
    replays = [describe(trace) for trace in traces]
    result: Json = {
        "best_deployable": best(first),
        "replays": replays,
        "costs": asdict(options.costs),
        "gain": GAIN,
        "goals": goals_of(replays, cells),
        "cells": [cell.plain() for cell in cells],
        "cpu_s": round(time.process_time() - began, 1),
    }
    if options.out:
        write_files(Path(options.out), result)
    return result


if __name__ == "__main__":
    serve(run, PoliciesOptions, __doc__ or "")
