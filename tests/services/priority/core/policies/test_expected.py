"""Expected rest and Gittins rank of the jobs of a view."""

from __future__ import annotations

import numpy as np
import pytest

from services.priority.core.history.distributions import (
    BINS,
    PRIOR,
    VALUES,
    gittins_of,
    mean_left_of,
)
from services.priority.core.policies import expected
from tests.services.priority.core.queues import view_of


@pytest.mark.parametrize("count", [2, expected.FEW + 2])
def test_a_working_job_is_estimated_anew_and_an_idle_one_as_it_stopped(count: int) -> None:
    attained_s = np.linspace(0.0, 500.0, count)
    since_go_s = np.where(np.arange(count) == 0, 0.0, 1.0)
    view = view_of(
        rows=np.arange(count),
        distributions=np.tile(PRIOR, (count, 1)),
        attained_s=attained_s,
        since_go_s=since_go_s,
        left_kept_s=np.full(count, 7.0),
        gittins_kept_s=np.full(count, 8.0),
    )
    p = PRIOR.tolist()
    working_s = attained_s.tolist()[1:]
    assert expected.left_s(view).tolist() == [7.0, *(mean_left_of(p, s) for s in working_s)]
    assert expected.gittins_s(view).tolist() == [8.0, *(gittins_of(p, s) for s in working_s)]


@pytest.mark.parametrize("count", [1, expected.FEW])
def test_a_job_that_outlived_all_samples_is_expected_to_run_as_long_again(count: int) -> None:
    p = np.zeros((count, BINS))
    p[:, 3] = 1.0
    assert expected.mean_left(p, np.full(count, 100.0)).tolist() == [101.0] * count
    assert expected.mean_left(p, np.zeros(count)).tolist() == [VALUES[3]] * count
