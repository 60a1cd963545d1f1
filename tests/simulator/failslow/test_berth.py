from __future__ import annotations

import pytest

from simulator.failslow import berth, suite
from simulator.failslow.scores import score_all


@pytest.mark.slow
@pytest.mark.parametrize("jitter", [1, 2, 4])
def test_the_suite_of_the_card_is_judged_better_than_by_its_best_detector(jitter: int) -> None:
    jobs = list(suite.draw_falcon(jitter, range(1000, 1025)))
    plain = score_all(jobs, berth.detect(jobs)).plain()
    assert plain["precision"] is not None and plain["precision"] >= 0.98
    assert plain["recall"] is not None and plain["recall"] >= 0.97
    assert plain["median_delay_iterations"] is not None and plain["median_delay_iterations"] <= 6


def test_masked_iterations_are_not_observed() -> None:
    job = suite.draw_job(1, 5, 1)
    slower = job.seconds.copy()
    slower[job.masked] *= 100
    again = type(job)(job.job, job.iteration, slower, job.tokens, job.masked, job.labels)
    assert berth.detect([again]) == berth.detect([job])


def test_jobs_of_different_lengths_are_followed_together() -> None:
    jobs = list(suite.draw_suite(1, range(2)))
    together = berth.detect(jobs)
    assert [len(own) for own in together] == [len(berth.detect([job])[0]) for job in jobs]
