from __future__ import annotations

import pytest

from benchmarks.parts.schedulers.over_seeds import gain_of, interval


def test_an_interval_holds_the_mean() -> None:
    figures = interval([4.0, 5.0, 6.0, 5.0])
    assert 4.0 <= figures["low"] < figures["mean"] == 5.0 < figures["high"] <= 6.0


def test_a_gain_is_paired_by_seed() -> None:
    """Ours takes half as long with each seed, so the interval has no width."""
    gain = gain_of(interval([4.0, 8.0, 2.0]), interval([2.0, 4.0, 1.0]))
    assert gain == {"mean": pytest.approx(0.5, abs=1e-3), "low": 0.5, "high": 0.5}
