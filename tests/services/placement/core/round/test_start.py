from __future__ import annotations

from services.placement.core.pool.shape import GPU, Slot
from services.placement.core.round.plan import Assignment, Plan
from services.placement.core.round.start import placement_terms, rank_terms, start_job
from services.placement.core.round.view import View, view_of
from shared.contracts.placement import JobPlaced
from tests.services.placement.core.lane import Lane, job, lane


def contended() -> Lane:
    """`run` holds half of the node; `a` waits."""
    pool = lane("n1", gpus=8)
    pool.run(job("run", 4))
    pool.submit(job("a", 8))
    return pool


def view(pool: Lane) -> View:
    return view_of(pool.state, pool.now)


def assignment(pool: Lane) -> Assignment:
    return Assignment(pool.job("a"), [Slot("n1", (4, 5), GPU, 2000, 1024)], 0, 2)


def test_a_start_names_its_planner_and_the_model_only_where_it_ranked_the_job() -> None:
    pool = contended()
    ranked = view(pool)._replace(order="gittins", scores={"a": 2.5}, model="m")
    for given, score, model in ((ranked, 2.5, "m"), (ranked._replace(scores={}), None, "")):
        placed = start_job(given, pool.job("a"), (), "cpsat", {"position": 0.0}, "late").event
        assert isinstance(placed, JobPlaced)
        assert (placed.policy, placed.solver) == ("gittins+cpsat", "late")
        assert (placed.score, placed.model_sha256) == (score, model)


def test_the_terms_of_a_start_name_the_share_of_a_gpu_and_a_slow_node() -> None:
    pool = contended()
    whole = placement_terms(view(pool), Plan(waiting=3), assignment(pool))
    assert whole == {"position": 0.0, "waiting": 3.0, "nodes": 1.0, "node_gpus_left": 2.0}
    pool.state.board.suspect("n1", "f1", 2.0, None)
    share = assignment(pool)._replace(slots=[Slot("n1", (4,), 250, 1000, 1024)])
    terms = placement_terms(view(pool), Plan(), share)
    assert (terms["share_milli"], terms["health"]) == (250.0, 0.5)


def test_the_age_of_the_ranks_is_given_once_there_are_some() -> None:
    pool = contended()
    assert rank_terms(view(pool)) == {}
    pool.rank("a")
    aged = view_of(pool.state, pool.now + 2500)
    assert rank_terms(aged) == {"rank_age_s": 2.5, "rank_stale": 0.0}
