from __future__ import annotations

from services.placement.core.pool.job import Job
from services.placement.core.pool.queue import UNRANKED
from services.placement.core.pool.shape import shape_of, tier_of
from tests.services.placement.core.lane import job


def made(**more: object) -> Job:
    spec = job("a", **more).spec  # type: ignore[arg-type]
    return Job("a", "t", 7, None, spec, shape_of(spec), tier_of(spec), 1, 0)


def test_a_job_that_never_started_has_run_for_no_time() -> None:
    waiting = made()
    assert waiting.ran_ms(5000) == 0 and waiting.gpu_s(5000) == 0
    waiting.started_at, waiting.gpus = 1000, 2.0
    assert waiting.ran_ms(5000) == 4000 and waiting.gpu_s(5000) == 8.0


def test_the_estimate_is_the_walltime_on_the_pools_clock() -> None:
    assert made().estimate_ms(1.0) is None
    assert made(walltime_s=100).estimate_ms(10.0) == 10_000


def test_a_predicted_run_time_is_at_most_what_the_user_estimates() -> None:
    job = made(walltime_s=100)
    job.predicted_s = 60.0
    assert job.estimate_ms(1.0) == 60_000
    job.predicted_s = 600.0
    assert job.estimate_ms(1.0) == 100_000


def test_a_higher_score_comes_first_and_an_unranked_job_last() -> None:
    job_ = made()
    assert job_.queue_key({"a": 2.0}) < job_.queue_key({"a": 1.0}) < job_.queue_key({})
    assert job_.queue_key({}).negated_score == UNRANKED


def test_a_preemption_before_the_start_costs_nothing() -> None:
    placed = made()
    placed.set_back(1000, 1.0)
    assert (placed.debt_ms, placed.resumes) == (0, False)
    placed.started_at = 1000
    placed.set_back(3000, 1.0)
    assert (placed.debt_ms, placed.resumes) == (2000, True)
