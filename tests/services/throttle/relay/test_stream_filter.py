"""A stream passes byte for byte, but for the usage that the client did not request."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.throttle.relay.sse import EventTooLarge
from services.throttle.relay.stream_filter import StreamFilter
from services.throttle.relay.usage import TokenCount
from tests.services.throttle.relay.streams import DONE, chat_stream, delta, event, text, usage

WORDS = st.text(st.characters(codec="utf-8"), max_size=8)
CHUNKS = st.one_of(
    st.builds(lambda words: event(delta(content=words)), WORDS),
    st.builds(lambda words: event(delta(reasoning_content=words), compact=False), WORDS),
    st.builds(lambda words: event(text(words)), WORDS),
    st.builds(lambda name: event({"a": name}, "named"), WORDS),
    st.sampled_from([b": ping\n\n", b"\n\n", b"id: 7\n\n", event(delta("stop")), b"data: {\n\n"]),
)


def passed(stream: bytes, cuts: list[int], *, shows_usage: bool) -> bytes:
    tokens = StreamFilter(TokenCount("chat/completions"), shows_usage=shows_usage)
    edges = zip([0, *cuts], [*cuts, len(stream)], strict=True)
    return b"".join([*(tokens.feed(stream[start:end]) for start, end in edges), tokens.end()])


@given(st.lists(CHUNKS), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.randoms())
def test_any_stream_passes_but_for_the_usage(
    chunks: list[bytes], line_end: bytes, source: random.Random
) -> None:
    before, behind = b"".join(chunks), DONE
    whole = (before + event(usage()) + behind).replace(b"\n", line_end)
    cuts = sorted(source.randint(0, len(whole)) for _ in range(source.randint(0, 9)))
    assert passed(whole, cuts, shows_usage=True) == whole
    assert passed(whole, cuts, shows_usage=False) == (before + behind).replace(b"\n", line_end)


def test_a_usage_beside_a_choice_is_not_dropped() -> None:
    stream = event({**delta("stop"), "usage": {"completion_tokens": 1}}) + DONE
    assert passed(stream, [], shows_usage=False) == stream


def test_an_event_is_passed_as_soon_as_it_is_complete() -> None:
    tokens = StreamFilter(TokenCount("chat/completions"), shows_usage=False)
    first = event(delta(content="one"))
    assert tokens.feed(first[:-1]) == b""
    assert tokens.feed(first[-1:] + b"data: ") == first
    assert tokens.count.chunks == 1
    assert tokens.feed(b"[DONE]\n\n") == DONE
    assert tokens.count.is_complete


def test_the_end_of_a_stream_without_blank_line_is_passed() -> None:
    assert passed(chat_stream() + b"data: cut", [], shows_usage=True).endswith(b"data: cut")


def test_an_event_without_end_is_an_error() -> None:
    tokens = StreamFilter(TokenCount("chat/completions"), shows_usage=False)
    with pytest.raises(EventTooLarge):
        for _ in range(5):
            tokens.feed(b"x" * 1024 * 1024)
