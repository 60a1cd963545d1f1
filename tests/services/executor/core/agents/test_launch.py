"""Ranks of a gang over its nodes."""

from __future__ import annotations

from tests.services.executor.core.agents.history import (
    ENQUEUED,
    PLACED,
    POOL,
    SPEC,
    History,
    allocation,
    joined,
    running,
)


def test_workers_know_their_place_in_the_gang() -> None:
    workers = running().state.workers
    places = [
        (w.rank, w.local_rank, w.local_world_size, w.node_rank, w.nodes, w.world_size)
        for w in (workers[allocation(rank)].launch for rank in range(3))
    ]
    assert places == [(0, 0, 1, 0, 2, 3), (1, 0, 2, 1, 2, 3), (2, 1, 2, 1, 2, 3)]


def test_the_only_worker_of_a_gang_starts_alone() -> None:
    gang = running().state.workers
    assert not any(gang[allocation(rank)].launch.starts_alone for rank in range(3))
    placed = PLACED.model_copy(update={"allocations": PLACED.allocations[:1]})
    history = History(POOL, joined("n1"), joined("n2"), ENQUEUED, placed)
    assert [w.launch.starts_alone for w in history.state.workers.values()] == [True]


def test_a_launch_has_what_the_worker_needs() -> None:
    launch = running().state.workers[allocation(1)].launch
    assert launch.workdir == "/shared/train"
    assert (launch.command, launch.env) == (("python", "train.py"), {"A": "1"})
    assert (launch.gpus, launch.cpus, launch.mem_gib) == ((0,), 4, 16)
    assert (launch.master_addr, launch.tenant, launch.attempt) == ("n2.example", "ada", 1)
    assert launch.user == "unknown", "the default of a specification"


def test_a_walltime_passes_on_the_time_scale_of_the_pool() -> None:
    spec = SPEC.model_copy(update={"walltime_s": 7200.0})
    for scale, wall_s in ((1.0, 7200.0), (60.0, 120.0)):
        history = History(
            POOL.model_copy(update={"time_scale": scale}),
            joined("n1"),
            joined("n2"),
            ENQUEUED.model_copy(update={"spec": spec}),
            PLACED,
        )
        assert {w.launch.walltime_s for w in history.state.workers.values()} == {wall_s}
    assert {w.launch.walltime_s for w in running().state.workers.values()} == {None}
