"""Scalar keys of the base policies, by numbers worked out by hand."""

from __future__ import annotations

import pytest

from services.priority.core.policies import keys


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (keys.fcfs(7.0), 7.0),
        (keys.smallest_first(4.0), 4.0),
        (keys.sjf(60.0), 60.0),
        (keys.saf(60.0, 8.0), 480.0),
        (keys.f1(1000.0, 8.0, 10.0), 894.0),
        (keys.wfp3(100.0, 50.0, 2.0), -16.0),
        (keys.unicep(600.0, 100.0, 4.0), -3.0),
        (keys.multifactor(21_600.0, 4.0, 16.0, 0.25), -1500.0),
        (keys.srtf(30.0), 30.0),
        (keys.srsf(30.0, 2.0), 60.0),
    ],
)
def test_keys_are_those_of_the_papers(key: float, value: float) -> None:
    assert key == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(
    ("attained_gpu_s", "queue"), [(0, 0), (3_249, 0), (3_250, 1), (7_200, 2), (18_000, 3), (1e9, 3)]
)
def test_las_has_four_queues(attained_gpu_s: float, queue: float) -> None:
    assert keys.las(attained_gpu_s) == queue


def test_the_base_decides_within_a_band_and_never_across_bands() -> None:
    assert keys.banded(0.1, 5.0, 0.5) > keys.banded(0.4, -5.0, 0.5)
    assert keys.banded(0.4, 1e12, 0.5) < keys.banded(0.6, -1e12, 0.5)
