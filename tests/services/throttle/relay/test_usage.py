"""Tokens are counted by the engine's usage where the chunks that arrived agree with it."""

from __future__ import annotations

from typing import Any

import pytest

from services.throttle.relay.request import Route
from services.throttle.relay.usage import EngineUsage, TokenCount
from tests.services.throttle.relay.streams import (
    DONE,
    chat_stream,
    delta,
    event,
    parse,
    responses_stream,
    text,
    usage,
)


def count(stream: bytes, route: Route = "chat/completions", **limits: Any) -> TokenCount:
    tokens = TokenCount(route, **limits)
    for item in parse(stream):
        tokens.add(item)
    return tokens


@pytest.mark.parametrize(
    ("route", "stream"),
    [
        ("chat/completions", chat_stream()),
        ("chat/completions", chat_stream(compact=False)),
        ("responses", responses_stream()),
    ],
)
def test_the_usage_of_the_engine_counts(route: Route, stream: bytes) -> None:
    tokens = count(stream, route, output_limit=3, prompt_limit=9)
    assert tokens.usage == EngineUsage(9, 3, 4)
    assert (tokens.prompt_tokens, tokens.cached_tokens, tokens.output_tokens) == (9, 4, 3)
    assert (tokens.chunks, tokens.doubt, tokens.is_complete, tokens.failed) == (3, "", True, False)


def test_chunks_with_text_count_without_a_usage() -> None:
    tokens = count(chat_stream(with_usage=False))
    assert (tokens.output_tokens, tokens.prompt_tokens, tokens.usage) == (3, None, None)
    assert tokens.doubt == ""


@pytest.mark.parametrize(
    "fields",
    [
        {"content": "x"},
        {"content": '"'},
        {"reasoning_content": "x"},
        {"reasoning": "x", "content": ""},
        {"refusal": "x"},
        {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]},
    ],
)
@pytest.mark.parametrize("compact", [True, False])
def test_each_kind_of_text_is_counted(fields: Any, compact: bool) -> None:
    chunk = event(delta(**fields), compact=compact)
    assert count(chunk + event(delta(content="then")) + chunk).chunks == 3
    assert count(chunk).has_begun


@pytest.mark.parametrize(
    "fields",
    [
        {"role": "assistant", "content": ""},
        {"content": None},
        {},
        {"tool_calls": [{"index": 0, "function": {"arguments": ""}}]},
    ],
)
def test_chunks_without_text_are_not_counted(fields: Any) -> None:
    tokens = count(event(delta(**fields)) + b": ping\n\n" + event(delta("stop")))
    assert (tokens.chunks, tokens.has_begun) == (0, False)


def test_text_that_looks_like_a_chunk_is_text() -> None:
    looks = '"usage":{"completion_tokens":0},"finish_reason":"stop","text":"x'
    tokens = count(event(delta(content=looks)) + event(delta(role=looks, content="")))
    assert (tokens.chunks, tokens.usage, tokens.is_complete) == (1, None, False)


def test_text_completions_are_counted() -> None:
    stream = event(text("a")) + event(text("")) + event(text("b", "length")) + DONE
    assert count(stream, "completions").output_tokens == 2


@pytest.mark.parametrize(
    ("claimed", "limit", "charged", "doubt"),
    [
        (2, 10, 3, "2 output tokens for 3 chunks"),
        (11, 10, 3, "11 output tokens above the limit of 10"),
        (10, 10, 10, ""),
        (3, 10, 3, ""),
        (10**6, None, 10**6, ""),
    ],
)
def test_a_usage_is_believed_between_the_chunks_and_the_limit(
    claimed: int, limit: int | None, charged: int, doubt: str
) -> None:
    stream = chat_stream(with_usage=False) + event(usage(completion_tokens=claimed))
    tokens = count(stream, output_limit=limit)
    assert tokens.output_tokens == charged
    assert doubt in tokens.doubt
    assert bool(doubt) == bool(tokens.doubt)


def test_more_prompt_tokens_than_the_prompt_can_have_are_not_believed() -> None:
    tokens = count(chat_stream(), prompt_limit=8)
    assert (tokens.prompt_tokens, tokens.cached_tokens, tokens.output_tokens) == (None, 0, 3)
    assert "9 prompt tokens; the prompt has at most 8" in tokens.doubt


