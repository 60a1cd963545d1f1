"""GPUs that stay unallocated when parts of GPUs are placed, by policy, beside FGD's published ones.

The workers of a trace arrive in random order until they have requested 130 % of a cluster's GPUs,
and none ends. `--variants` also runs demands with more parts of GPUs and with more workers of
several GPUs; `--out DIR` writes a page.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.parts.command import Json, serve
from benchmarks.parts.result import finish
from benchmarks.parts.schedulers.fragmentation import FIRST_SEED, NODES, TRACE, VARIANTS, measure
from benchmarks.parts.schedulers.fragmentation_page import render_page
from shared.process.progress import ReportLine
from simulator.workload.errors import TraceError


@dataclass(frozen=True, slots=True)
class FragmentationOptions:
    """`trace` and `nodes` are shared traces by name, or files."""

    trace: str = TRACE
    nodes: str = NODES
    seeds: int = 10
    first_seed: int = FIRST_SEED
    variants: bool = False
    out: str = ""


async def run(options: FragmentationOptions, report_line: ReportLine) -> Json:
    """Return the result of `measure`. Raises ValueError for a wrong option or trace."""
    if options.seeds < 1:
        raise ValueError(f"seeds: {options.seeds}, must be at least 1")
    began_s = time.process_time()
    variants = tuple(VARIANTS) if options.variants else ("default",)
    try:
        result = measure(
            options.seeds, report_line, options.trace, options.nodes, variants, options.first_seed
        )
    except TraceError as error:
        raise ValueError(str(error)) from None
    return finish({"bench": "fragmentation", **result}, began_s, options.out, render_page)


if __name__ == "__main__":
    serve(run, FragmentationOptions, __doc__ or "")
