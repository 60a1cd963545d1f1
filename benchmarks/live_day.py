"""A day of a trace on the real stack with half-hourly checkpoints, beside the kernel's day.

All of `make demo` runs; the day passes through the tenants' topics, Kafka and every service on
virtual nodes whose clock is sped up. What cluster seconds measure is sped up with it: run times,
checkpoints, restarts, protection, windows. What wall time measures is not, and is stated. Beside it
are the kernel, the live deciders on a virtual clock, and these with the hand-overs measured live.
At last rank preempts a real process, which resumes from its own checkpoint. `--out DIR`
writes `live_day.json` and a section of `preemption.md`.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.parts.command import Json, serve
from benchmarks.parts.live.day import Day, choose_day, pool_of
from benchmarks.parts.live.figures import (
    DRAWS,
    RunFigures,
    deciders_figures,
    deciders_with_handovers,
    kernel_figures,
    range_of,
    wait_by_cause,
    within,
)
from benchmarks.parts.live.page import goals_of, write_files
from benchmarks.parts.live.play import LOCAL_POOL, POOL, day_stack, play
from benchmarks.parts.live.process import local_settings, preempted_process
from benchmarks.parts.policies.continuous import is_shared
from benchmarks.parts.policies.costs import StopCosts
from cli.stack.bring_up import own_api
from cli.stack.verification import verified
from infra.supervisor.running import Broker
from shared.process.progress import ReportLine
from simulator.workload.source import SYNTHETIC

HOUR_S = 3600.0
VENUS = "helios_venus"
WALL_SETTINGS = ("round_ms", "rank_ms", "settle_ms", "lease_s", "start_timeout_s")
CLUSTER_SETTINGS = (
    "base_policy",
    "preempt_margin",
    "preemption_protection",
    "min_residency_s",
    "start_protection_s",
    "cheap_restarts",
    "checkpoint_window_s",
    "preempt_price",
    "loss_share",
    "loss_window_s",
    "defragment_after_s",
    "solver",
)


@dataclass(frozen=True, slots=True)
class LiveDayOptions:
    """The defaults are those of the published figure; `longest_h` bounds the time that it takes."""

    trace: str = VENUS
    day: int = 54
    load: float = 0.9
    longest_h: float = 8.0
    time_scale: float = 300.0
    checkpoint_s: float = 1800.0
    restart_s: float = 60.0
    broker: Broker = "embedded"
    out: str = ""


async def run(options: LiveDayOptions, report_line: ReportLine) -> Json:
    """Return the object that `live_day.json` and the page describe."""
    day = day_of(options)
    report_line(f"{len(day.jobs)} jobs on {day.nodes} nodes, {day.left_out} longer ones left out")
    kernel, deciders = kernel_figures(day), deciders_figures(day)
    local = local_settings(LOCAL_POOL, day.time_scale)
    tenants = sorted({job.tenant for job in day.jobs})
    async with day_stack(day, local, tenants, options.broker, report_line) as bench:
        began_s = time.monotonic()
        live = await play(bench, day, kernel.span_s, report_line)
        wall_s = time.monotonic() - began_s
        report_line("a real process")
        api = own_api(bench.stack)
        interval_s = options.checkpoint_s / day.time_scale
        resumed = await asyncio.to_thread(
            preempted_process, api, tenants[0], LOCAL_POOL, interval_s
        )
        report_line("verifying")
        report = await asyncio.to_thread(verified, bench.stack)
    figures, handover_s = live.figures(), live.handover_s()
    delayed = deciders_with_handovers(day, handover_s)
    result: Json = {
        "bench": "live_day",
        "settings": settings(options, day),
        "runs": {
            "kernel": kernel.plain(),
            "deciders": deciders.plain(),
            "deciders_with_handovers": range_of(delayed),
            "live": figures.plain(),
        },
        "difference": difference(figures, kernel),
        "wait_by_cause_s": wait_by_cause(kernel, deciders, delayed, figures),
        "within_handovers": within(figures, delayed),
        "latency": {
            "handover_wall_ms": round(1000 * handover_s / day.time_scale, 1),
            "handover_cluster_s": round(handover_s, 1),
            "draws": DRAWS,
        },
        "process": resumed.plain(),
        "violations": report.violations,
        "wall_s": round(wall_s, 1),
    }
    result["goals"] = goals_of(result, len(day.jobs))
    if options.out:
        write_files(Path(options.out), result)
    return result


def day_of(options: LiveDayOptions) -> Day:
    """Return the day; a synthetic one takes the place of Venus where that trace is not."""
    for name in ("load", "longest_h", "time_scale"):
        if getattr(options, name) <= 0:
            raise ValueError(f"{name}: {getattr(options, name)}, must be above 0")
    is_missing = options.trace == VENUS and not is_shared(VENUS)
    return choose_day(
        SYNTHETIC if is_missing else options.trace,
        0 if is_missing else options.day,
        options.longest_h * HOUR_S,
        options.load,
        options.time_scale,
        StopCosts(options.checkpoint_s, options.restart_s),
    )


def difference(live: RunFigures, kernel: RunFigures) -> Json:
    """Return live less kernel, figure by figure."""
    own, other = live.plain(), kernel.plain()
    return {name: round(own[name] - other[name], 5) for name in own}


def settings(options: LiveDayOptions, day: Day) -> Json:
    """Return what was run; `cluster` settings are sped up by `time_scale`, `wall` ones are not."""
    pool = pool_of(day, POOL).model_dump()
    return {
        "trace": day.trace,
        "day": day.number,
        "jobs": len(day.jobs),
        "left_out_longer_than_h": options.longest_h,
        "left_out": day.left_out,
        "nodes": day.nodes,
        "gpus": day.capacity_gpus,
        "load": round(day.load, 3),
        "time_scale": day.time_scale,
        "broker": options.broker,
        "cluster": {
            "checkpoint_s": day.costs.checkpoint_s,
            "restart_s": day.costs.restart_s,
            **{name: pool[name] for name in CLUSTER_SETTINGS},
        },
        "wall": {name: pool[name] for name in WALL_SETTINGS},
    }


if __name__ == "__main__":
    serve(run, LiveDayOptions, __doc__ or "")
