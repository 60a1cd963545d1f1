"""History: the array forms agree with the scalar functions bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from services.priority.core.history import distributions as history
from services.priority.core.history.distributions import BINS, FADE, TRUST, Floats, History
from services.priority.core.history.job_groups import HistoryGroup, groups
from services.priority.core.policies import expected


def scalar_estimate(counts: dict[HistoryGroup, Floats], *job: object) -> Floats:
    p: Floats = np.zeros(BINS)
    history.fill_prior(p)
    for group, trust in zip(groups(*job), TRUST, strict=True):
        if group in counts:
            history.shrink(counts[group], trust, p)
    return p


def test_learning_and_estimating_by_arrays_is_learning_and_estimating_bin_by_bin() -> None:
    rng = np.random.default_rng(3)
    known, counts = History(), dict[HistoryGroup, Floats]()
    for n in range(400):
        job = (f"t{n % 3}", f"u{n % 7}", f"run-{n % 5}", float(1 << n % 4))
        seconds = float(rng.lognormal(5, 3))
        known.learn(*job, seconds)
        for group, fade in zip(groups(*job), FADE, strict=True):
            if group is not None:
                history.add_sample(
                    counts.setdefault(group, np.zeros(BINS)), history.bin_of(seconds), fade
                )
    for n in range(30):
        job = (f"t{n % 4}", f"u{n % 8}", f"run-{n % 6}", float(1 << n % 5))
        result, p = known.estimate(*job), scalar_estimate(counts, *job)
        assert result.p.tolist() == p.tolist()
        assert result.mean_s == history.mean_left_s(p, 0.0)
        assert [result.p10_s, result.p50_s, result.p90_s] == [
            history.quantile_s(p, q) for q in (0.1, 0.5, 0.9)
        ]
        assert result.gittins_s == history.gittins_s(p, 0.0)


@pytest.mark.parametrize("jobs", [0, 3, expected.FEW, 500])
def test_expectations_of_many_jobs_are_those_of_each(jobs: int) -> None:
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.full(BINS, 0.3), jobs) if jobs else np.zeros((0, BINS))
    p[: jobs // 10, 20:] = 0.0
    attained = rng.lognormal(6, 3, jobs)
    attained[: jobs // 20] = [float(1 << n % 20) for n in range(jobs // 20)]
    left, gittins = expected.mean_left(p, attained), expected.gittins(p, attained)
    for i, seconds in enumerate(attained.tolist()):
        assert left[i] == history.mean_left_s(p[i], seconds)
        assert gittins[i] == history.gittins_s(p[i], seconds)


def test_similar_jobs_are_estimated_by_their_name_and_others_by_their_tenant() -> None:
    known = History()
    for n in range(50):
        known.learn("red", "u", f"train-{n}", 1.0, 100.0)
        known.learn("red", "v", f"sweep-{n}", 1.0, 10_000.0)
    assert known.estimate("red", "u", "train-99", 1.0).p50_s == pytest.approx(100, rel=0.5)
    assert known.estimate("red", "v", "sweep-99", 1.0).p50_s == pytest.approx(10_000, rel=0.5)
    assert known.estimate("red", "w", "other", 1.0).samples > 0
