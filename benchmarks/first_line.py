"""The time that a user waits from `berth submit --follow -- python3 train.py` to its first line.

A real agent on this machine runs the jobs, one after another, on a stack that does nothing else.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.parts.agents.node_pool import POOL, agents_stack
from benchmarks.parts.command import Json, serve
from benchmarks.parts.isolation.node import confined_node
from benchmarks.parts.slow_worker.nodes import join_token, until_alive
from benchmarks.parts.stack import TENANT, Bench
from cli.api.answers import items
from cli.api.http import Api, part
from cli.stack.bring_up import open_up, own_api
from infra.supervisor.running import Broker
from shared.contracts.pools import ConfigurePool
from shared.process.progress import ReportLine

LINE = "step 1"
PROGRAM = f"print({LINE!r}, flush=True)\n"
AIM_S = 1.0
"""From the decision, which is the placement, to the line on the user's terminal."""


@dataclass(frozen=True, slots=True)
class FirstLineOptions:
    """A second or two per run."""

    runs: int = 10
    broker: Broker = "embedded"


async def run(options: FirstLineOptions, report_line: ReportLine) -> Json:
    """Return the seconds of each run, from the command and from the decision, and whether the aim
    was met by the median."""
    async with agents_stack(options.broker, report_line) as bench:
        return await asyncio.to_thread(measured, bench, options.runs, report_line)


def measured(bench: Bench, runs: int, report_line: ReportLine) -> Json:
    open_up(bench.stack, [ConfigurePool(pool=POOL, backends=("agent",))], [TENANT])
    client = own_api(bench.stack)
    times = list[tuple[float, float]]()
    with confined_node(bench, join_token(client, POOL), "node", os.geteuid()) as node:
        until_alive(client, 1)
        script = node.folder / "train.py"
        script.write_text(PROGRAM)
        script.chmod(0o644)
        for number in range(runs):
            times.append(one_run(bench, client, script))
            report_line(f"run {number + 1}: {times[-1][0]:.2f} s, {times[-1][1]:.2f} s of them")
    whole_s, decided_s = ([round(pair[at], 3) for pair in times] for at in (0, 1))
    return {
        "bench": "first_line",
        "command_to_line_s": {"median": median(whole_s), "all": whole_s},
        "decision_to_line_s": {"median": median(decided_s), "all": decided_s},
        "aim_s": AIM_S,
        "met": median(decided_s) <= AIM_S,
    }


def one_run(bench: Bench, client: Api, script: Path) -> tuple[float, float]:
    """Return the seconds to the first line, from the command and from the job's placement."""
    command = [sys.executable, "-m", "cli", "submit", "--tenant", TENANT, "--follow"]
    command += ["--workdir", str(script.parent), "--", "python3", script.name]
    env = {**os.environ, "BERTH_HOME": str(bench.stack.data_dir)}
    began_s = time.time()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        text, line_s = "", 0.0
        for text in process.stdout:
            if LINE in text:
                line_s = time.time()
    if not line_s or process.returncode:
        raise RuntimeError(f"no line {LINE!r}; exit code {process.returncode}: {text}")
    [newest, *_] = items(client.get("/v1/jobs", {"limit": 1}))
    row = client.get(f"/v1/jobs/{part(str(newest['job_id']))}")
    return line_s - began_s, line_s - int(str(row["placed_at"])) / 1000


if __name__ == "__main__":
    serve(run, FirstLineOptions, __doc__ or "")
