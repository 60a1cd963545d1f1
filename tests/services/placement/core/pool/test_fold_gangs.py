from __future__ import annotations

from tests.services.placement.core.lane import exited, job, lane


def test_a_placed_job_takes_its_gpus_until_they_are_released() -> None:
    pool = lane("a")
    pool.run(job("j", 3))
    assert pool.free("a") == [0, 0, 0, *[1000] * 5]
    assert pool.state.board.nodes["a"].jobs == {"j": 1} and pool.job("j").gpus == 3
    pool.exited("j")
    assert pool.free("a") == [1000] * 8 and pool.state.board.nodes["a"].jobs == {}


def test_allocation_ids_are_the_place_of_the_fact_and_the_rank() -> None:
    pool = lane("a", "b")
    pool.submit(job("j", 8, workers=2))
    fact = next(fact for fact in pool.facts if type(fact.event).__name__ == "JobPlaced")
    assert list(pool.job("j").allocations) == [f"{fact.place}/0", f"{fact.place}/1"]


def test_the_first_worker_that_fails_names_exit_code_and_node() -> None:
    pool = lane("a", "b")
    pool.run(job("j", 8, workers=2))
    first, second = pool.ids_of("j")
    pool.report(exited(first, "j", 3))
    assert (pool.job("j").exit_code, pool.job("j").failed_node) == (3, "a")
    assert not pool.job("j").clean and list(pool.job("j").allocations) == [second]


def test_a_job_that_ended_leaves_no_trace() -> None:
    pool = lane("a")
    pool.run(job("j", 1, elastic={"min_workers": 1, "max_workers": 2}))
    pool.exited("j")
    state = pool.state
    assert not (state.jobs or state.running or state.waiting or state.elastic or state.starting)
