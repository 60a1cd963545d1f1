from __future__ import annotations

import asyncio

from services.throttle.followers import RequestFollowers
from shared.contracts.base import Event
from shared.contracts.llm import (
    LlmRequestFinished,
    LlmRequestRejected,
    LlmRequestStarted,
    TokensCharged,
    TokensMade,
)
from shared.ledger.decider import Fact
from shared.testing.decider import AT

STARTED = LlmRequestStarted(request_id="r1", tenant="a", waited_ms=30)
CHARGED = TokensCharged(endpoint="chat", made=(TokensMade(request_id="r1", tokens=4),))
FINISHED = LlmRequestFinished(request_id="r1", tenant="a", prompt_tokens=1, output_tokens=9)
REJECTED = LlmRequestRejected(request_id="r1", tenant="a", reason="too_large")


def apply(followers: RequestFollowers, *events: Event) -> None:
    followers.apply([Fact(event, "throttle", 0, 1, 0, AT) for event in events])


def test_every_follower_of_a_request_has_its_progress() -> None:
    followers = RequestFollowers()
    with followers.follow("r1", 0) as first, followers.follow("r1", 0) as second:
        apply(followers, STARTED, CHARGED)
        for progress in (first, second):
            assert (progress.waited_ms, progress.made_tokens, progress.ended) == (30, 4, False)
        apply(followers, FINISHED)
        assert (first.made_tokens, first.done, first.ended) == (9, True, True)


def test_a_rejection_and_a_lost_lane_end_the_progress() -> None:
    followers = RequestFollowers()
    with followers.follow("r1", 0) as rejected, followers.follow("r2", 3) as lost:
        apply(followers, REJECTED)
        followers.lose_lane(3)
        assert rejected.rejected == REJECTED
        assert (rejected.ended, rejected.lost) == (True, False)
        assert (lost.ended, lost.lost) == (True, True)


def test_events_after_the_end_of_a_follower_are_ignored() -> None:
    followers = RequestFollowers()
    with followers.follow("r1", 0) as progress:
        pass
    apply(followers, STARTED)
    assert progress.waited_ms is None


async def test_a_follower_waits_for_the_start_and_for_more_tokens() -> None:
    followers = RequestFollowers()
    with followers.follow("r1", 0) as progress:
        start = asyncio.create_task(progress.until_started())
        await asyncio.sleep(0)
        assert not start.done()
        apply(followers, STARTED)
        await start
        more = asyncio.create_task(progress.until_beyond(4))
        apply(followers, CHARGED)
        await asyncio.sleep(0)
        assert not more.done()
        apply(followers, CHARGED)
        await more
