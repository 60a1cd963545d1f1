"""An agent is upgraded again and again while many jobs run on its node: none may notice."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path

from benchmarks.parts.agents.real_agent import PACKAGE
from benchmarks.parts.chaos import faults
from benchmarks.parts.chaos.nodes.account import OutageAccount
from benchmarks.parts.chaos.nodes.node import RealNode, read_json
from benchmarks.parts.chaos.nodes.outage import UNTIL_ENDED_S, longest_gap_s, start_jobs
from benchmarks.parts.chaos.nodes.run import judge
from benchmarks.parts.chaos.nodes.site import SiteOptions, running_site
from benchmarks.parts.chaos.nodes.ticks import boot_ms
from benchmarks.parts.chaos.options import ChaosOptions
from benchmarks.parts.command import Json
from benchmarks.parts.percentiles import summarize
from shared.process.progress import ReportLine

UPGRADED_S = 120.0


async def upgrade(options: ChaosOptions, report_line: ReportLine) -> Json:
    """Install and start another version of the agent `upgrades` times below `upgrade_jobs` jobs."""
    site_options = SiteOptions(
        broker=options.broker,
        nodes=1,
        per_s=0.0,
        most_open=options.upgrade_jobs,
        long_s=UNTIL_ENDED_S,
        terms={},
        gpus=options.upgrade_jobs,
        is_uniform=True,
    )
    async with running_site(site_options, report_line) as site:
        (node,) = site.nodes
        await start_jobs(site, options.upgrade_jobs)
        before = node.lease().get("incarnation")
        took_s = [await install(node, f"99.{number}") for number in range(options.upgrades)]
        after = node.lease().get("incarnation")
        figures = await judge(site, OutageAccount(least_s=float("inf")))
        complete = count_complete(node)
        return {
            "jobs": options.upgrade_jobs,
            "upgrades": options.upgrades,
            "upgrade_s": summarize(took_s),
            "nodes_fenced": int(before != after),
            "incomplete_outputs": options.upgrade_jobs - complete,
            "longest_gap_s": longest_gap_s(Path(site.load.folder)),
            **figures,
        }


async def install(node: RealNode, version: str) -> float:
    """Stop the agent, start it from a copy of another version; return s until it is heard."""
    package = node.folder / f"agent-{version}"
    shutil.copytree(PACKAGE / "berth_agent", package / "berth_agent")
    (package / "berth_agent" / "__init__.py").write_text(f'VERSION = "{version}"\n')
    began = time.monotonic()
    await node.end_agent(signal.SIGTERM)
    node.package = package
    node.start()
    started_ms = boot_ms()

    def is_heard() -> bool:
        status = read_json(node.run / "status.json")
        return status.get("version") == version and node.is_renewed_since(started_ms)

    if await faults.wait_until(is_heard, UPGRADED_S) is None:
        raise RuntimeError(f"the agent of version {version} was not heard in {UPGRADED_S:g} s")
    return time.monotonic() - began


def count_complete(node: RealNode) -> int:
    """Return the workers of the node whose output has its last line."""
    folders = (node.state / "ended").glob("*")
    return sum(
        any("complete" in log.read_text() for log in folder.glob("output.log.*"))
        for folder in folders
    )
