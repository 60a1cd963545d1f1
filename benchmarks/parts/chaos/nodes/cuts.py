"""Nodes on hosts of their own are cut off by the network, while jobs run there.

The control plane and the nodes have a network namespace each. This module is also the process that
runs in the namespace of the control plane: its options come on stdin, its figures go to stdout.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.parts.chaos import faults
from benchmarks.parts.chaos.nodes.account import OutageAccount
from benchmarks.parts.chaos.nodes.cut_rounds import CutOff, CutRounds, plan_cuts
from benchmarks.parts.chaos.nodes.run import FIRST_JOBS_S, MOST_OPEN, PER_S, SHOWN, judge
from benchmarks.parts.chaos.nodes.site import (
    CONTROL_HOST,
    GRACE_S,
    SiteOptions,
    harmless_s,
    host_names,
    quick_terms,
    running_site,
)
from benchmarks.parts.chaos.nodes.ticks import GpuUse, read_uses
from benchmarks.parts.chaos.options import ChaosOptions
from benchmarks.parts.command import Json, report_line, stoppable
from benchmarks.parts.percentiles import percentile, summarize
from infra.drills import hosts
from infra.drills.hosts import Network
from infra.machine.process import spawn, tied
from shared.process.progress import ReportLine

MODULE = "benchmarks.parts.chaos.nodes.cuts"
REQUEST_TIMEOUT_S = 1.0
"""So short that a cut of half a lease is one that stops no worker, by the terms of the pool."""
LOOK_S = 1.0
"""A step looks at its deadline at least so often."""
LONG_LEASES = 2.5
"""Run time of the long jobs, in leases."""
BUSY = "while True: pass"
LAST_LINES = 30
"""Lines of its output that the error of a run that failed has."""


async def cuts(options: ChaosOptions, report_line: ReportLine) -> Json:
    """Run the rounds in namespaces of their own; the figures are those of `nodes` and more."""
    if reason := hosts.missing():
        return {"skipped": reason}
    pipe = asyncio.subprocess.PIPE
    command = hosts.in_new_namespace([sys.executable, "-P", "-m", MODULE])
    process = await asyncio.create_subprocess_exec(
        *tied("TERM"), *command, stdin=pipe, stdout=pipe, stderr=pipe
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    last_lines: deque[str] = deque(maxlen=LAST_LINES)
    reporting = asyncio.ensure_future(pass_lines(process.stderr, report_line, last_lines))
    try:
        process.stdin.write(json.dumps(asdict(options)).encode())
        process.stdin.close()
        printed = await process.stdout.read()
        await asyncio.gather(process.wait(), reporting)
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    if process.returncode:
        printed_last = "\n".join(("", *last_lines))
        raise RuntimeError(
            f"the rounds of cuts ended with exit code {process.returncode}:{printed_last}"
        )
    figures: Json = json.loads(printed)
    return figures


async def pass_lines(
    stream: asyncio.StreamReader, report_line: ReportLine, last_lines: deque[str]
) -> None:
    async for line in stream:
        text = line.decode(errors="replace").rstrip("\n")
        last_lines.append(text)
        report_line(text)


async def run_here(options: ChaosOptions) -> Json:
    """Run the rounds with this process's namespace as the host of the control plane."""
    terms = quick_terms(options.stop_after_s) | {"request_timeout_s": REQUEST_TIMEOUT_S}
    planned = plan_cuts(options.seed, options.rounds)
    account = OutageAccount(options.stop_after_s - GRACE_S - LOOK_S)
    began = time.monotonic()
    with hosts.network(host_names(options.agents), own=CONTROL_HOST) as network:
        site_options = site_of(options, terms, network)
        async with running_site(site_options, report_line) as site:
            await faults.wait_until(lambda: len(site.load.ended) > 5, FIRST_JOBS_S)
            report_line(f"seed {options.seed}: {len(planned)} rounds")
            with busy(options.busy):
                rounds = CutRounds(site, network, account, options.stop_after_s)
                await rounds.run(planned)
            figures = await judge(site, account)
            uses = await asyncio.to_thread(read_uses, Path(site.load.folder))
    return (
        figures
        | describe_cuts(rounds.done, uses)
        | {
            "seed": options.seed,
            "agents": options.agents,
            "busy": options.busy,
            "stop_after_s": options.stop_after_s,
            "harmless_s": harmless_s(terms),
            "wall_s": round(time.monotonic() - began),
        }
    )


def site_of(options: ChaosOptions, terms: dict[str, Any], network: Network) -> SiteOptions:
    return SiteOptions(
        broker=options.broker,
        nodes=options.agents,
        per_s=PER_S,
        most_open=MOST_OPEN,
        long_s=LONG_LEASES * options.stop_after_s,
        terms=terms,
        network=network,
    )


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Run so many processes that compute all the time until the block ends."""
    with tempfile.TemporaryDirectory(prefix="berth-busy-") as name:
        log = Path(name) / "log"
        command = [sys.executable, "-I", "-c", BUSY]
        running = [spawn("busy", command, log) for _ in range(count)]
        try:
            yield
        finally:
            for process in running:
                process.kill()


def describe_cuts(done: list[CutOff], uses: list[GpuUse]) -> Json:
    """Return what was done, and whether nodes and workers kept to their leases."""
    outlived = [one for one in done if one.planned.is_beyond_lease and not one.is_fenced]
    margins_s = [one.margin_s(uses) for one in done if one.is_fenced]
    loads = [one.load_1m for one in done]
    return {
        "rounds": len(done),
        "beyond_the_lease": sum(one.planned.is_beyond_lease for one in done),
        "outlived_lease": len(outlived),
        "outlived": [str(one.planned) for one in outlived[:SHOWN]],
        "cuts": dict(Counter(one.planned.kind for one in done)),
        "fenced": dict(Counter(one.planned.kind for one in done if one.is_fenced)),
        "least_margin_s": min((s for s in margins_s if s is not None), default=None),
        "recovery_s": summarize([one.recovery_s for one in done]),
        "load_1m": {
            "p50": round(percentile(loads, 0.5), 1),
            "max": round(max(loads, default=0.0), 1),
        },
    }


if __name__ == "__main__":
    result = asyncio.run(stoppable(run_here(ChaosOptions(**json.load(sys.stdin)))))
    sys.stdout.write(json.dumps(result) + "\n")
