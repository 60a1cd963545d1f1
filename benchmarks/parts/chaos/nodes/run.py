"""Kills, pauses and cuts of nodes and of what serves them, while short and long jobs run there."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

from benchmarks.parts.chaos import faults
from benchmarks.parts.chaos.nodes.account import OutageAccount
from benchmarks.parts.chaos.nodes.node import RealNode
from benchmarks.parts.chaos.nodes.node_load import RecordedAttempt
from benchmarks.parts.chaos.nodes.rounds import FaultRound, FaultRounds, plan_rounds
from benchmarks.parts.chaos.nodes.site import (
    ChaosSite,
    SiteOptions,
    harmless_s,
    quick_terms,
    running_site,
)
from benchmarks.parts.chaos.nodes.ticks import (
    find_double_attempts,
    find_double_uses,
    find_ticks_after,
    read_uses,
)
from benchmarks.parts.chaos.options import ChaosOptions
from benchmarks.parts.chaos.verdict import check_installation
from benchmarks.parts.command import Json
from benchmarks.parts.percentiles import summarize
from shared.process.progress import ReportLine

FIRST_JOBS_S = 120.0
ALL_ENDED_S = 300.0
TIDY_S = 60.0
SHOWN = 10
"""Most findings of a kind that are shown."""
PER_S, MOST_OPEN = 2.0, 14


async def nodes(options: ChaosOptions, report_line: ReportLine) -> Json:
    """Run the rounds in a stack of their own; each of the four first figures must be 0."""
    terms = quick_terms(options.stop_after_s)
    site_options = SiteOptions(
        broker=options.broker,
        nodes=options.agents,
        per_s=PER_S,
        most_open=MOST_OPEN,
        long_s=1.5 * options.stop_after_s,
        terms=terms,
    )
    is_durable = options.broker != "embedded"
    planned = plan_rounds(
        options.seed, options.rounds, options.agents, terms, is_durable=is_durable
    )
    account = OutageAccount(harmless_s(terms))
    began = time.monotonic()
    async with running_site(site_options, report_line) as site:
        await faults.wait_until(lambda: len(site.load.ended) > 5, FIRST_JOBS_S)
        report_line(f"seed {options.seed}: {len(planned)} rounds")
        await FaultRounds(site, account, options.seed).run(planned)
        figures = await judge(site, account)
    return (
        figures
        | describe_rounds(planned, account)
        | {
            "seed": options.seed,
            "agents": options.agents,
            "stop_after_s": options.stop_after_s,
            "harmless_s": account.least_s,
            "wall_s": round(time.monotonic() - began),
        }
    )


async def judge(site: ChaosSite, account: OutageAccount) -> Json:
    """End the load, wait for all jobs, and compare what workers, ledger and nodes say.

    Raises RuntimeError if no running worker is found by the names of what may be left behind.
    """
    load = site.load
    if (
        await faults.wait_until(lambda: any(map(RealNode.finds_a_worker, site.nodes)), FIRST_JOBS_S)
        is None
    ):
        raise RuntimeError(f"no running worker is found on {[n.node_id for n in site.nodes]}")
    load.end_all()
    load.report_line(f"waiting for {load.outstanding} jobs to end")
    all_ended = await load.all_ended(ALL_ENDED_S)
    await faults.wait_until(lambda: not any(n.left_behind() for n in site.nodes), TIDY_S)
    left = [f"{n.node_id}: {thing}" for n in site.nodes for thing in n.left_behind()]
    uses = await asyncio.to_thread(read_uses, Path(load.folder))
    doubles = [*find_double_uses(uses), *find_double_attempts(uses)]
    after = find_ticks_after(uses, load.released_at_ms())
    stopped = account.unexplained(load.failed_attempts())
    end = await check_installation(load, all_ended)
    lost = sorted(load.acked.keys() - load.ended)
    return {
        "double_runs": len(doubles),
        "lost_jobs": len(lost),
        "stopped_by_control_plane": len(stopped),
        "left_behind": len(left),
        "not_recovered": len(account.not_recovered),
        "ticks_after_release": len(after),
        "jobs_acknowledged": len(load.acked),
        "attempts": len(load.attempts),
        "failed_attempts": len(load.failed_attempts()),
        "stopped_by_slow_recovery": len(account.stopped_by_slow_recovery(load.failed_attempts())),
        "ends": dict(Counter(word for a in load.attempts.values() for word in a.ends)),
        "gpu_uses": len(uses),
        "verify": end["verify"],
        "violations": end["violations"],
        "findings": [
            *doubles[:SHOWN],
            *after[:SHOWN],
            *[f"{job} has no end" for job in lost[:SHOWN]],
            *[describe_attempt(attempt) for attempt in stopped[:SHOWN]],
            *left[:SHOWN],
            *account.not_recovered[:SHOWN],
        ],
    }


def describe_attempt(attempt: RecordedAttempt) -> str:
    """Return a failed attempt that no fault explains, in one line."""
    return (
        f"{attempt.job_id} attempt {attempt.number} on {sorted(set(attempt.nodes.values()))} "
        f"{'ran' if attempt.is_started else 'did not start'}: {', '.join(attempt.ends)}, "
        f"placed {attempt.placed_at:.3f}, ended {attempt.ended_at:.3f}"
    )


def describe_rounds(planned: list[FaultRound], account: OutageAccount) -> Json:
    """Return what was done, and how long it took to recover."""
    return {
        "rounds": len(planned),
        "beyond_the_lease": sum(one.is_long for one in planned),
        "faults": dict(Counter(kind for one in planned for kind in one.kinds)),
        "recovery_s": {kind: summarize(times) for kind, times in account.recovery_s.items()},
    }
