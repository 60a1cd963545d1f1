"""Numbers drawn for jobs are the same for every number of jobs, and independent by stream."""

from __future__ import annotations

import numpy as np

from simulator.workload.draws import draw_normal, draw_uniform


def test_a_job_draws_the_same_however_many_jobs_there_are() -> None:
    assert draw_uniform(1000)[:10].tolist() == draw_uniform(10).tolist()
    assert draw_normal(1000, 1)[:10].tolist() == draw_normal(10, 1).tolist()


def test_streams_are_uncorrelated() -> None:
    first, second = draw_uniform(20_000), draw_uniform(20_000, 1)
    assert first.min() >= 0.0 and first.max() < 1.0
    assert abs(float(np.corrcoef(first, second)[0, 1])) < 0.03


def test_the_normal_draws_have_its_moments() -> None:
    drawn = draw_normal(20_000, 3)
    assert abs(float(drawn.mean())) < 0.03 and abs(float(drawn.std()) - 1.0) < 0.03
