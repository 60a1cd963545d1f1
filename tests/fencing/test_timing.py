"""Times that the protocol promises: an outage that stops no worker, and the loss of a dead node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_agent.core.lease import Lease
from berth_agent.messages import Terms
from services.placement.core.pool.node import NotedSilence
from services.placement.heartbeats import next_note_ms
from services.placement.silence import Silence, SilenceKey
from shared.contracts.pools import PoolConfigured, PoolSettings
from shared.contracts.terms import present_silence_bound_ms

KEY = SilenceKey("n1", "i1", "t1")
LOST_S, SUSPECT_S = 40, 6
LOOK_S = 1
SECONDS = ["readable", "readable", "readable", "unreadable", "restart"]


def terms(stop_after_s: int, heartbeat_s: int) -> Terms:
    return Terms(
        terms_id="t1",
        stop_after_s=stop_after_s,
        heartbeat_s=heartbeat_s,
        request_timeout_s=1.0,
        reconnect_s=1.0,
    )


def is_fenced(offered: Terms, latency_s: int, begins_s: int, outage_s: int) -> bool:
    """Return whether a lease lapses of which no heartbeat passes in an outage.

    Heartbeats are sent in the outage too; each is acknowledged after `latency_s` if the path
    worked throughout.
    """
    lease = Lease("i1", offered)
    lease.begin(0, offered.terms_id)
    lease.join()
    outage = range(begins_s, begins_s + outage_s)
    for now_s in range(outage.stop + 2 * int(offered.stop_after_s or 0)):
        sent_s = now_s - latency_s
        is_sent = sent_s >= 0 and sent_s % int(offered.heartbeat_s) == 0
        if is_sent and not any(second in outage for second in range(sent_s, now_s + 1)):
            lease.acknowledge(sent_s * 1000, now_s * 1000)
        if lease.is_over(now_s * 1000):
            return True
    return False


@pytest.mark.parametrize(
    ("stop_after_s", "heartbeat_s", "latency_s"),
    [(6, 1, 0), (6, 1, 1), (12, 2, 1), (60, 1, 1), (60, 5, 2), (600, 5, 10)],
)
def test_an_outage_shorter_than_promised_fences_no_node(
    stop_after_s: int, heartbeat_s: int, latency_s: int
) -> None:
    """L2, whenever it begins between two heartbeats; one as long as the lease always does."""
    offered = terms(stop_after_s, heartbeat_s)
    promised_s = stop_after_s - 2 * (heartbeat_s + latency_s)
    for begins_s in range(heartbeat_s):
        assert not is_fenced(offered, latency_s, begins_s, promised_s)
        assert is_fenced(offered, latency_s, begins_s, stop_after_s + heartbeat_s)


@given(st.lists(st.sampled_from(SECONDS), max_size=60))
def test_a_dead_node_is_lost_although_placement_restarts(schedule: list[str]) -> None:
    """L1: each restart costs at most the silence since it was last noted, an outage its length."""
    restarts, unreadable = schedule.count("restart"), schedule.count("unreadable")
    longest_note_s = max(SUSPECT_S, LOST_S / 4)
    most_s = LOST_S + unreadable + restarts * (longest_note_s + 2 * LOOK_S) + LOOK_S
    assert lost_at_s(schedule) <= most_s


def lost_at_s(schedule: list[str]) -> int:
    """Return when a node is lost that was heard last at 0; after the schedule all is readable."""
    silence, noted_ms = Silence(), 0
    silence.watch([KEY], 0)
    now_s = 0
    while True:
        second = schedule[now_s] if now_s < len(schedule) else "readable"
        now_s += LOOK_S
        if second == "restart":
            silence = Silence()
            if noted_ms:
                silence.resume(KEY, NotedSilence(noted_ms, 0), now_s)
            silence.watch([KEY], now_s)
        elif second == "readable":
            silent_ms = silence.of(KEY.node_id).silent_ms(now_s)
            if silent_ms >= LOST_S * 1000:
                return now_s
            if silent_ms >= max(SUSPECT_S * 1000, next_note_ms(noted_ms, LOST_S * 1000)):
                noted_ms = silent_ms


@pytest.mark.parametrize(
    ("changed", "lost_after_s"),
    [({}, 773.75), ({"clock_rate_bound": 1.01}, 626.15), ({"stop_after_s": 60}, 98.75)],
)
def test_the_inequality_in_seconds(changed: dict[str, float], lost_after_s: float) -> None:
    """W = clock_rate_bound * (stop_after_s + kill_s) + slack_s."""
    settings = PoolSettings.model_validate({"pool": "p", **changed})
    pool = PoolConfigured(partition=0, **settings.model_dump())
    assert present_silence_bound_ms(pool, "agent") == pytest.approx(lost_after_s * 1000)
