"""Workers that leave a node: which of a gang move, and where there is room for them."""

from __future__ import annotations

from services.placement.core.migration.drain import relocate, room_elsewhere, with_workers
from services.placement.core.pool.allocations import slots_by_rank
from services.placement.core.pool.trial import Trial
from shared.contracts.nodes import CordonNode
from tests.services.placement.core.lane import Lane, job, lane


def out_of_use(*nodes: str) -> Lane:
    """Return a pool with a gang of two workers of 8 GPUs, on nodes a and b; a is cordoned."""
    pool = lane(*nodes)
    pool.run(job("j", 8, workers=2))
    pool.command(CordonNode(node_id="a"))
    return pool


def new_nodes(pool: Lane) -> list[str]:
    with Trial(pool.state.board) as trial:
        return [slot.node_id for slot in relocate(trial, pool.job("j"))]


def test_only_workers_on_nodes_out_of_use_get_a_new_slot() -> None:
    pool = out_of_use("a", "b", "c")
    before = [slot.node_id for slot in slots_by_rank(pool.job("j"))]
    assert sorted(before) == ["a", "b"]
    assert new_nodes(pool) == ["c" if name == "a" else name for name in before]


def test_a_gang_stays_together_where_one_worker_has_no_room() -> None:
    assert new_nodes(out_of_use("a", "b")) == []


def test_two_jobs_do_not_get_the_same_room() -> None:
    pool = lane("a", gpus=8)
    pool.run(job("first", 4))
    pool.run(job("second", 4))
    pool.node("b", 4)
    pool.command(CordonNode(node_id="a"))
    jobs = [pool.job("first"), pool.job("second")]
    assert list(room_elsewhere(pool.state, jobs, pool.now)) == ["first"]


def test_a_shape_of_so_many_workers_is_otherwise_the_same() -> None:
    pool = lane("a", "b")
    pool.run(job("j", 8, workers=2))
    two = pool.job("j").shape
    one = with_workers(two, 1)
    assert (one.min_workers, one.max_workers) == (1, 1)
    assert with_workers(one, 2) == two
