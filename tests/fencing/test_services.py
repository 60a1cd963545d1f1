"""Services that are thawed after the world has gone on: they undo and double nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.parts.chaos.faults import paused
from infra.machine.process import free_ports
from infra.supervisor import supervise
from infra.supervisor.stack import AGENT_EXECUTOR
from shared.process.settings import PREFIX
from tests.e2e.stand import Stand, eventually
from tests.fencing.pool import Pool, is_alive, step_of, wait_silence

pytestmark = [pytest.mark.parts, pytest.mark.stack]


class Executor(NamedTuple):
    """An executor of agents."""

    pid: int
    url: str


@contextmanager
def second_executor(stand: Stand, folder: Path) -> Iterator[Executor]:
    """Run another executor of agents, beside the one of the stack and on the same log."""
    stack, (port,) = stand.stack, free_ports(1)
    settings = {
        "kafka": stack.kafka,
        "idempotent": str(int(stack.durable)),
        "partitions": str(stack.partitions),
        "data": str(folder),
        "executor_id": f"{AGENT_EXECUTOR}-2",
        "port": str(port),
    }
    env = {PREFIX + name.upper(): value for name, value in settings.items()}
    command = [sys.executable, "-P", "-m", "services.executor"]
    with subprocess.Popen(command, env=env) as process:
        try:
            yield Executor(process.pid, f"http://127.0.0.1:{port}")
        finally:
            process.kill()


def test_frozen_executor(stand: Stand, pool: Pool, tmp_path: Path) -> None:
    """An executor that is thawed after another has taken over its nodes gives no old orders."""
    pool.configure(stop_after_s=60)
    data, port = stand.stack.data_dir, stand.stack.ports[AGENT_EXECUTOR]["http"]
    first = Executor(supervise.pid_of(data, AGENT_EXECUTOR), f"http://127.0.0.1:{port}")
    with second_executor(stand, tmp_path) as second, pool.node("1", first.url, second.url) as node:
        eventually(lambda: node.status()["executor"] == first.url)
        kept, cancelled = pool.submit(), pool.submit()
        pool.ticks(kept)
        pool.ticks(cancelled)
        step, ended = step_of(node, kept), step_of(node, cancelled)
        with paused(first.pid):
            eventually(lambda: node.status()["executor"] == second.url)
            pool.cancel(cancelled)
            replaced = pool.submit()
            pool.ticks(replaced)
        with paused(second.pid):
            eventually(lambda: node.status()["executor"] == first.url)
            pool.cancel(replaced)
            last = pool.submit()
            pool.ticks(last)
        assert is_alive(step)
        eventually(lambda: not is_alive(ended))
        assert node.status()["generation"] == 1
        pool.end()
        for job_id in (kept, last):
            row = stand.ended(job_id)
            assert (row["phase"], row["attempt"]) == ("succeeded", 1)


def test_paused_placement(stand: Stand, pool: Pool) -> None:
    """That placement has read nothing for long is no silence of the nodes."""
    with pool.node("1") as node:
        job_id = pool.submit()
        pool.ticks(job_id)
        step = step_of(node, job_id)
        with paused(supervise.pid_of(stand.stack.data_dir, "placement")):
            wait_silence()
        # Placement judges again before it places: nothing of what it read first has ended a worker.
        pool.ticks(pool.submit())
        assert is_alive(step) and node.status()["generation"] == 1
        assert (row := node.row()) and row["state"] == "joined"
        pool.end()
        assert stand.ended(job_id)["attempt"] == 1
