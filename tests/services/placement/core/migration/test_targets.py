from __future__ import annotations

from services.placement.core.migration.targets import POLICY, can_land, land, targets_reserved
from shared.contracts.nodes import DrainNode
from shared.contracts.placement import JobPlaced
from tests.services.placement.core.lane import Lane, job, lane


def on_its_way() -> Lane:
    pool = lane("a", "b")
    pool.run(job("j", 4))
    pool.command(DrainNode(node_id="a"))
    return pool


def test_a_target_is_taken_on_the_board_while_the_reservation_is_open() -> None:
    pool = on_its_way()
    with targets_reserved(pool.state):
        assert pool.free("b") == [0, 0, 0, 0, 1000, 1000, 1000, 1000]
    assert pool.free("b") == [1000] * 8


def test_a_job_does_not_land_before_it_has_stopped() -> None:
    pool = on_its_way()
    assert list(land(pool.state, pool.now)) == []


def test_a_job_lands_on_its_target_with_the_terms_of_its_nodes() -> None:
    pool = on_its_way()
    (placed,) = [e for e in pool.stopped("j") if isinstance(e, JobPlaced)]
    assert (placed.policy, placed.terms) == (POLICY, {"nodes": 1.0, "gpus": 4.0, "health": 1.0})


def test_a_job_that_a_round_has_passed_over_lands_no_more() -> None:
    pool = on_its_way()
    target = pool.state.migrations["j"]
    waiting = pool.job("j")
    assert can_land(pool.state, waiting, target) == (waiting.round_no == pool.state.round_no)
    waiting.round_no = pool.state.round_no - 1
    assert not can_land(pool.state, waiting, target)
