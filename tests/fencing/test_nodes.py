"""Fencing on real agents in a whole stack: workers note who holds which GPU, and no two ever do."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.parts.chaos.nodes.ticks import (
    WORKER,
    boot_ms,
    find_double_attempts,
    find_double_uses,
    read_uses,
)
from berth_agent.linux import files, processes
from infra.supervisor.stack import AGENT
from tests.agent.node_bench import NodeBench
from tests.e2e.joined import JoinedNode, a_joined_node
from tests.e2e.stand import Stand, a_stand, eventually

pytestmark = [pytest.mark.parts, pytest.mark.stack]
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


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with a_stand(AGENT, "failslow", "throttle") as stand:
        yield stand


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

    def node(self, name: str) -> Any:
        return a_joined_node(self.stand, POOL, f"{self.name}-{name}", gpu_type=self.name)

    def submit(self, *, stubborn: bool = False, **spec: object) -> str:
        """Submit a job that ticks until `end`."""
        code = STUBBORN * stubborn + WORKER
        command = [sys.executable, "-ISc", code, str(self.folder), "1e6"]
        retry = {"max_attempts": 5, "avoid_failed_node": False}
        full = {"name": "job", "gang": {"workers": 1}, "grace_s": 1, "retry": retry, **spec}
        body = {"pool": POOL, "spec": {"command": command, "gpu_types": [self.name], **full}}
        status, ticket = self.stand.call("POST", "/v1/jobs", body, caller="ada")
        assert status == 202, ticket
        return str(ticket["job_id"])

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


@pytest.fixture
def pool(stand: Stand, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pool]:
    tmp_path.chmod(0o755)
    name = re.sub("[^a-z0-9]+", "-", request.node.name.removeprefix("test_")).strip("-")
    pool = Pool(stand, name, tmp_path)
    yield pool
    pool.end()
    pool.check()


@contextmanager
def frozen(node: NodeBench) -> Iterator[None]:
    """Pause the agent of a node inside the block."""
    assert node.process is not None
    node.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        node.process.send_signal(signal.SIGCONT)


def lease(node: NodeBench) -> dict[str, Any]:
    return files.read_json(str(node.run_folder / "lease.json")) or {}


def is_far(lease: dict[str, Any]) -> bool:
    """Return whether the deadline of a lease lies far beyond the silences of these tests."""
    deadline_ms = lease["deadline_boot_ms"]
    return deadline_ms is None or deadline_ms > boot_ms() + 10_000 * SILENCE_S


def step_of(node: JoinedNode, job_id: str) -> dict[str, Any]:
    [allocation_id] = node.workers_of(job_id)
    return node.step(allocation_id)


def is_alive(step: dict[str, Any]) -> bool:
    return processes.is_alive(step["pid"], step["ticks"])


def lose(stand: Stand, node: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cli", "nodes", "lost", node, *words]
    command += ["--data", str(stand.stack.data_dir)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_declared_lost(stand: Stand, pool: Pool) -> None:
    """A living node that an operator gives up ends its worker before the job runs again."""
    with pool.node("1") as node:
        job_id = pool.submit()
        pool.ticks(job_id)
        step = step_of(node, job_id)
        refused = lose(stand, node.node_id, "--powered-off")
        assert refused.returncode != 0 and is_alive(step)
        done = lose(stand, node.node_id, "--reason", "test")
        assert done.returncode == 0, done.stderr
        pool.ticks(job_id, attempt=2)
        assert not is_alive(step) and node.status()["generation"] == 2
        pool.end()
        assert stand.ended(job_id)["phase"] == "succeeded"


@pytest.mark.parametrize(("before", "after"), [(600, 5)])
def test_terms(stand: Stand, pool: Pool, before: object, after: object) -> None:
    """A worker outlives a silence that one of the terms it may run under permits."""
    pool.configure(stop_after_s=before)
    with pool.node("1") as node:
        job_id = pool.submit()
        pool.ticks(job_id)
        step, noted = step_of(node, job_id), lease(node)["terms_id"]
        pool.configure(stop_after_s=after)
        eventually(lambda: lease(node)["terms_id"] != noted and is_far(lease(node)))
        heard_ms = eventually(lambda: ms if (ms := lease(node)["sent_boot_ms"]) else None)
        with frozen(node):
            eventually(lambda: boot_ms() > heard_ms + 1000 * SILENCE_S)
            assert (row := node.row()) and row["state"] == "suspected" and is_alive(step)
        eventually(lambda: (row := node.row()) and row["state"] == "joined")
        pool.end()
        row = stand.ended(job_id)
        assert (row["phase"], row["attempt"]) == ("succeeded", 1)


def test_copied_state(stand: Stand, pool: Pool, tmp_path: Path) -> None:
    """Two agents with one identity disturb each other, and never hold one GPU both."""
    with pool.node("1") as node:
        job_id = pool.submit()
        pool.ticks(job_id)
        (tmp_path / "copy").mkdir(mode=0o755)
        copy = NodeBench(tmp_path / "copy", node.node_id)
        shutil.rmtree(copy.state)
        shutil.copytree(node.state, copy.state, ignore=shutil.ignore_patterns("wake", "lock"))
        generation = node.status()["generation"]
        copy.start()
        try:
            eventually(lambda: copy.status().get("generation", 0) > generation)
            eventually(lambda: node.status()["generation"] > generation)
        finally:
            copy.kill()
        alone_ms = boot_ms()
        eventually(lambda: any(use.first_ms > alone_ms for use in read_uses(pool.folder)))
        pool.end()
        assert stand.ended(job_id)["phase"] == "succeeded"


def test_half_a_gang(stand: Stand, pool: Pool) -> None:
    """A gang of which one node is silent before it starts does not run in part."""
    with pool.node("1") as sound, pool.node("2") as silent:
        gang = {"workers": 2, "gpus_per_worker": 2}
        with frozen(silent):
            job_id = pool.submit(gang=gang)
            eventually(lambda: sound.workers_of(job_id))
            eventually(lambda: (row := silent.row()) and row["state"] == "lost")
            assert not list(pool.folder.iterdir())
        job = eventually(lambda: row if (row := stand.job(job_id)) and row["attempt"] > 1 else None)
        pool.ticks(job_id, job["attempt"], workers=4)
        pool.end()
        assert stand.ended(job_id)["phase"] == "succeeded"


def test_preempted_and_cut(stand: Stand, pool: Pool) -> None:
    """A grace that is longer than the lease does not outlive it."""
    with pool.node("1") as node:
        gang = {"workers": 1, "gpus_per_worker": 2}
        victim = pool.submit(stubborn=True, gang=gang, grace_s=300, priority_class="low")
        pool.ticks(victim, workers=2)
        [allocation_id] = node.workers_of(victim)
        step = node.step(allocation_id)
        urgent = pool.submit(gang=gang, priority_class="high")
        eventually((node.folder(allocation_id) / "tombstone").exists)
        with frozen(node):
            eventually(lambda: not is_alive(step))
        pool.ticks(urgent, workers=2)
        pool.end()
        assert stand.ended(urgent)["phase"] == stand.ended(victim)["phase"] == "succeeded"


def test_verified(stand: Stand) -> None:
    """The log of all that is sound."""
    assert stand.verify().violations == []
