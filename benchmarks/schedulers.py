"""Published schedulers in one world: each against its publication, and what types are worth.

Systems with public inputs are within 5 % of the published number or not; of the others the
conformance tests are run. `heterogeneity` is the gain of knowing the speeds of GPU types,
`topology` that of close GPUs where racks share slow links, `fragmentation` that of `berth bench
fragmentation`, `spot` that of `berth bench spot`, `cpsat` that of CP-SAT's plans over greedy's,
`stage_dags` that of Decima's network over a tuned heuristic, for jobs of dependent stages.
`--out DIR` writes a page; with `--only NAME,NAME` the other parts stay as they are there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.parts.command import Json, serve
from benchmarks.parts.result import finish
from benchmarks.parts.schedulers import (
    cpsat,
    fragmentation,
    heterogeneity,
    spot,
    stage_dags,
    topology,
)
from benchmarks.parts.schedulers.page import render_page
from benchmarks.parts.schedulers.systems import ALLOX_S, MURI_S, AnchorRuns, systems
from shared.process.progress import ReportLine

WORKLOADS = range(1, 9)
PARTS = ("systems", "heterogeneity", "topology", "fragmentation", "spot", "cpsat", "stage_dags")


@dataclass(frozen=True, slots=True)
class SchedulersOptions:
    """`searched`: workloads of Pollux' evaluation that Pollux itself runs, some minutes each.
    `shared`: traces of Muri's simulations; `seeds`: runs of AlloX; `parts`, `jobs`: parts of Philly
    for `heterogeneity`, and their size. `only`: parts of the result, with commas between; empty:
    all.
    """

    searched: str = "6"
    shared: str = "trace3"
    seeds: int = 1
    parts: int = 2
    jobs: int = 2_000
    only: str = ""
    out: str = ""


async def run(options: SchedulersOptions, report_line: ReportLine) -> Json:
    """Return the parts of `PARTS`, or those of `options.only`.

    Raises ValueError for an option that leaves nothing to compare.
    """
    searched = numbers_of(options.searched)
    traces = options.shared.split(",")
    if not set(traces) <= set(MURI_S["muri"]):
        known = ", ".join(MURI_S["muri"])
        raise ValueError(f"shared: {options.shared}, must be of {known}, with commas between")
    if not 1 <= options.seeds <= len(ALLOX_S):
        raise ValueError(f"seeds: {options.seeds}, must be 1 to {len(ALLOX_S)}")
    for name in ("parts", "jobs"):
        if getattr(options, name) < 1:
            raise ValueError(f"{name}: {getattr(options, name)}, must be at least 1")
    chosen = options.only.split(",") if options.only else PARTS
    if not set(chosen) <= set(PARTS):
        raise ValueError(
            f"only: {options.only}, must be of {', '.join(PARTS)}, with commas between"
        )
    began_s = time.process_time()
    seeds = list(ALLOX_S)[: options.seeds]
    anchored = AnchorRuns(list(WORKLOADS), searched, seeds, traces)
    parts: dict[str, Callable[[], Json]] = {
        "systems": lambda: {name: own.plain() for name, own in systems(anchored, report_line)},
        "heterogeneity": lambda: heterogeneity.measure(options.parts, options.jobs, report_line),
        "topology": lambda: topology.measure(report_line),
        "fragmentation": lambda: fragmentation.measure(report_line=report_line),
        "spot": lambda: spot.measure(report_line=report_line),
        "cpsat": lambda: cpsat.measure(report_line),
        "stage_dags": lambda: stage_dags.measure(report_line),
    }
    result = {"bench": "schedulers"} | (kept(options.out) if options.only else {})
    result |= {name: measure() for name, measure in parts.items() if name in chosen}
    result["only"] = list(chosen) if options.only else []
    return finish(result, began_s, options.out, render_page)


def kept(out: str) -> Json:
    """Return the parts that the folder has already; none without a folder or a result there."""
    path = Path(out) / "schedulers.json"
    if not out or not path.is_file():
        return {}
    before: Json = json.loads(path.read_text())
    return {name: before[name] for name in PARTS if name in before}


def numbers_of(searched: str) -> list[int]:
    """Return the numbers of a list such as `1,6`."""
    numbers = [int(word) if word.isdigit() else 0 for word in searched.split(",")]
    if not set(numbers) <= set(WORKLOADS):
        raise ValueError(f"searched: {searched}, must be numbers of 1 to 8 with commas between")
    return numbers


if __name__ == "__main__":
    serve(run, SchedulersOptions, __doc__ or "")
