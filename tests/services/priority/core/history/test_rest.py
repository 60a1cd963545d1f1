"""The pass over a list gives what the scalar functions of `history` give, bit for bit."""

from __future__ import annotations

import random

import numpy as np
import pytest

from services.priority.core.history.distributions import (
    BINS,
    PRIOR,
    gittins_of,
    mean_left_and_gittins_s,
    mean_left_of,
)
from services.priority.core.history.rest import rest_of

ATTAINED_S = (0.0, 0.5, 1.0, 700.0, 3600.0, 1e6, 1e9)


@pytest.mark.parametrize("seed", range(20))
def test_both_numbers_are_those_of_history(seed: int) -> None:
    rng = random.Random(seed)
    share_of_zeros = rng.random()
    chances = [0.0 if rng.random() < share_of_zeros else rng.random() for _ in range(BINS)]
    for attained_s in ATTAINED_S:
        expected = (mean_left_of(chances, attained_s), gittins_of(chances, attained_s))
        assert rest_of(chances, attained_s) == expected
        assert mean_left_and_gittins_s(np.array(chances), attained_s) == expected


@pytest.mark.parametrize("chances", [[0.0] * BINS, PRIOR.tolist()])
def test_a_job_without_chances_or_history_has_them_as_well(chances: list[float]) -> None:
    for attained_s in ATTAINED_S:
        expected = (mean_left_of(chances, attained_s), gittins_of(chances, attained_s))
        assert rest_of(chances, attained_s) == expected
