"""The gang rule for a column is the gang rule for a job."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.workload.gangs import make_gangs, shape_gangs
from simulator.workload.rows import make_gang

GPUS = st.one_of(st.integers(0, 5000).map(float), st.floats(0.01, 4096))


@given(st.lists(GPUS, max_size=50))
def test_a_column_of_gpus_becomes_the_gangs_of_its_jobs(gpus: list[float]) -> None:
    got = make_gangs(np.array(gpus, np.float64))
    assert list(zip(got.workers, got.gpus_per_worker, strict=True)) == [make_gang(g) for g in gpus]


@pytest.mark.parametrize(
    ("gpus", "declared", "shape"),
    [
        (16, math.nan, (2, 8)),
        (16, 4, (4, 4)),
        (16, 16, (16, 1)),
        (0.3, 3, (3, 0.1)),
        (3, 2, (4, 0.75)),
        (32, 2, (4, 8)),
        (0, 5, (5, 0)),
    ],
)
def test_declared_workers_are_kept_or_cut_alike(
    gpus: float, declared: float, shape: tuple[float, float]
) -> None:
    got = shape_gangs(np.array([gpus], np.float64), np.array([declared]))
    assert (got.workers[0], got.gpus_per_worker[0]) == shape
