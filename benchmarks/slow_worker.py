"""A real training with a worker that is slowed: how long it takes with and without mitigation.

Four workers train with PyTorch DDP over gloo on agents of this machine, each on a node of its own;
a fifth node is spare. The same number of steps is trained three times: undisturbed, with a worker
that a drill slows (SIGSTOP and SIGCONT in turns) while the pool makes no plans, and with the same
drill while the pool mitigates automatically. Needs a `python3` with PyTorch.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.parts.agents.node_pool import POOL, agents_stack
from benchmarks.parts.agents.real_agent import running_agent
from benchmarks.parts.command import Json, serve
from benchmarks.parts.slow_worker.nodes import answered, join_token, until_alive
from benchmarks.parts.slow_worker.training import SlowedWorker, Training, missing_torch
from benchmarks.parts.stack import TENANT
from cli.api.http import Api
from cli.stack.bring_up import open_up, own_api
from infra.supervisor.running import Broker
from shared.contracts.pools import ConfigurePool
from shared.process.progress import ReportLine

ROOT = Path(__file__).parents[1]
FILES = (ROOT / "docs" / "examples" / "reported_ddp.py", ROOT / "reporter" / "berth_reporter")
NODES = 5
HEALTHY = "healthy"
MODES = {HEALTHY: "off", "unmitigated": "off", "mitigated": "automatic"}
"""`mitigation` of the pool in each training."""


@dataclass(frozen=True, slots=True)
class SlowWorkerOptions:
    """One to three minutes per training on two busy cores."""

    steps: int = 150
    batch: int = 64
    factor: float = 8.0
    migration_cost_s: float = 10.0
    """That plans assume at first: a checkpoint every 20 steps and a start of Python."""
    only_slowed: bool = False
    """Leave the undisturbed training out."""
    broker: Broker = "embedded"


async def run(options: SlowWorkerOptions, report_line: ReportLine) -> Json:
    """Return the seconds of each training, and those from the fault to what was done about it."""
    if reason := missing_torch():
        raise ValueError(reason)
    async with AsyncExitStack() as stack:
        bench = await stack.enter_async_context(agents_stack(options.broker, report_line))
        pool = ConfigurePool(pool=POOL, backends=("agent",), allow_injection=True)
        await asyncio.to_thread(open_up, bench.stack, [pool], [TENANT])
        client = own_api(bench.stack)
        for number in range(NODES):
            token = await asyncio.to_thread(join_token, client, POOL)
            await stack.enter_async_context(running_agent(bench, token, f"node-{number}", 1))
        await asyncio.to_thread(until_alive, client, NODES)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-bench-"))
        Path(folder).chmod(0o755)
        return await _trained(options, client, Path(folder), report_line)


async def _trained(
    options: SlowWorkerOptions, client: Api, shared: Path, report_line: ReportLine
) -> Json:
    result: Json = {"bench": "slow_worker", "steps": options.steps, "factor": options.factor}
    for name, mode in MODES.items():
        if name == HEALTHY and options.only_slowed:
            continue
        report_line(f"{name}: {options.steps} steps")
        settings = {
            "pool": POOL,
            "backends": ["agent"],
            "allow_injection": True,
            "mitigation": mode,
            "migration_cost_s": options.migration_cost_s,
        }
        await asyncio.to_thread(answered, client, "/v1/pools", settings)
        training = Training(client, _prepared(shared / name), options.steps, options.batch)
        drill = None if name == HEALTHY else SlowedWorker(options.factor)
        result[name] = await asyncio.to_thread(training.run, drill)
    return result


def _prepared(folder: Path) -> Path:
    """Return a folder with the program and the reporter, to which workers may write."""
    folder.mkdir()
    folder.chmod(0o777)
    for path in FILES:
        if path.is_dir():
            shutil.copytree(path, folder / path.name)
        else:
            shutil.copy(path, folder)
    return folder


if __name__ == "__main__":
    serve(run, SlowWorkerOptions, __doc__ or "")
