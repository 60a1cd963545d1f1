"""A request of the instance: where a job may run, how fast, and its worth."""

from __future__ import annotations

from services.placement.core.round.view import view_of
from services.placement.core.solver.gang_requests import HOMES, RequestBuilder, plain_request
from services.placement.core.solver.node_classes import group_nodes
from services.placement.core.solver.speeds import may_run_on
from tests.services.placement.core.lane import job, lane, registered
from tests.services.placement.core.solver.rounds import exported, preempting, window_of


def test_a_type_that_the_job_does_not_allow_is_none_of_its_classes() -> None:
    pool = lane("x", solver="cpsat")
    pool.submit(job("a", gpu_types=("other",)), job("b"))
    shapes = {name: one.shape for name, one in pool.state.jobs.items()}
    node = pool.state.board.nodes["x"]
    assert not may_run_on(shapes["a"], node) and may_run_on(shapes["b"], node)


def test_a_job_that_may_stop_another_names_its_victims_and_what_they_cost() -> None:
    instance = exported(preempting("x"))
    (request,) = instance.requests
    (victim,) = instance.victims
    assert request.victims == (0,) and victim.job_id == "low0"
    assert victim.price > victim.migration_price > 0
    assert not victim.request.classes, "no other node has room for it"


def test_of_very_many_classes_a_job_chooses_among_the_tightest() -> None:
    pool = lane(solver="cpsat")
    for gpus in range(1, HOMES + 9):
        pool.report(registered(f"n{gpus:02d}", gpus))
    pool.submit(job("a"), job("b", 64, workers=64), job("c"))
    view = view_of(pool.state, pool.now)
    with window_of(pool) as (window, _):
        builder = RequestBuilder(view, window, {}, group_nodes(view.board, window, {}))
        homes = dict.fromkeys(range(HOMES + 8), 1000)
        best = builder.best(plain_request(pool.job("c"), pool.job("c").shape), homes)
    whole = sorted(builder.nodes.classes[number].whole for number in best)
    assert whole == list(range(1, HOMES // 2 + 1))
