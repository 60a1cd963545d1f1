"""Workers of a killed executor: the running are killed, and noted ends are returned."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from services.executor.core.effects import WorkerEnded
from services.executor.process.environment import TOKEN
from services.executor.process.group import status
from services.executor.process.journal import Journal, JournalEntry
from services.executor.process.orphans import reap
from tests.services.executor.process.conftest import Bench

pytestmark = pytest.mark.process

LEAVE_BEHIND = """
import asyncio, os, sys
from pathlib import Path
from services.executor.process.backend import ProcessBackend
from services.executor.process.journal import Journal
from services.executor.process.launch import LaunchSettings
from tests.services.executor.facts import worker_spec
from shared.contracts.jobs import JobSpec

async def main():
    folder = Path(sys.argv[1])
    ended = asyncio.Event()
    def on_outcome(outcome):
        if getattr(outcome, "exit_code", None) is not None:
            ended.set()
    backend = ProcessBackend(
        LaunchSettings(folder / "work"), Journal(folder / "journal"), on_outcome, lambda *_: None
    )
    scripts = {
        "0/1/0/0": "echo $$ > pid; (setsid sleep 600) & trap '' TERM; while :; do sleep 1; done",
        "0/2/0/0": "exit 4",
    }
    for name, script in scripts.items():
        spec = JobSpec(name="t", command=("/bin/sh", "-c", script))
        backend.prepare(worker_spec(name, spec, job="j" + name[2]))
        backend.start(name)
    await ended.wait()
    while not (folder / "work" / "j1.1.0" / "pid").exists() or not (
        folder / "work" / "j1.1.0" / "pid").read_text().strip():
        await asyncio.sleep(0.01)
    os._exit(137)

asyncio.run(main())
"""


def pids_with(token: str) -> list[int]:
    pids = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            environ = Path("/proc", pid, "environ").read_bytes()
        except OSError:
            continue
        state = status(int(pid))
        if f"{TOKEN}={token}".encode() in environ and state and state.state not in "ZX":
            pids.append(int(pid))
    return pids


async def test_workers_of_a_killed_executor_are_reaped_and_noted_ends_are_returned(
    tmp_path: Path,
) -> None:
    program = [sys.executable, "-c", LEAVE_BEHIND, str(tmp_path)]
    done = await asyncio.to_thread(subprocess.run, program, timeout=60, check=False)
    assert done.returncode == 137
    journal = Journal(tmp_path / "journal")
    (left,) = [entry for entry in journal.entries if entry.state == "running"]
    assert len(pids_with(left.token)) >= 2
    ends = await asyncio.to_thread(reap, journal)
    assert pids_with(left.token) == []
    assert [(e.allocation_id, e.exit_code) for e in ends.values()] == [("0/2/0/0", 4)]
    assert [entry.allocation_id for entry in journal.entries] == ["0/2/0/0"]
    journal.close()


async def test_a_worker_that_was_being_started_is_found_by_its_token(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.write(JournalEntry("0/1/0/0", "starting", "token-1"))
    stray = subprocess.Popen(["sleep", "600"], env={TOKEN: "token-1", "PATH": os.environ["PATH"]})
    try:
        reaping = asyncio.create_task(asyncio.to_thread(reap, journal))
        assert await asyncio.to_thread(stray.wait, 10) == -signal.SIGKILL
        assert await reaping == {}
    finally:
        stray.kill()
        stray.wait()
        journal.close()


async def test_a_process_that_reuses_a_pid_is_left_alone(tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        journal = Journal(tmp_path / "journal")
        journal.write(JournalEntry("0/1/0/0", "running", "token-2", other.pid, 1))
        assert reap(journal) == {}
        assert other.poll() is None
        journal.close()
    finally:
        other.kill()
        other.wait()


async def test_the_end_of_a_stopped_worker_is_not_returned_as_an_exit(
    make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    bench = make_bench("a")
    bench.start("sleep 600")
    bench.backend.stop("0/1/0/0", 0.5)
    assert (await bench.end()).exit_code == 143
    bench.start("exit 3", "0/2/0/0")
    await bench.end("0/2/0/0")
    bench.journal.close()
    journal = Journal(tmp_path / "a" / "journal")
    ends = reap(journal)
    journal.close()
    assert [(e.allocation_id, e.exit_code) for e in ends.values()] == [("0/2/0/0", 3)]
    assert WorkerEnded("0/1/0/0", 143) not in ends.values()
