"""The rule that turns a number of GPUs into a gang."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.job_spec import Gang
from simulator.workload.rows import make_gang


@pytest.mark.parametrize(
    ("gpus", "shape"),
    [
        (0, (1, 0)),
        (0.5, (1, 0.5)),
        (1, (1, 1)),
        (7, (1, 7)),
        (8, (1, 8)),
        (12, (3, 4)),
        (16, (2, 8)),
        (17, (17, 1)),
        (50, (25, 2)),
        (1.5, (2, 0.75)),
    ],
)
def test_gpus_become_a_gang_by_the_documented_rule(gpus: float, shape: tuple[int, float]) -> None:
    assert make_gang(gpus) == shape


@given(st.integers(0, 4096))
def test_a_whole_number_of_gpus_is_kept_exactly(gpus: int) -> None:
    workers, each = make_gang(gpus)
    assert workers * each == gpus
    assert each <= 8


@given(st.floats(0.01, 4096))
def test_a_fraction_of_gpus_is_kept_and_the_job_contract_accepts_it(gpus: float) -> None:
    workers, each = make_gang(gpus)
    accepted = Gang(workers=workers, gpus_per_worker=each)
    assert workers * each == pytest.approx(gpus)
    assert accepted.gpus == pytest.approx(gpus, abs=0.0006 * workers)
