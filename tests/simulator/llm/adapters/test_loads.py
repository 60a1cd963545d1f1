"""Requests are drawn at their rate, the same for every engine that an adapter is on."""

from __future__ import annotations

from statistics import fmean, pstdev

import pytest

from simulator.llm.adapters.loads import AdapterLoad, draw_requests

LOAD = AdapterLoad("a", 8, 2.0, 100, 50)


@pytest.mark.parametrize("cv", [0.5, 1.0, 2.5])
def test_rates_lengths_and_variation_are_those_of_the_load(cv: float) -> None:
    load = AdapterLoad("a", 8, 2.0, 100, 50, cv)
    requests = draw_requests([load], 5000, 1)
    gaps = [b.arrival_s - a.arrival_s for a, b in zip(requests, requests[1:], strict=False)]
    assert len(requests) / 5000 == pytest.approx(2.0, rel=0.1)
    assert pstdev(gaps) / fmean(gaps) == pytest.approx(cv, rel=0.1)
    assert fmean(request.prompt_tokens for request in requests) == pytest.approx(100, rel=0.05)
    assert fmean(request.output_tokens for request in requests) == pytest.approx(50, rel=0.05)


def test_requests_of_an_adapter_do_not_depend_on_its_neighbours() -> None:
    other = AdapterLoad("b", 8, 1.0, 100, 50)
    alone, together = draw_requests([LOAD], 60, 1), draw_requests([other, LOAD], 60, 1)
    arrivals = [r.arrival_s for r in together if r.place == 1]
    assert [r.arrival_s for r in alone] == arrivals
    assert [r.number for r in together] == list(range(len(together)))


def test_a_scaled_load_has_another_rate_alone() -> None:
    assert LOAD.scaled(2) == AdapterLoad("a", 8, 4.0, 100, 50)
    assert LOAD.output_per_s == 100
