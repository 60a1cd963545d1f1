"""Faults happen at their rates, and by header only where that is allowed."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from simulator.emulator.faults import EXPLAINED, FAULTS, FaultRates, InvalidFaults, parse_rates


def test_rates_are_parts_of_the_requests() -> None:
    rates = FaultRates(parse_rates("error=0.25, reset=0.5"))
    source = random.Random(1)
    drawn = Counter(rates.draw(source, None) for _ in range(10_000))
    assert set(drawn) == {"error", "reset", None}
    assert drawn["error"] == pytest.approx(2500, rel=0.1)
    assert drawn["reset"] == pytest.approx(5000, rel=0.1)


def test_a_header_chooses_only_where_it_may() -> None:
    source = random.Random(1)
    assert FaultRates({}, by_header=True).draw(source, "hang") == "hang"
    assert FaultRates({}).draw(source, "hang") is None
    with pytest.raises(InvalidFaults, match="faults are error, hang"):
        FaultRates({}, by_header=True).draw(source, "nope")


@pytest.mark.parametrize(
    "text", ["nope=0.1", "error", "error=x", "error=-1", "error=2", "error=0.6,hang=0.6"]
)
def test_rates_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(InvalidFaults):
        parse_rates(text)


def test_each_fault_is_explained() -> None:
    assert set(EXPLAINED) == set(FAULTS)
