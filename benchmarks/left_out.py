"""Networks on traces that were left out of their training, against the Gittins rank.

The networks are those of `python -m training.left_out`: trained by an evolution strategy, and by
PPO as a control, on all traces but those of one cluster. They are replayed on that one with
half-hourly checkpoints and no, half or nine tenths of the jobs never stopped. On batches in
RLTune's protocol those that never saw Helios are compared with RLTune itself, which was trained on
it.
`--quick` replays one trace at one share; `--out DIR` writes a page.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.parts.command import Json, serve
from benchmarks.parts.policies.continuous import is_shared, replay_of
from benchmarks.parts.policies.left_out import (
    LeftOutCell,
    Networks,
    batch_cells,
    compare_networks,
    default_policy,
    goals_of,
    read_networks,
)
from benchmarks.parts.policies.left_out_page import render_page
from benchmarks.parts.policies.replays import LOAD, TRACES
from benchmarks.parts.result import finish
from benchmarks.parts.rltune.network import training_budget
from shared.process.progress import ReportLine

SHARES = (0.0, 0.5, 0.9)
QUICK_TRACE = "helios_vc_users"


@dataclass(frozen=True, slots=True)
class LeftOutOptions:
    """The fields are the flags of the benchmark, with their defaults."""

    quick: bool = False
    out: str = ""


async def run(options: LeftOutOptions, report_line: ReportLine) -> Json:
    """Return `networks`, `cells`, `batches`, `rltune` and `goals`.

    Raises ValueError without the shared traces: no network was trained without another one.
    """
    began_s = time.process_time()
    networks = read_networks()
    cells = replay_all(networks, options, report_line)
    batches = [] if options.quick else batch_cells(networks, report_line)
    result: Json = {
        "bench": "left_out",
        **networks.plain(),
        "goals": goals_of(cells, networks),
        "default": default_policy(cells, networks),
        "cells": [cell.plain() for cell in cells],
        "batches": [cell.plain() for cell in batches],
        "rltune": training_budget(),
    }
    return finish(result, began_s, options.out, render_page)


def replay_all(
    networks: Networks, options: LeftOutOptions, report_line: ReportLine
) -> list[LeftOutCell]:
    """Return the cells of every shared trace whose fold has networks."""
    shares = SHARES[:1] if options.quick else SHARES
    cells: list[LeftOutCell] = []
    for name, clusters in TRACES:
        if (options.quick and name != QUICK_TRACE) or not is_shared(name):
            continue
        replays = [replay_of(name, LOAD, cluster) for cluster in clusters]
        report_line(f"{name}: {sum(len(replay.work) for replay in replays):,} jobs")
        cells += compare_networks(name, replays, shares, networks)
    if not cells:
        raise ValueError(
            "traces: none is shared, must be beside the project; see docs/workloads.md"
        )
    return cells


if __name__ == "__main__":
    serve(run, LeftOutOptions, __doc__ or "")
