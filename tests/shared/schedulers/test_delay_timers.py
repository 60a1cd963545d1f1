from __future__ import annotations

import pytest

from shared.performance.links import LinkTier
from shared.schedulers.delay_timers import DelayTimers, TimerRules
from shared.schedulers.hooks import Memory

RULES = TimerRules(first_s=100.0, longest_s=500.0, window=3, expiry_s=1000.0)


@pytest.mark.parametrize(
    ("waits", "now_s", "timer_s"),
    [
        ([], 0.0, 100.0),
        ([[0.0, 30.0]], 10.0, 30.0),
        ([[0.0, 10.0], [0.0, 30.0]], 10.0, 20.0 + 2 * 10.0),
        ([[0.0, 600.0]], 10.0, 500.0),
        ([[0.0, 30.0]], 1001.0, 100.0),
    ],
)
def test_a_timer_is_the_mean_of_recent_waits_and_two_deviations(
    waits: list[list[float]], now_s: float, timer_s: float
) -> None:
    assert RULES.timer_s(waits, now_s) == timer_s


def test_each_tier_and_size_has_a_window_of_its_own() -> None:
    memory: Memory = {}
    timers = DelayTimers(RULES, memory, 50.0)
    for wait_s in (7.0, 20.0, 20.0, 20.0):
        timers.note(LinkTier.NODE, 4, wait_s, 40.0)
    assert timers.timer_s(LinkTier.NODE, 4) == 20.0, "the first wait has left the window"
    assert timers.timer_s(LinkTier.RACK, 4) == timers.timer_s(LinkTier.NODE, 8) == 100.0
    assert memory == {"waits": {"node:4": [[40.0, 20.0]] * 3}}


def test_an_offer_is_declined_for_each_closer_tier_in_turn() -> None:
    """A node is waited for 100 s; then its rack is taken, but the spine after 200 s alone."""
    timers = DelayTimers(RULES, {}, 0.0)
    declined = [
        (offered, waited_s)
        for offered in LinkTier
        for waited_s in (99.0, 100.0, 199.0, 200.0)
        if timers.declines(offered, LinkTier.NODE, 4, waited_s)
    ]
    assert declined == [
        (LinkTier.RACK, 99.0),
        (LinkTier.SPINE, 99.0),
        (LinkTier.SPINE, 100.0),
        (LinkTier.SPINE, 199.0),
    ]
    assert not timers.declines(LinkTier.SPINE, LinkTier.SPINE, 4, 0.0), "nothing closer is better"
