"""Fencing on real agents in a whole stack: workers note who holds which GPU, and no two ever do."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import psutil
import pytest

from benchmarks.parts.chaos.nodes.ticks import boot_ms, read_uses
from tests.agent.hanging_file import a_hanging_file
from tests.agent.node_bench import NodeBench
from tests.e2e.stand import ENDS, Stand, eventually
from tests.fencing.pool import (
    SILENCE_S,
    Pool,
    berth,
    frozen,
    is_alive,
    is_far,
    lease,
    lose,
    step_of,
)
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.parts, pytest.mark.stack]


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may make namespaces")


def test_a_node_that_is_given_up_ends_its_worker_first(stand: Stand, pool: Pool) -> None:
    with pool.node("1") as node:
        job_id = pool.submit()
        pool.ticks(job_id)
        step = step_of(node, job_id)
        refused = lose(stand, node.node_id, "--powered-off")
        assert refused.returncode != 0 and is_alive(step)
        done = lose(stand, node.node_id, "--reason", "test")
        assert done.returncode == 0, done.stderr
        assert "It is alive: its agent ends all of its workers, joins anew" in done.stdout
        pool.ticks(job_id, attempt=2)
        eventually(lambda: not is_alive(step))
        assert node.status()["generation"] == 2
        rejoined = "joined anew after it was declared lost"
        eventually(lambda: rejoined in berth(stand, "nodes", "show", node.node_id).stdout)
        named = berth(stand, "events", "--types", "node.lost.v1", "--subject", node.node_id)
        assert "alive: its agent ends all" in named.stdout and "; test" in named.stdout
        pool.end()
        assert stand.ended(job_id)["phase"] == "succeeded"


def copied(node: NodeBench, folder: Path) -> NodeBench:
    """Return a node that has a copy of the state of another one."""
    folder.mkdir(mode=0o755)
    copy = NodeBench(folder, node.node_id)
    shutil.rmtree(copy.state)
    shutil.copytree(node.state, copy.state, ignore=shutil.ignore_patterns("wake", "lock"))
    return copy


@pytest.mark.parametrize(("before", "after"), [(6, "keep"), (600, 5)])
def test_a_worker_outlives_a_permitted_silence(
    stand: Stand, pool: Pool, before: object, after: object
) -> None:
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


def test_agents_with_one_identity_share_no_gpu(stand: Stand, pool: Pool, tmp_path: Path) -> None:
    """On one machine the second is refused where it starts, and nothing of the first ends."""
    with pool.node("1") as node:
        job_id = pool.submit()
        pool.ticks(job_id)
        step, generation = step_of(node, job_id), node.status()["generation"]
        refused = copied(node, tmp_path / "copy").call("run")
        assert refused.returncode == 1 and "berth nodes token" in refused.stderr
        assert is_alive(step) and node.status()["generation"] == generation
        pool.end()
        row = stand.ended(job_id)
        assert (row["phase"], row["attempt"]) == ("succeeded", 1)


@as_root
def test_a_copied_disk_in_another_machine_takes_no_gpu(
    stand: Stand, pool: Pool, tmp_path: Path
) -> None:
    """It gets no session while the original lives, whose jobs go on."""
    with pool.node("1") as node:
        kept = pool.submit()
        pool.ticks(kept)
        step, generation = step_of(node, kept), node.status()["generation"]
        copy = copied(node, tmp_path / "copy")
        copy.move()
        copy.start()
        try:
            eventually(lambda: "cloned_identity" in copy.status().get("problem", ""))
            assert node.status()["executor"] and is_alive(step)
            shown = eventually(lambda: (row := node.row()) and row["problems"])
            assert [problem["problem"] for problem in shown] == ["cloned_identity"]
            later = pool.submit()
            pool.ticks(later)
            assert is_alive(step) and is_alive(step_of(node, later))
            assert node.status()["generation"] == generation and not copy.status()["executor"]
        finally:
            copy.kill()
        pool.end()
        for job_id in (kept, later):
            row = stand.ended(job_id)
            assert (row["phase"], row["attempt"]) == ("succeeded", 1)


def is_hanging(node: NodeBench) -> bool:
    """Return whether a worker of the node waits uninterruptibly."""
    states = [psutil.Process(pid).status() for pid in node.living()]
    return psutil.STATUS_DISK_SLEEP in states


def test_a_gpu_is_not_offered_while_its_worker_hangs_in_a_read(
    stand: Stand, pool: Pool, tmp_path: Path
) -> None:
    """[R20] A read that its file system never answers outlives SIGKILL and the incarnation."""
    with pool.node("1", kill_s=1.0) as node, a_hanging_file(tmp_path / "hangs") as file:
        stuck = pool.submit(reads=file.path)
        pool.ticks(stuck)
        assert file.hangs.wait(PATIENCE_S)
        [held] = read_uses(pool.folder)
        lose(stand, node.node_id, "--reason", "test")
        pool.ticks(stuck, attempt=2)
        later = pool.submit()
        eventually(lambda: (row := node.row()) and row["state"] == "joined")
        [worker] = [w for w in node.status()["workers"] if w["phase"] == "stuck"]
        assert worker["gpus"] == [held.gpu] and is_hanging(node)
        pool.end()
        for job_id in (stuck, later):
            assert stand.ended(job_id)["phase"] == "succeeded"
        assert [use.gpu for use in read_uses(pool.folder)].count(held.gpu) == 1


def test_nothing_starts_on_missing_gpus(stand: Stand, pool: Pool) -> None:
    with pool.node("1") as node:
        kept = pool.submit()
        pool.ticks(kept)
        step = step_of(node, kept)
        node.kill()
        node.settings["gpus"] = 1
        node.start()
        eventually(lambda: node.status()["workers"])
        waiting = pool.submit()
        eventually(lambda: "no_such_gpu" in node.status().get("draining", ""))
        assert is_alive(step) and (row := stand.job(waiting)) and row["phase"] not in ENDS
        pool.end()
        assert stand.ended(kept)["attempt"] == 1
        eventually(lambda: (row := node.row()) and not row["alive"])
        node.kill(signal.SIGTERM)
        node.start()
        assert stand.ended(waiting)["phase"] == "succeeded"
        assert (row := node.row()) and row["gpus"] == 1


def test_a_node_that_never_gets_ready_is_avoided(stand: Stand, pool: Pool, tmp_path: Path) -> None:
    """It sends heartbeats, takes its order, and never answers it: its prolog hangs."""
    pool.configure(stop_after_s=600, start_timeout_s=4)
    prolog = tmp_path / "prolog"
    prolog.write_text("#!/bin/sh\nexec sleep 600\n")
    prolog.chmod(0o755)
    with pool.node("1", gpus=1, prolog=str(prolog), hook_s=600.0) as mute:
        held_up = pool.submit()
        eventually(lambda: mute.workers_of(held_up))
        with pool.node("2") as sound:
            other = pool.submit()
            pool.ticks(other)
            assert sound.workers_of(other) and stand.job(held_up)["attempt"] == 1  # type: ignore[index]
            eventually(lambda: sound.workers_of(held_up))
            eventually(lambda: not mute.workers_of(held_up) and not mute.living())
            why = stand.get(f"/v1/jobs/{held_up}/why") or {}
            data = [row["data"] for row in why["items"] if row["type"] == "job.start-failed.v1"]
            assert [(one["reason"], one["node_ids"]) for one in data] == [
                ("start_timeout", [mute.node_id])
            ]
            assert (row := mute.row()) and row["state"] == "joined"
            pool.end()
            for job_id in (held_up, other):
                assert stand.ended(job_id)["phase"] == "succeeded"


def test_a_grace_ends_with_the_lease(stand: Stand, pool: Pool) -> None:
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
