"""Chunks of plain text are recognized, and an answer is the same with and without that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.throttle.relay import assemble
from services.throttle.relay.assemble import AnswerAssembler
from services.throttle.relay.request import Route
from services.throttle.relay.sse import SseEvent
from services.throttle.relay.text_chunks import text_chunk

HEAD = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def chat(delta: dict[str, Any], reason: str | None = None, index: int = 0, **head: Any) -> bytes:
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
    return json.dumps({**HEAD, "choices": [choice], **head}).encode()


@pytest.mark.parametrize(
    "data",
    [
        chat({"content": "a", "tool_calls": []}),
        chat({"content": "a"}, "stop"),
        chat({"content": None}),
        chat({"content": "a"}, usage={"prompt_tokens": 1}),
        chat({"content": "a"}, unknown=None),
        b"[]",
        b'{"id": "\xff"}',
    ],
)
def test_a_chunk_with_anything_else_is_left_to_the_merge(data: bytes) -> None:
    assert text_chunk("chat/completions", data) is None


def test_a_chunk_of_text_has_its_piece_and_head() -> None:
    chunk = text_chunk("chat/completions", chat({"content": "a"}, system_fingerprint="f"))
    assert chunk is not None
    assert chunk.choices[0].piece == "a"
    assert chunk.head() == {**HEAD, "system_fingerprint": "f"}


def text(piece: str, index: int = 0) -> bytes:
    choice = {"index": index, "text": piece, "logprobs": None, "finish_reason": None}
    return json.dumps({**HEAD, "choices": [choice]}).encode()


STREAMS: list[tuple[Route, list[bytes]]] = [
    (
        "chat/completions",
        [
            chat({"role": "assistant", "content": ""}),
            chat({"content": "a"}),
            chat({"content": "b"}, index=1),
            chat({"content": "c\u00e9\ud83d\ude00"}, system_fingerprint="f"),
            chat({"content": "d"}, index=1, usage=None),
            chat({"reasoning_content": "r"}),
            chat({"content": "e"}, model="other"),
            chat({}, "stop"),
        ],
    ),
    ("completions", [text("a"), text("b"), text("c", 1), text("d", 1), text("")]),
]


@pytest.mark.parametrize(("route", "stream"), STREAMS)
def test_an_answer_is_the_same_as_by_the_merge_alone(
    route: Route, stream: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = assembled(route, stream)
    monkeypatch.setattr(assemble, "text_chunk", lambda _route, _data: None)
    assert fast == assembled(route, stream)


def assembled(route: Route, stream: list[bytes]) -> bytes:
    assembler = AnswerAssembler(route)
    for data in stream:
        assembler.add(SseEvent(b"", data))
    return assembler.answer()
