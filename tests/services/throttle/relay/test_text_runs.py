"""Runs of like events count, pass and assemble as their events would one by one."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.throttle.relay import text_runs
from services.throttle.relay.sse import SseParser
from services.throttle.relay.stream_filter import StreamFilter
from services.throttle.relay.text_runs import TextRuns
from services.throttle.relay.usage import TokenCount
from services.throttle.relay.whole_answer import assemble
from tests.services.throttle.relay.streams import DONE, delta, event, usage

WORDS = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(
    ["a", " the", "\\", '"']
)
EVENTS = st.one_of(
    st.builds(lambda words: event(delta(content=words)), WORDS),
    st.builds(lambda words: event({**delta(content=words), "created": 8}), WORDS),
    st.builds(lambda words: event(delta(reasoning_content=words)), WORDS),
    st.builds(lambda words: event(delta(index=1, content=words)), WORDS),
    st.sampled_from([b": ping\n\n", event(delta("stop", content="end"))]),
)


def pieces_of(stream: bytes, source: random.Random) -> list[bytes]:
    cuts = sorted(source.randint(0, len(stream)) for _ in range(source.randint(0, 6)))
    return [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


async def chunks(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def seen(pieces: list[bytes]) -> tuple[object, ...]:
    """Return what a stream and a whole answer make of the pieces."""
    count = TokenCount("chat/completions")
    tokens = StreamFilter(count, shows_usage=False)
    passed = b"".join([*map(tokens.feed, pieces), tokens.end()])
    whole = TokenCount("chat/completions")
    answer = asyncio.run(assemble(chunks(pieces), "chat/completions", whole, lambda _: None))
    return passed, count.chunks, count.text_bytes, count.usage, whole.chunks, json.loads(answer)


@given(st.lists(EVENTS, min_size=1, max_size=12), st.randoms())
def test_a_stream_means_the_same_with_runs_and_without(
    events: list[bytes], source: random.Random
) -> None:
    stream = b"".join([event(delta(role="assistant")), *events])
    pieces = pieces_of(stream + event(delta("stop")) + event(usage()) + DONE, source)
    with pytest.MonkeyPatch.context() as patch:
        with_runs = seen(pieces)
        patch.setattr(text_runs, "MOST_MISSES", 0)
        assert with_runs == seen(pieces)


def test_like_events_are_one_event_with_their_texts() -> None:
    parser = SseParser()
    first, *others = (event(delta(content=word)) for word in ("one", " two", " three"))
    assert [e.texts for e in parser.feed(first)] == [()]
    assert parser.runs.learn(first)
    (run,) = parser.feed(b"".join(others))
    assert (run.texts, run.raw, run.data) == ((b" two", b" three"), b"".join(others), None)


@pytest.mark.parametrize(
    "raw",
    [
        event(delta("stop", content="end")),
        event({**delta(content="x"), "usage": {"completion_tokens": 1}}),
        event({**delta(content="x"), "name": "y"}),
        event(delta(content='an "escape"')),
        event(delta(content="")),
        b'data: {"error":{"message":"x","content":"y"}}\n\n',
        b'event: x\ndata: {"content":"x"}\n\n',
    ],
)
def test_an_event_that_says_more_than_a_text_has_no_run(raw: bytes) -> None:
    assert not TextRuns().learn(raw)


def test_a_stream_of_unequal_events_has_no_runs() -> None:
    runs = TextRuns()
    learned = [runs.learn(event({**delta(content="x"), "created": n})) for n in range(9)]
    assert learned == [True] * text_runs.MOST_MISSES + [False] * (9 - text_runs.MOST_MISSES)
