"""Rules of the lease at the step, whatever the order in which clocks, answers and stops come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from berth_agent.step.ending import GRACE_MS, Ending, LeaseWatch

OWN, OTHER = "a" * 32, "b" * 32
TIMES = st.integers(0, 100_000)
REQUESTS = st.lists(st.tuples(TIMES, st.sampled_from(["stopped", "fenced", "walltime"]), TIMES))


@given(REQUESTS)
def test_the_earliest_kill_and_the_first_reason_hold(requests: list[tuple[int, str, int]]) -> None:
    ending = Ending()
    for now_ms, reason, grace_ms in requests:
        ending.request(reason, now_ms, grace_ms)
    if requests:
        assert ending.reason == requests[0][1]
        assert ending.kill_at_ms == min(now + grace for now, _, grace in requests)
    else:
        assert ending.signal_at(10**9) == ""


@given(st.integers(1, 10_000))
def test_sigterm_is_sent_once_and_sigkill_until_it_is_dead(grace_ms: int) -> None:
    ending = Ending()
    ending.request("stopped", 0, grace_ms)
    assert [ending.signal_at(at) for at in (0, grace_ms - 1, grace_ms, grace_ms + 1)] == [
        "term" if grace_ms > 0 else "kill",
        "",
        "kill",
        "kill",
    ]


@given(st.lists(st.tuples(st.integers(1, 20_000), st.integers(0, 60_000)), max_size=30))
def test_a_deadline_that_has_passed_is_never_extended(renewals: list[tuple[int, int]]) -> None:
    watch = LeaseWatch(OWN)
    watch.begin(OWN, 30_000)
    now_ms, was_over = 0, False
    for wait_ms, length_ms in renewals:
        now_ms += wait_ms
        was_over = was_over or watch.is_over(now_ms)
        watch.renew(OWN, now_ms + length_ms, now_ms, now_ms)
        assert not was_over or watch.is_over(now_ms)


@given(TIMES, st.none() | TIMES)
def test_another_incarnation_is_the_end(now_ms: int, deadline_ms: int | None) -> None:
    watch = LeaseWatch(OWN)
    watch.begin(OWN, None)
    assert watch.may_start(now_ms)
    watch.renew(OTHER, deadline_ms, now_ms, now_ms)
    watch.renew(OWN, None, now_ms, now_ms)
    assert watch.is_over(now_ms) and not watch.may_start(now_ms)


@given(st.integers(0, 10**6), st.integers(60_000, 10**9))
def test_the_grace_lies_before_the_deadline(grace_ms: int, deadline_ms: int) -> None:
    watch = LeaseWatch(OWN)
    watch.begin(OWN, deadline_ms)
    at_ms = watch.terminate_at_ms(grace_ms)
    assert at_ms is not None and deadline_ms - at_ms == min(grace_ms, GRACE_MS)


@given(st.integers(0, 10**6), st.integers(1_000, 10**6))
def test_a_short_lease_leaves_time_to_run(grace_ms: int, length_ms: int) -> None:
    watch = LeaseWatch(OWN)
    watch.begin(OWN, 10**9)
    watch.length_ms = length_ms
    at_ms = watch.terminate_at_ms(grace_ms)
    assert at_ms is not None and 10**9 - at_ms <= length_ms // 2


def test_a_jump_of_the_wall_clock_leaves_doubt_until_a_later_heartbeat_is_acknowledged() -> None:
    watch = LeaseWatch(OWN)
    watch.begin(OWN, 600_000)
    watch.observe(1_000, 1_001_000)
    watch.observe(2_000, 1_602_000)
    assert watch.is_doubtful(2_000) and not watch.is_over(2_000) and not watch.may_start(2_000)
    watch.renew(OWN, 601_500, 1_500, 2_100)
    assert watch.is_doubtful(2_100), "that heartbeat was sent before the jump"
    watch.renew(OWN, 602_200, 2_200, 2_300)
    assert not watch.is_doubtful(2_300) and watch.may_start(2_300)


@given(st.lists(st.integers(-10_000_000, 1_900), max_size=20))
def test_backward_and_small_jumps_mean_nothing(jumps_ms: list[int]) -> None:
    watch = LeaseWatch(OWN)
    watch.begin(OWN, 10**9)
    wall_ms = 10**12
    for second, jump_ms in enumerate(jumps_ms):
        wall_ms += 1000 + jump_ms
        watch.observe(second * 1000, wall_ms)
    assert watch.is_doubtful(10**9 - 1) is False


def test_workers_are_kept_without_a_deadline() -> None:
    watch = LeaseWatch(OWN)
    watch.begin(OWN, None)
    watch.observe(0, 0)
    watch.observe(1_000, 10**9)
    assert not watch.is_over(10**12) and not watch.is_doubtful(10**12)
    assert watch.terminate_at_ms(30_000) is None
