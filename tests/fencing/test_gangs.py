"""Gangs of which a node is cut off before its workers are ready, before they may go, or later."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.parts.chaos.nodes.ticks import read_uses
from tests.e2e.joined import JoinedNode
from tests.e2e.stand import Stand, eventually
from tests.fencing.pool import Pool, frozen, is_alive, step_of

pytestmark = [pytest.mark.parts, pytest.mark.stack]
WORKERS, GPUS = 4, 2
"""Of a gang of eight GPUs: each worker has all GPUs of a node."""


class ReadyGang(NamedTuple):
    """A job of which all workers but one are ready; that one is prepared once `passes` is there."""

    job_id: str
    ready: JoinedNode
    passes: Path


@contextmanager
def a_ready_gang(pool: Pool, folder: Path) -> Iterator[ReadyGang]:
    """Run four nodes; the prolog of the last one waits, so that no worker may go."""
    passes, prolog = folder / "passes", folder / "prolog"
    prolog.write_text(f"#!/bin/sh\nuntil [ -e {passes} ]; do sleep 0.05; done\n")
    prolog.chmod(0o755)
    slow = {"prolog": str(prolog), "hook_s": 600.0}
    with ExitStack() as running:
        nodes = [running.enter_context(pool.node(str(n))) for n in range(1, WORKERS)]
        nodes.append(running.enter_context(pool.node(str(WORKERS), **slow)))
        job_id = pool.submit(gang={"workers": WORKERS, "gpus_per_worker": GPUS})

        def are_ready() -> bool:
            return all(is_ready(node, job_id) for node in nodes[:-1])

        eventually(are_ready)
        yield ReadyGang(job_id, nodes[0], passes)
        pool.end()


def is_ready(node: JoinedNode, job_id: str) -> bool:
    """Return whether the worker of a node is ready, and the executor knows it."""
    status = node.status()
    mine = [worker for worker in status["workers"] if worker["job_id"] == job_id]
    return [worker["phase"] for worker in mine] == ["prepared"] and not status["reports_waiting"]


def test_a_node_that_is_cut_off_between_ready_and_go_starts_nothing(
    stand: Stand, pool: Pool, tmp_path: Path
) -> None:
    """Its order to go waits in the connection until the lease is over."""
    with a_ready_gang(pool, tmp_path) as gang:
        with frozen(gang.ready):
            gang.passes.touch()
            pool.ticks(gang.job_id, workers=(WORKERS - 1) * GPUS)
            eventually(lambda: (row := gang.ready.row()) and row["state"] == "lost")
        pool.ticks(gang.job_id, attempt=2, workers=WORKERS * GPUS)
        first = [use.node for use in read_uses(pool.folder) if use.run == (gang.job_id, 1)]
        assert first and gang.ready.node_id not in first
        pool.end()
        row = stand.ended(gang.job_id)
        assert (row["phase"], row["attempt"]) == ("succeeded", 2)


def test_a_node_that_is_back_within_its_lease_goes_with_its_gang(
    stand: Stand, pool: Pool, tmp_path: Path
) -> None:
    pool.configure(stop_after_s=600)
    with a_ready_gang(pool, tmp_path) as gang:
        with frozen(gang.ready):
            gang.passes.touch()
            pool.ticks(gang.job_id, workers=(WORKERS - 1) * GPUS)
        pool.ticks(gang.job_id, workers=WORKERS * GPUS)
        pool.end()
        row = stand.ended(gang.job_id)
        assert (row["phase"], row["attempt"]) == ("succeeded", 1)


def test_half_a_gang_does_not_run(stand: Stand, pool: Pool) -> None:
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


def test_a_gang_that_loses_a_node_runs_again_as_a_whole(stand: Stand, pool: Pool) -> None:
    with pool.node("1") as sound, pool.node("2") as silent:
        job_id = pool.submit(gang={"workers": 2, "gpus_per_worker": 2})
        pool.ticks(job_id, workers=4)
        halves = [step_of(node, job_id) for node in (sound, silent)]
        with frozen(silent):
            eventually(lambda: (row := silent.row()) and row["state"] == "lost")
            eventually(lambda: not any(map(is_alive, halves)))
        pool.ticks(job_id, attempt=2, workers=4)
        pool.end()
        row = stand.ended(job_id)
        assert (row["phase"], row["attempt"]) == ("succeeded", 2)
