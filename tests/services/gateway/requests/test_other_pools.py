"""The start of a job with several pools is that of the pool which starts it first."""

from __future__ import annotations

from berth_client.answers import OtherPool, StartInterval
from services.gateway.requests.other_pools import first_start


def start(p50_at: int) -> StartInterval:
    return StartInterval(
        at=0, of="queue", p10_at=0, p50_at=p50_at, p90_at=0, coverage=None, samples=0
    )


def other(begins: StartInterval | None) -> OtherPool:
    return OtherPool(pool="side", rule=None, waiting=0, start=begins)


def test_the_earliest_start_counts_and_pools_without_one_do_not() -> None:
    own, later, sooner = start(50), start(90), start(10)
    assert first_start(own, [other(later), other(None)]) is own
    assert first_start(own, [other(later), other(sooner)]) is sooner
    assert first_start(None, [other(later)]) is later
    assert first_start(None, [other(None)]) is None
