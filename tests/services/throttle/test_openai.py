from __future__ import annotations

import json
from typing import Any

import pytest

from services.throttle.openai import (
    DEFAULT_OUTPUT_TOKENS,
    FINGERPRINT,
    CompletionKind,
    CompletionResponse,
    InvalidCompletion,
    filler,
    parse_request,
)

CHAT = {"model": "chat", "messages": [{"role": "user", "content": "x" * 9}]}
TEXT = {"model": "chat", "prompt": "x" * 8}


def parse(kind: CompletionKind, fields: dict[str, Any]) -> Any:
    return parse_request(kind, json.dumps(fields).encode())


def response(kind: CompletionKind, **fields: Any) -> CompletionResponse:
    body = CHAT if kind == "chat" else TEXT
    return CompletionResponse(kind, parse(kind, {**body, **fields}), "id", 7)


def test_a_token_is_four_characters_and_a_part_of_one_counts() -> None:
    assert parse("chat", CHAT).prompt_tokens == 3
    assert parse("text", TEXT).prompt_tokens == 2
    assert parse("text", {**TEXT, "prompt": ""}).prompt_tokens == 1


def test_parts_and_empty_messages_are_counted() -> None:
    parts = [{"type": "text", "text": "xxxx"}, {"type": "text", "text": "xxxx"}]
    messages = [{"role": "user", "content": parts}, {"role": "assistant", "content": None}]
    assert parse("chat", {**CHAT, "messages": messages}).prompt_tokens == 2


def test_the_newer_limit_of_output_tokens_wins() -> None:
    assert parse("chat", CHAT).output_tokens == DEFAULT_OUTPUT_TOKENS
    assert parse("chat", {**CHAT, "max_tokens": 5}).output_tokens == 5
    limits = {"max_tokens": 5, "max_completion_tokens": 6}
    assert parse("chat", {**CHAT, **limits}).output_tokens == 6


def test_unknown_options_are_ignored() -> None:
    assert parse("chat", {**CHAT, "temperature": 0.1}).model == "chat"


def test_an_invalid_field_is_named_and_its_value_is_not_quoted() -> None:
    with pytest.raises(InvalidCompletion) as error:
        parse("chat", {**CHAT, "n": "swordfish"})
    assert str(error.value).startswith("n: ")
    assert "swordfish" not in str(error.value)


def test_a_body_that_is_not_json_is_invalid() -> None:
    with pytest.raises(InvalidCompletion, match="body: not valid JSON"):
        parse_request("text", b"{")


def test_pieces_of_filler_are_parts_of_the_whole() -> None:
    assert filler(0, 5) + filler(5, 20) == filler(0, 20)
    assert filler(0, 1) == "[emulated] "


def test_a_complete_response_counts_its_tokens() -> None:
    body: Any = response("chat", max_tokens=5).complete(4)
    assert body["usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    assert body["system_fingerprint"] == FINGERPRINT
    (choice,) = body["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == (filler(0, 4), "stop")


def test_an_answer_of_full_length_was_cut() -> None:
    body: Any = response("text", max_tokens=4).complete(4)
    assert body["choices"][0]["finish_reason"] == "length"


def test_only_the_first_chunk_names_the_role() -> None:
    chunks: list[Any] = [response("chat").chunk(0, 2), response("chat").chunk(2, 4)]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas == [{"role": "assistant", "content": filler(0, 2)}, {"content": filler(2, 4)}]


def test_the_last_chunks_carry_the_reason_and_the_usage() -> None:
    text = response("text", max_tokens=4)
    last: Any = text.last_chunk(4)
    assert last["choices"] == [{"index": 0, "text": "", "finish_reason": "length"}]
    usage: Any = text.usage_chunk(4)
    assert (usage["choices"], usage["usage"]["completion_tokens"]) == ([], 4)
