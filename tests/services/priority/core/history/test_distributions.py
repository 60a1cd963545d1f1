"""Expectations of many jobs agree with the scalar functions bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from services.priority.core.history import distributions as history
from services.priority.core.history.distributions import BINS
from services.priority.core.policies import expected


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
