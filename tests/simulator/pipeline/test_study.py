"""The speed-ups of adapted schedules by the delay of one link."""

from __future__ import annotations

import pytest

from simulator.pipeline import figures
from simulator.pipeline.study import gaps


def test_speed_ups_are_those_of_the_published_simulation() -> None:
    """Its figures are 1.00, 1.41 and 1.96."""
    assert figures() == {"1": 1.0, "3": 1.407, "6": 1.965}


@pytest.mark.parts
def test_adapted_schedules_are_within_two_percent_of_the_exact_solver() -> None:
    measured = gaps()
    assert len(measured) == 100
    assert max(measured) <= 0.02
    assert sum(measured) / len(measured) <= 0.002
