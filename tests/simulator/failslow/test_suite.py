from __future__ import annotations

import numpy as np
import pytest

from simulator.failslow import suite


def test_a_job_is_drawn_again_from_its_seed() -> None:
    first, again = suite.draw_job(1, 3, 0), suite.draw_job(1, 3, 0)
    assert np.array_equal(first.seconds, again.seconds)
    assert first.labels == again.labels
    assert not np.array_equal(first.seconds[:50], suite.draw_job(1, 4, 0).seconds[:50])


def test_labels_are_within_the_job_and_apart() -> None:
    for job in suite.draw_suite(2, range(30)):
        for (_, end), (start, _) in zip(job.labels, job.labels[1:], strict=False):
            assert end < start
        for start, end in job.labels:
            assert 0 <= start < end < len(job.seconds)
            assert end - start + 1 >= suite.DURATION[0]


def test_the_suite_has_healthy_and_slow_jobs_and_all_their_traits() -> None:
    jobs = list(suite.draw_suite(1, range(30)))
    assert 0.25 < np.mean([not job.labels for job in jobs]) < 0.55
    assert any(job.masked.any() for job in jobs)
    assert any(len(set(job.tokens)) > 1 for job in jobs)
    assert any(len(job.labels) > 1 for job in jobs)
    assert max(job.seconds.min() for job in jobs) > 10 * min(job.seconds.min() for job in jobs)


@pytest.mark.parametrize("sd", [0.01, 0.08])
def test_the_jitter_has_the_standard_deviation_of_its_level(sd: float) -> None:
    rng = np.random.default_rng(0)
    drawn = np.concatenate([suite.draw_jitter(rng, 2000, sd) for _ in range(20)])
    assert np.std(drawn) == pytest.approx(sd, rel=0.1)
    assert np.mean(drawn) == pytest.approx(1, abs=sd / 10)


def test_the_slow_iterations_of_the_card_take_longer() -> None:
    slow = next(job for job in suite.draw_falcon(1, range(5)) if job.labels)
    start, end = slow.labels[0]
    assert np.median(slow.seconds[start : end + 1]) > 1.1 * np.median(slow.seconds[:start])
