"""Ranks of a gang over its nodes."""

from __future__ import annotations

from tests.services.executor.core.agents.history import allocation, running


def test_workers_know_their_place_in_the_gang() -> None:
    workers = running().state.workers
    places = [
        (w.rank, w.local_rank, w.local_world_size, w.node_rank, w.nodes, w.world_size)
        for w in (workers[allocation(rank)].launch for rank in range(3))
    ]
    assert places == [(0, 0, 1, 0, 2, 3), (1, 0, 2, 1, 2, 3), (2, 1, 2, 1, 2, 3)]


def test_a_launch_has_what_the_worker_needs() -> None:
    launch = running().state.workers[allocation(1)].launch
    assert launch.workdir == "/shared/train"
    assert (launch.command, launch.env) == (("python", "train.py"), {"A": "1"})
    assert (launch.gpus, launch.cpus, launch.mem_gib) == ((0,), 4, 16)
    assert (launch.master_addr, launch.tenant, launch.attempt) == ("n2.example", "ada", 1)
