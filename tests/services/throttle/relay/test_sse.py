"""Events are the same however the bytes of a stream are split, and keep their exact bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.throttle.relay.sse import EventTooLarge, SseEvent, SseParser

STREAMS = [
    b'data: {"a":1}\n\ndata: [DONE]\n\n',
    b"data: one\r\n\r\ndata: two\r\n\r\n",
    b"data: one\r\rdata: two\r\r",
    b"data: one\n\r\ndata: two\r\n\ndata: three\r\n\r",
    b"\xef\xbb\xbfdata: one\n\n: comment\n\nevent: x\ndata: a\ndata:b\n\n",
    b"\n\n\n\ndata: one\n\n\n\ndata: two\n",
    b"id: 1\nretry: 5\n\ndata\n\ndata:\n\ndata:  two\n\nda: no\n\n",
]


def parse(pieces: list[bytes]) -> list[SseEvent]:
    parser = SseParser()
    return [*(event for piece in pieces for event in parser.feed(piece)), *parser.end()]


@pytest.mark.parametrize("stream", STREAMS)
def test_a_split_at_any_position_gives_the_same_events(stream: bytes) -> None:
    whole = parse([stream])
    assert b"".join(event.raw for event in whole) == stream
    for at in range(len(stream) + 1):
        assert parse([stream[:at], stream[at:]]) == whole
    assert parse([stream[at : at + 1] for at in range(len(stream))]) == whole


@given(st.lists(st.sampled_from([b"\r", b"\n", b"data: x", b":", b"event: y", b" "])), st.data())
def test_any_stream_in_any_pieces_gives_the_same_events(
    parts: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    edges = zip([0, *cuts], [*cuts, len(stream)], strict=True)
    pieces = parse([stream[start:end] for start, end in edges])
    assert pieces == parse([stream])
    assert b"".join(event.raw for event in pieces) == stream


def test_fields_are_read_as_the_standard_says() -> None:
    events = parse([b"\xef\xbb\xbfdata: one\n\n: note\n\nevent: x\ndata: a\rdata:b\r\ndata\n\n"])
    assert [(event.name, event.data) for event in events] == [
        (b"", b"one"),
        (b"", None),
        (b"x", b"a\nb\n"),
    ]


def test_only_the_last_event_may_lack_its_blank_line() -> None:
    first, last = parse([b"data: one\n\ndata: [DONE]\n"])
    assert (first.complete, last.complete, last.data) == (True, False, b"[DONE]")
    assert parse([b"data: one\r\r"])[0].complete


def test_an_event_is_bounded() -> None:
    parser = SseParser(100)
    assert list(parser.feed(b"data: " + b"x" * 90)) == []
    assert parser.held_bytes == 96
    with pytest.raises(EventTooLarge, match="at most 100 are"):
        list(parser.feed(b"x" * 10))
    with pytest.raises(EventTooLarge):
        list(SseParser(100).feed(b"data: " + b"x" * 200 + b"\n\n"))
