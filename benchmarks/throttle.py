"""Disciplines of LLM endpoints: fairness on a real trace, delays under abuse, decisions per second.

Requests of the trace of VTC's authors are served under each policy by the model of an engine; then
loads in which two tenants send 8 or 16 times what others do, by single calls or agents of four.
`--trace FILE` is another trace; `--quick` runs fewer policies on one seed; `--out DIR` writes a
page.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from benchmarks.parts.command import Json, serve
from benchmarks.parts.result import finish
from benchmarks.parts.throttle.abuse import CELLS, abuse_row
from benchmarks.parts.throttle.arena import POLICIES, QUICK_POLICIES, arena_row
from benchmarks.parts.throttle.decider_speed import requests_per_s
from benchmarks.parts.throttle.goals import goals_of
from benchmarks.parts.throttle.page import render_page
from benchmarks.parts.throttle.speed import decisions_per_s
from benchmarks.parts.throttle.wait_limit import wait_ratio_limit
from benchmarks.parts.throttle.waits import TwoApplications, wait_ratio, wait_ratio_of_known_lengths
from shared.process.progress import ReportLine
from simulator.llm.traces import read_llm_trace
from simulator.workload.errors import TraceError

SEEDS = tuple(range(10))
PER_S, LIGHTER_PER_S = 0.042, 0.035
"""Interactions per second of one tenant: with more the others alone overload the engine."""
DECIDER_TENANTS = (4, 100, 10_000)
"""Tenants that queue while the whole decider is measured."""
COMPARED = ("vtc", "fairserve", "berth")


@dataclass(frozen=True, slots=True)
class ThrottleOptions:
    """The fields are the flags of the benchmark, with their defaults."""

    trace: str = "vtc_arena"
    quick: bool = False
    out: str = ""


async def run(options: ThrottleOptions, report_line: ReportLine) -> Json:
    """Return `arena`, `abuse`, `core_decisions_per_s`, `wait_ratio` and `goals`.

    Raises ValueError for a trace that cannot be read.
    """
    began_s = time.process_time()
    try:
        requests = read_llm_trace(options.trace)
    except TraceError as error:
        raise ValueError(str(error)) from None
    seeds = SEEDS[:1] if options.quick else SEEDS
    arena: dict[str, Any] = {}
    for policy in QUICK_POLICIES if options.quick else POLICIES:
        report_line(f"{options.trace}: {policy}")
        arena[policy] = arena_row(policy, requests)
    policies = COMPARED if options.quick else POLICIES
    result: Json = {
        "bench": "throttle",
        "trace": {
            "trace": options.trace,
            "requests": len(requests),
            "tenants": len({request.tenant for request in requests}),
        },
        "seeds": len(seeds),
        "arena": arena,
        "abuse": abuse_table(policies, PER_S, seeds, report_line),
        "abuse_per_s": PER_S,
        "abuse_lighter": {}
        if options.quick
        else abuse_table(COMPARED, LIGHTER_PER_S, seeds, report_line),
        "abuse_lighter_per_s": LIGHTER_PER_S,
        "core_decisions_per_s": decisions_per_s(100, 20_000),
        "core_decisions_per_s_10000_tenants": decisions_per_s(10_000, 20_000),
        "decider_requests_per_s": {
            str(tenants): requests_per_s(tenants, 2_000) for tenants in DECIDER_TENANTS
        },
        "wait_ratio": wait_ratio(seeds),
        "wait_ratio_limit": wait_ratio_limit(seeds),
        "wait_ratio_applications": wait_ratio(seeds, TwoApplications),
        "wait_ratio_known_lengths": wait_ratio_of_known_lengths(seeds),
    }
    result["goals"] = goals_of(result)
    return finish(result, began_s, options.out, render_page)


def abuse_table(
    policies: tuple[str, ...], per_s: float, seeds: tuple[int, ...], report_line: ReportLine
) -> dict[str, Any]:
    """Return the cells of each policy."""
    rows: dict[str, Any] = {}
    for policy in policies:
        report_line(f"abuse, {per_s} interactions/s: {policy}")
        rows[policy] = {
            name: abuse_row(policy, kind, times, per_s, seeds) for name, kind, times in CELLS
        }
    return rows


if __name__ == "__main__":
    serve(run, ThrottleOptions, __doc__ or "")
