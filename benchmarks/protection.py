"""The gain of each rule of preemption by rank: all of them, and one left out in turn.

The Gittins rank is replayed on each trace under the costs of real stops, as in `preemption`.
`--trace FILE` replays that trace alone; `--quick` one trace and cost; `--out DIR` writes a page.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import product

from benchmarks.parts.command import Json, serve
from benchmarks.parts.policies.continuous import Replay, replay_of
from benchmarks.parts.policies.costs import StopCosts
from benchmarks.parts.policies.preemption import PreemptionCell, cell_of, choose_base, mean_wait_s
from benchmarks.parts.policies.protection_page import render_page
from benchmarks.parts.policies.replays import LOAD
from benchmarks.parts.policies.rule_sets import LEFT_OUT, rule_sets, summary_of
from benchmarks.parts.policies.rules import FAMILY, SKIP_FCFS
from benchmarks.parts.result import finish
from benchmarks.preemption import PreemptionOptions, traces
from shared.process.progress import ReportLine

STOPS = ((600.0, 60.0), (1800.0, 60.0), (600.0, 600.0), (3600.0, 600.0))
SHARES = (0.0, 0.5)
IDLE = "helios_vc_users"
"""On this trace hardly any job waits, whoever orders the queue."""


@dataclass(frozen=True, slots=True)
class ProtectionOptions:
    """The fields are the flags of the benchmark, with their defaults."""

    trace: str = ""
    quick: bool = False
    out: str = ""


async def run(options: ProtectionOptions, report_line: ReportLine) -> Json:
    """Return `rules`, the figures of each set of rules, and their `cells`."""
    began_s = time.process_time()
    cells: list[PreemptionCell] = []
    for name, clusters in traces(PreemptionOptions(options.trace, options.quick)):
        if name != IDLE:
            report_line(name)
            cells += cells_of([replay_of(name, LOAD, cluster) for cluster in clusters], options)
    by_set = {name: [cell for cell in cells if cell.policy == name] for name in LEFT_OUT}
    result: Json = {
        "bench": "protection",
        "rules": {name: summary_of(own) for name, own in by_set.items()},
        "cells": [cell.plain() for cell in cells],
    }
    return finish(result, began_s, options.out, render_page)


def cells_of(replays: list[Replay], options: ProtectionOptions) -> list[PreemptionCell]:
    """Return a cell per set of rules and cost of stops; the base is chosen once."""
    base = choose_base(replays, FAMILY)
    base_s, fcfs_s = (
        mean_wait_s([replay.run(named.rules) for replay in replays]) for named in (base, SKIP_FCFS)
    )
    stops, shares = (STOPS[:1], SHARES[:1]) if options.quick else (STOPS, SHARES)
    return [
        cell_of(replays, named, (base.name, base_s), fcfs_s, StopCosts(every_s, restart_s, share))
        for share, (every_s, restart_s), named in product(shares, stops, rule_sets())
    ]


if __name__ == "__main__":
    serve(run, ProtectionOptions, __doc__ or "")
