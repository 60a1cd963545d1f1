"""A pool whose leases are short, and what its real nodes and workers say."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from benchmarks.parts.chaos.faults import paused
from benchmarks.parts.chaos.nodes.ticks import (
    WORKER,
    boot_ms,
    find_double_attempts,
    find_double_uses,
    read_uses,
)
from berth_agent.linux import files, processes
from tests.agent.node_bench import NodeBench
from tests.e2e.joined import JoinedNode, a_joined_node
from tests.e2e.stand import Stand, eventually

TERMS = {
    "stop_after_s": 6,
    "heartbeat_s": 0.5,
    "request_timeout_s": 2,
    "reconnect_s": 0.5,
    "suspect_after_s": 3,
    "kill_s": 3,
    "clock_rate_bound": 1,
    "slack_s": 1,
}
POOL = "fenced"
SILENCE_S = 12
"""More than the silence at which a node is lost under a lease of 6 s."""
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
READ = "open({path!r}).read(1) if env['BERTH_ATTEMPT'] == '1' else time.sleep(0.1)"
"""Takes the place of the wait between two ticks: the first attempt reads a file."""


class Pool:
    """The pool of all tests, a GPU type for one of them, and the notes of its workers."""

    def __init__(self, stand: Stand, name: str, folder: Path) -> None:
        self.stand, self.name, self.folder = stand, name, folder / "ticks"
        self.folder.mkdir()
        self.configure()

    def configure(self, **settings: object) -> None:
        body = {"pool": POOL, "backends": ["agent"], **TERMS, **settings}
        status, ticket = self.stand.call("POST", "/v1/pools", body)
        assert status == 202 and self.stand.answer(ticket["command_id"])["accepted"], ticket

    def node(
        self, name: str, *executors: str, **settings: object
    ) -> AbstractContextManager[JoinedNode]:
        """Run a node of its own GPU type; it asks these executors instead of the pool's."""
        node_id = f"{self.name}-{name}"
        settings = {"gpu_type": self.name, **settings}
        return a_joined_node(self.stand, POOL, node_id, *executors, **settings)

    def submit(self, *, stubborn: bool = False, reads: Path | None = None, **spec: object) -> str:
        """Submit a job that ticks until `end`; in its first attempt it reads a file before that."""
        code = STUBBORN * stubborn + WORKER
        if reads is not None:
            code = code.replace("time.sleep(0.1)", READ.format(path=str(reads)))
        command = [sys.executable, "-ISc", code, str(self.folder), "1e6"]
        retry = {"max_attempts": 5, "avoid_failed_node": False}
        full = {"name": "job", "gang": {"workers": 1}, "grace_s": 1, "retry": retry, **spec}
        body = {"pool": POOL, "spec": {"command": command, "gpu_types": [self.name], **full}}
        status, ticket = self.stand.call("POST", "/v1/jobs", body, caller="ada")
        assert status == 202, ticket
        return str(ticket["job_id"])

    def cancel(self, job_id: str) -> None:
        """Cancel a job, and wait until its workers are gone."""
        status, ticket = self.stand.call("POST", f"/v1/jobs/{job_id}/cancel", {}, caller="ada")
        assert status == 202, ticket
        assert self.stand.ended(job_id)["phase"] == "cancelled"

    def ticks(self, job_id: str, attempt: int = 1, workers: int = 1) -> None:
        """Wait until that many GPUs are used by an attempt of a job."""

        def are_ticking() -> bool:
            uses = [use for use in read_uses(self.folder) if use.run == (job_id, attempt)]
            return len(uses) >= workers

        eventually(are_ticking)

    def end(self) -> None:
        """Let all workers end at their next tick."""
        Path(f"{self.folder}.end").touch()

    def check(self) -> None:
        """Compare what the workers noted."""
        uses = read_uses(self.folder)
        assert uses and find_double_uses(uses) == find_double_attempts(uses) == []


def lose(stand: Stand, node: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Give a node up, as the operator."""
    return berth(stand, "nodes", "lost", node, *words)


def berth(stand: Stand, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cli", *words, "--data", str(stand.stack.data_dir)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def frozen(node: NodeBench) -> AbstractContextManager[None]:
    """Pause the agent of a node inside the block."""
    assert node.process is not None
    return paused(node.process.pid)


def wait_silence() -> None:
    """Wait longer than the silence at which a node is lost."""
    begun_ms = boot_ms()
    eventually(lambda: boot_ms() > begun_ms + 1000 * SILENCE_S)


def lease(node: NodeBench) -> dict[str, Any]:
    return files.read_json(str(node.run_folder / "lease.json")) or {}


def is_far(lease: dict[str, Any]) -> bool:
    """Return whether the deadline of a lease lies far beyond the silences of these tests."""
    deadline_ms = lease["deadline_boot_ms"]
    return deadline_ms is None or deadline_ms > boot_ms() + 10_000 * SILENCE_S


def step_of(node: JoinedNode, job_id: str) -> dict[str, Any]:
    # The agent writes its status some time after the worker's first tick.
    [allocation_id] = eventually(lambda: node.workers_of(job_id))
    return node.step(allocation_id)


def is_alive(step: dict[str, Any]) -> bool:
    return processes.is_alive(step["pid"], step["ticks"])