@pytest.mark.parametrize(
    "usage_",
    [b'{"completion_tokens":-1}', b'{"completion_tokens":"x"}', b"{", b"[]", b"null", b"1e999"],
)
def test_a_malformed_usage_is_none(usage_: bytes) -> None:
    chunk = b'data: {"choices":[],"usage":%s}\n\n' % usage_
    tokens = count(chat_stream(with_usage=False) + chunk)
    assert (tokens.usage, tokens.output_tokens) == (None, 3)


def test_the_last_usage_counts_where_each_chunk_has_one() -> None:
    chunks = [
        {**delta(content="x"), "usage": usage()["usage"] | {"completion_tokens": n}} for n in (1, 2)
    ]
    tokens = count(b"".join(map(event, chunks)))
    assert (tokens.chunks, tokens.output_tokens) == (2, 2)


@pytest.mark.parametrize(
    ("stream", "complete"),
    [
        (event(delta(content="x")), False),
        (event(delta(content="x")) + DONE, True),
        (event(delta("stop")), False),
        (event(delta("stop")) + event(delta("stop", index=1)), True),
        (event(delta("stop", content="x")) + event({**delta("stop", index=1), "usage": {}}), True),
        (b"data: [DONE]\n", True),
        (b"", False),
    ],
)
def test_a_stream_is_complete_when_it_is_done_or_each_answer_has_a_reason(
    stream: bytes, complete: bool
) -> None:
    assert count(stream, answers=2).is_complete is complete


@pytest.mark.parametrize(
    ("end", "complete", "failed"),
    [
        ("completed", True, False),
        ("incomplete", True, False),
        ("failed", True, True),
        ("x", False, False),
    ],
)
def test_a_response_ends_with_its_state(end: str, complete: bool, failed: bool) -> None:
    tokens = count(responses_stream(end), "responses")
    assert (tokens.is_complete, tokens.failed) == (complete, failed)
    unnamed = responses_stream(end).replace(f"event: response.{end}\n".encode(), b"")
    assert count(unnamed, "responses").is_complete is complete


@pytest.mark.parametrize(
    "error",
    [
        event({"error": {"message": "m"}}),
        event({"error": {"message": "m"}}, compact=False),
        event({"error": "m"}),
        event({"message": "m"}, "error"),
        event({"error": {"message": "m", "name": "boom"}}),
        event({"error": {"message": "m", "name": "boom"}}, compact=False),
        event({"message": "m", "name": "boom"}, "error"),
    ],
)
def test_an_error_in_a_stream_is_seen(error: bytes) -> None:
    tokens = count(event(delta(content="x")) + error + DONE)
    assert (tokens.failed, tokens.chunks) == (True, 1)
    assert count(event({"error": {}}, "error"), "responses").failed


def test_an_error_of_a_response_is_no_text_and_stays_one() -> None:
    error = event({"code": "bad.delta", "name": "boom"}, "error")
    tokens = count(error + event({"response": {}}, "response.completed"), "responses")
    assert (tokens.failed, tokens.chunks) == (True, 0)


def test_only_an_event_of_nothing_but_usage_is_reported_as_such() -> None:
    tokens = TokenCount("chat/completions")
    events = parse(
        event(delta(content="x")) + event({**delta("stop"), "usage": {}}) + event(usage())
    )
    assert [tokens.add(item) for item in events] == [False, False, True]


@pytest.mark.parametrize(
    ("route", "body", "counts"),
    [
        (
            "chat/completions",
            b'{"choices":[{}],"usage":{"prompt_tokens":5,"completion_tokens":7}}',
            (5, 7),
        ),
        ("embeddings", b'{"data":[],"usage":{"prompt_tokens":5,"total_tokens":5}}', (5, 0)),
        ("responses", b'{"usage":{"input_tokens":5,"output_tokens":7}}', (5, 7)),
        (
            "chat/completions",
            b'{"choices":[{"message":{"content":"12345678"}}],"usage":{"completion_tokens":99}}',
            (None, 2),
        ),
        ("completions", b'{"choices":[{"text":"1234"},{"text":"1234"}]}', (None, 2)),
        ("responses", b'{"output":[{"content":[{"text":"123456789012"}]}]}', (None, 3)),
        ("responses", b'{"usage":null}', (None, 0)),
        ("responses", b"{", (None, 0)),
    ],
)
def test_a_whole_answer_is_counted_by_its_usage_or_by_its_text(
    route: Route, body: bytes, counts: tuple[int | None, int]
) -> None:
    tokens = TokenCount(route, output_limit=9, tokens_of=lambda text_bytes: text_bytes // 4)
    tokens.add_answer(body)
    assert (tokens.prompt_tokens, tokens.output_tokens) == counts
    assert tokens.is_complete is (body != b"{")
