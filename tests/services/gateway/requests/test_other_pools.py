"""The start of a job with several pools is that of the pool which starts it first."""

from __future__ import annotations

from berth_client.answers import OtherPool, StartInterval
from services.gateway.requests.other_pools import first_start


def start(p50_at: int) -> StartInterval:
    return StartInterval(
        at=0, of="queue", p10_at=0, p50_at=p50_at, p90_at=p50_at + 5, coverage=None, samples=0
    )


def other(begins: StartInterval | None) -> OtherPool:
    return OtherPool(pool="side", rule=None, waiting=0, start=begins)


def test_the_earliest_start_counts_and_pools_without_one_do_not() -> None:
    own, later, sooner = start(50), start(90), start(10)
    assert first_start(own, [other(later), other(None)], 0) is own
    assert first_start(own, [other(later), other(sooner)], 0) is sooner
    assert first_start(None, [other(later)], 0) is later
    assert first_start(None, [other(None)], 0) is None


def test_an_interval_of_another_pool_that_has_passed_is_none() -> None:
    own, passed = start(50), start(10)
    assert first_start(own, [other(passed)], 20) is own
    assert first_start(None, [other(passed)], 20) is None
    assert first_start(own, [], 100) is own, "its own is shown as one that does not hold"
