"""Published schedulers in one world: each against its publication, and what types are worth.

Systems with public inputs are within 5 % of the published number or not; of the others the
conformance tests are run. `heterogeneity` is the gain of knowing the speeds of GPU types,
`topology` that of close GPUs where racks share slow links, `fragmentation` that of `berth bench
fragmentation`, `spot` that of `berth bench spot`. Parts that are not built are absent, and `absent`
names them. `--out DIR` writes a page.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.parts.command import Json, serve
from benchmarks.parts.result import finish
from benchmarks.parts.schedulers import fragmentation, heterogeneity, spot, topology
from benchmarks.parts.schedulers.page import render_page
from benchmarks.parts.schedulers.systems import ALLOX_S, MURI_S, AnchorRuns, systems
from shared.process.progress import ReportLine

WORKLOADS = range(1, 9)
NOT_BUILT = ("cpsat",)
"""Keys that the result will have, and has not yet; `ABSENT_PARTS` of the page has their words."""


@dataclass(frozen=True, slots=True)
class SchedulersOptions:
    """`searched`: workloads of Pollux' evaluation that Pollux itself runs, some minutes each.
    `shared`: traces of Muri's simulations; `seeds`: runs of AlloX; `parts`, `jobs`: parts of Philly
    for `heterogeneity`, and their size.
    """

    searched: str = "6"
    shared: str = "trace3"
    seeds: int = 1
    parts: int = 2
    jobs: int = 2_000
    out: str = ""


async def run(options: SchedulersOptions, report_line: ReportLine) -> Json:
    """Return `systems`, `heterogeneity`, `topology`, and the other parts that exist.

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
    began_s = time.process_time()
    seeds = list(ALLOX_S)[: options.seeds]
    anchored = AnchorRuns(list(WORKLOADS), searched, seeds, traces)
    result: Json = {
        "bench": "schedulers",
        "systems": {name: own.plain() for name, own in systems(anchored, report_line)},
        "heterogeneity": heterogeneity.measure(options.parts, options.jobs, report_line),
    }
    result["topology"] = topology.measure(report_line)
    result["fragmentation"] = fragmentation.measure(report_line=report_line)
    result["spot"] = spot.measure(report_line=report_line)
    result["absent"] = list(NOT_BUILT)
    return finish(result, began_s, options.out, render_page)


def numbers_of(searched: str) -> list[int]:
    """Return the numbers of a list such as `1,6`."""
    numbers = [int(word) if word.isdigit() else 0 for word in searched.split(",")]
    if not set(numbers) <= set(WORKLOADS):
        raise ValueError(f"searched: {searched}, must be numbers of 1 to 8 with commas between")
    return numbers


if __name__ == "__main__":
    serve(run, SchedulersOptions, __doc__ or "")
