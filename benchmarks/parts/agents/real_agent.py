"""Memory and idle CPU of one real `berth-agent run`, and memory of a step that it starts."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil

from benchmarks.parts.agents.node_pool import POOL
from benchmarks.parts.command import Json
from benchmarks.parts.load import JobLoad
from benchmarks.parts.stack import Bench
from infra.machine.process import Running, spawn

PACKAGE = Path(__file__).parents[3] / "agent"
NODE, GPU_TYPE, GPUS = "real-agent", "bench", 8
COMMAND = ("sleep", "600")
STEP_NAME = "berth-step"
STEP_S = 90.0
SETTLED_S = 3.0
"""A step gives back what only its start needed once its worker runs for a second."""
POLL_S = 0.1
KIB = 1024
MIB = KIB * KIB


async def measure_agent(bench: Bench, pid: int, lane: int, seconds: float) -> Json:
    """Measure the idle agent for so long, then one step of it."""
    process = psutil.Process(pid)
    before = process.cpu_times()
    await asyncio.sleep(seconds)
    after = process.cpu_times()
    spent_s = after.user + after.system - before.user - before.system
    rss_mib = process.memory_info().rss / MIB
    steps = await start_step(bench, lane, state_of(bench))
    await asyncio.sleep(SETTLED_S)
    pids = [step.pid for step in steps]
    return {
        "rss_mib": round(rss_mib, 1),
        "step_mib": round(memory_mib(pids), 1),
        "step_pss_mib": round(sum(kib_of(pid, "smaps_rollup")["Pss"] for pid in pids) / KIB, 1),
        "step_rss_mib": round(sum(step.memory_info().rss for step in steps) / MIB, 1),
        "step_processes": len(steps),
        "interpreter_rss_mib": round(await asyncio.to_thread(interpreter_rss_mib), 1),
        "idle_cpu_percent": round(100 * spent_s / seconds, 2),
    }


def interpreter_rss_mib() -> float:
    """Return the memory of a Python that only waits: a step consists of two such processes."""
    command = [sys.executable, "-I", "-S", "-c", "print(flush=True); input()"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        process.stdout.readline()
        rss_mib = float(psutil.Process(process.pid).memory_info().rss) / MIB
        process.communicate(b"\n")
    return rss_mib


def state_of(bench: Bench, node_id: str = NODE) -> Path:
    """Return the state folder of a real agent."""
    return bench.stack.data_dir / ("agent" if node_id == NODE else node_id)


@asynccontextmanager
async def running_agent(
    bench: Bench, token: str, node_id: str = NODE, gpus: int = GPUS
) -> AsyncIterator[Running]:
    """Join and run an agent; afterwards end it and its steps, which would outlive it."""
    state = state_of(bench, node_id)
    config = state.with_suffix(".toml")
    # Cgroups would stay behind on the machine; they are no part of a process's memory. Jobs note
    # their starts below /tmp of the machine.
    config.write_text(
        f'state = "{state}"\nrun = "{state}-run"\ncgroups = false\nprivate_tmp = false\n'
        f'uid_first = 0\ngpu_type = "{GPU_TYPE}"\ngpus = {gpus}\ncpus = {gpus}\nmem_gib = {gpus}\n'
    )
    command = [sys.executable, "-P", "-m", "berth_agent", "--config", str(config)]
    join = [*command, "join", bench.stack.gateway, "--node-id", node_id]
    env = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    await asyncio.to_thread(
        subprocess.run, join, check=True, env=env, input=f"{token}\n".encode(), stdout=sys.stderr
    )
    log = bench.stack.data_dir / "logs" / f"{state.name}.log"
    agent = spawn("berth-agent", [*command, "run"], log, env)
    try:
        yield agent
    finally:
        await asyncio.to_thread(agent.stop)
        for step in steps_of(state):
            with suppress(psutil.NoSuchProcess):
                step.kill()


async def start_step(bench: Bench, lane: int, state: Path) -> list[psutil.Process]:
    """Submit a job for the node, and return the processes of its step once its worker runs."""
    load = JobLoad(bench, 0.0, seed=0, lane=lane, pool=POOL, command=COMMAND, gpu_types=(GPU_TYPE,))
    await load.start()
    try:
        await load.submit()
    finally:
        await load.stop()
    async with asyncio.timeout(STEP_S):
        while not any(has_worker(step) for step in steps_of(state)):
            await asyncio.sleep(POLL_S)
    return steps_of(state)


def memory_mib(pids: Iterable[int]) -> float:
    """Return the memory of processes that were forked from one another and run one program.

    Pages of their own that they share count once. Pages of files, such as the interpreter's
    library, count once and in full, as if no other process of the machine used them.
    """
    own_kib, file_kib = 0, 0
    for pid in pids:
        own_kib += kib_of(pid, "smaps_rollup")["Pss_Anon"]
        file_kib = max(file_kib, kib_of(pid, "status")["RssFile"])
    return (own_kib + file_kib) / KIB


def kib_of(pid: int, file: str) -> dict[str, int]:
    """Return the fields in KiB of a file of a process in /proc. Raises OSError."""
    lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    fields = (line.split() for line in lines)
    return {field[0].rstrip(":"): int(field[1]) for field in fields if field[-1:] == ["kB"]}


def has_worker(step: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return any(child.name() == COMMAND[0] for child in step.children(recursive=True))
    return False


def steps_of(state: Path) -> list[psutil.Process]:
    """Return the processes of steps: their last argument lies in the state folder of this agent.

    The spare process, which waits for the next worker, has not taken a step's name yet.
    """
    return [
        process
        for process in psutil.process_iter(["cmdline", "name"])
        if process.info["name"] == STEP_NAME
        and (process.info["cmdline"] or [""])[-1].startswith(f"{state}/")
    ]
