"""The bucket of one tenant."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shared.http.rate import LEAST_FORGOTTEN, NS, Rate, TokenBuckets

RATES = st.builds(Rate, st.floats(0.1, 1e5), st.integers(1, 50))
PAUSES_NS = st.lists(st.integers(0, 2 * NS), min_size=1, max_size=80)


@given(RATES, PAUSES_NS)
def test_no_span_of_time_has_more_than_a_burst_and_the_rate(
    rate: Rate, pauses_ns: list[int]
) -> None:
    buckets, now_ns, taken = TokenBuckets(rate), 5, list[int]()
    for pause_ns in pauses_ns:
        now_ns += pause_ns
        if not buckets.take("ada", now_ns):
            taken.append(now_ns)
    refill_ns = round(NS / rate.per_s)
    for first, begins in enumerate(taken):
        for last, ends in enumerate(taken[first:], 1):
            assert last <= rate.burst + (ends - begins) / refill_ns


@given(RATES, PAUSES_NS)
def test_a_request_after_the_wait_is_admitted_and_an_earlier_one_is_not(
    rate: Rate, pauses_ns: list[int]
) -> None:
    buckets, now_ns = TokenBuckets(rate), 5
    for pause_ns in pauses_ns:
        now_ns += pause_ns
        if wait_ns := buckets.take("ada", now_ns):
            assert buckets.take("ada", now_ns + wait_ns - 1) == 1
            assert buckets.take("ada", now_ns + wait_ns) == 0
            now_ns += wait_ns


@given(st.integers(1, 50))
def test_a_burst_is_whole_and_another_tenants_is_its_own(burst: int) -> None:
    buckets = TokenBuckets(Rate(1, burst))
    for tenant in ("ada", "bob"):
        answers = [buckets.take(tenant, 7) for _ in range(burst + 1)]
        assert answers == [0] * burst + [NS]


@given(RATES, st.lists(st.tuples(st.integers(0, 2 * NS), st.integers(1, 200)), min_size=1))
def test_what_came_in_one_piece_is_waited_for_afterwards(
    rate: Rate, pieces: list[tuple[int, int]]
) -> None:
    buckets, now_ns, sent = TokenBuckets(rate), 5, 0
    refill_ns = round(NS / rate.per_s)
    for pause_ns, many in pieces:
        now_ns += pause_ns
        now_ns += buckets.wait_ns("ada", now_ns)
        assert sent * refill_ns <= now_ns - 5 + rate.burst * refill_ns
        buckets.spend("ada", now_ns, many)
        sent += many


def test_a_rate_has_a_readable_form() -> None:
    assert str(Rate(200.0, 1000)) == "at most 200 requests per second with a burst of 1000"


def test_keys_that_come_once_are_forgotten_and_those_in_use_are_not() -> None:
    buckets = TokenBuckets(Rate(1, 2))
    for _ in range(2):
        assert buckets.take("busy", 0) == 0
    for number in range(20 * LEAST_FORGOTTEN):
        assert buckets.take(f"10.0.0.{number}", NS * number // 1000) == 0
        assert len(buckets) <= 3 * LEAST_FORGOTTEN
    assert buckets.take("fresh", NS * number // 1000) == 0

    crowded = TokenBuckets(Rate(1, 2))
    for number in range(3 * LEAST_FORGOTTEN):
        assert crowded.take(str(number), 0) == 0
    assert len(crowded) == 3 * LEAST_FORGOTTEN
