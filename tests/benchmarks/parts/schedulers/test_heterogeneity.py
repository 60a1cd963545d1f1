from __future__ import annotations

import pytest

from benchmarks.parts.schedulers.heterogeneity import TypesGain, summed


@pytest.mark.parametrize(("aware_jct_h", "is_met"), [(7.2, False), (6.8, True)])
def test_the_gain_is_that_of_the_mean_over_parts(aware_jct_h: float, is_met: bool) -> None:
    gains = [TypesGain(0, 10, 4.0, 3.0, 2.0, -0.5), TypesGain(9, 10, 9.0, 7.4, aware_jct_h, 0.0)]
    total = summed(gains)
    assert total["gain"] == pytest.approx((2.0 + aware_jct_h) / 13.0 - 1.0, abs=0.001)
    assert total["published_gain"] == pytest.approx(-0.2, abs=0.001)
    assert total["met"] is is_met
