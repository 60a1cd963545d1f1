"""Whoever is killed, frozen or replaced, workers go on, and no job runs twice at a time."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from berth_agent.linux import processes
from infra.supervisor import supervise
from infra.supervisor.stack import AGENT_EXECUTOR
from tests.agent.step_bench import AGENT
from tests.e2e.agents.jobs import SHORT, Waiting, submit
from tests.e2e.joined import JoinedNode, a_joined_node
from tests.e2e.stand import Stand, eventually
from tests.fencing.pool import frozen

pytestmark = pytest.mark.stack

TICKS = """
import os, sys, time
path, end = sys.argv[1:]
while not os.path.exists(end):
    line = f"{os.environ['BERTH_ATTEMPT']} {time.clock_gettime_ns(time.CLOCK_BOOTTIME)}\\n"
    with open(path, "a") as log:
        log.write(line)
    time.sleep(0.05)
"""
"""Notes its attempt and the boot time twenty times a second, until a file is there."""


def test_a_killed_executor_stops_no_worker(stand: Stand, waiting: Waiting) -> None:
    before = supervise.pid_of(stand.stack.data_dir, AGENT_EXECUTOR)
    os.kill(before, signal.SIGKILL)
    eventually(lambda: supervise.pid_of(stand.stack.data_dir, AGENT_EXECUTOR) not in (0, before))
    waiting.ends()


def test_a_killed_agent_stops_no_worker_and_the_next_one_takes_it_up(
    stand: Stand, node: JoinedNode, waiting: Waiting
) -> None:
    incarnation = node.status()["incarnation"]
    node.kill(signal.SIGKILL)
    assert waiting.is_alive()
    node.start()
    eventually(lambda: node.status().get("executor"))
    waiting.ends()
    assert node.status()["incarnation"] == incarnation


def test_a_worker_that_ends_without_an_agent_is_reported_by_the_next(
    stand: Stand, node: JoinedNode, waiting: Waiting
) -> None:
    node.kill(signal.SIGKILL)
    waiting.fifo.write_text("enough\n")
    eventually(lambda: not waiting.is_alive())
    assert stand.job(waiting.job_id)["phase"] == "running"  # type: ignore[index]
    node.start()
    row = stand.ended(waiting.job_id)
    assert (row["exit_code"], row["attempt"]) == (5, 1)


def test_an_agent_is_upgraded_while_a_job_runs(
    stand: Stand, node: JoinedNode, waiting: Waiting, tmp_path: Path
) -> None:
    shutil.copytree(AGENT / "berth_agent", tmp_path / "berth_agent")
    head = tmp_path / "berth_agent" / "__init__.py"
    before = node.status()["version"]
    head.write_text(head.read_text().replace(before, "99.0"))
    node.kill(signal.SIGTERM)
    node.code = tmp_path
    try:
        node.start()
        eventually(lambda: node.status()["version"] == "99.0" and node.status()["executor"])
        waiting.ends()
    finally:
        node.code = AGENT
    assert node.status()["version"] == "99.0"


def test_a_worker_that_is_cut_off_dies_at_its_deadline_before_its_job_runs_again(
    stand: Stand, tmp_path: Path
) -> None:
    log, end = tmp_path / "log", tmp_path / "end"
    with a_joined_node(stand, SHORT, "short-1") as cut:
        job_id = submit(
            stand,
            [sys.executable, "-c", TICKS, str(log), str(end)],
            SHORT,
            retry={"max_attempts": 3},
            grace_s=1,
        )
        eventually(log.exists)
        [allocation_id] = cut.workers_of(job_id)
        step = cut.step(allocation_id)
        with frozen(cut), a_joined_node(stand, SHORT, "short-2"):
            eventually(lambda: not processes.is_alive(step["pid"], step["ticks"]))
            assert cut.step(allocation_id)["failure"]["reason"] == "fenced"
            eventually(lambda: "2" in ticks(log))
            end.touch()
            row = stand.ended(job_id)
        assert (row["phase"], row["nodes"]) == ("succeeded", ["short-2"])
        eventually(lambda: (row := cut.row()) and row["alive"])
        assert cut.status()["generation"] == 2
    noted = ticks(log)
    assert max(noted["1"]) < min(noted["2"])


def ticks(log: Path) -> dict[str, list[int]]:
    """Return the boot times, ns, that each attempt has noted."""
    noted: dict[str, list[int]] = {}
    for line in log.read_text().splitlines():
        attempt, _, boot_ns = line.partition(" ")
        noted.setdefault(attempt, []).append(int(boot_ns))
    return noted
