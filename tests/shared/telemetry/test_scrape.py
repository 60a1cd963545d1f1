"""Samples of a metrics exposition are summed and give quantiles by bucket."""

from __future__ import annotations

import pytest

from shared.telemetry.scrape import Scraped, quantile, samples_of

TEXT = """\
# TYPE wait_seconds histogram
wait_seconds_bucket{le="0.1"} 90
wait_seconds_bucket{le="1.0"} 99
wait_seconds_bucket{le="+Inf"} 100
# TYPE jobs gauge
jobs{pool="a"} 3
jobs{pool="b"} 4
"""


def test_series_are_summed_and_compared() -> None:
    scraped = Scraped("placement", samples_of(TEXT))
    assert (scraped.total("jobs"), scraped.maximum("jobs")) == (7, 4)
    assert (scraped.total("absent"), scraped.maximum("absent")) == (None, None)


@pytest.mark.parametrize(("share", "bound"), [(0.5, 0.1), (0.95, 1.0), (1.0, float("inf"))])
def test_a_quantile_is_the_bound_of_its_bucket(share: float, bound: float) -> None:
    assert quantile(Scraped("placement", samples_of(TEXT)), "wait_seconds", share) == bound


def test_an_empty_histogram_has_no_quantile() -> None:
    assert quantile(Scraped("placement"), "wait_seconds", 0.5) is None
