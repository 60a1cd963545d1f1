"""Text counts in bytes, token ids in tokens, and images by their number."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.throttle.relay.large_json import LARGE_BYTES
from services.throttle.relay.prompt_size import (
    MEDIA_TOKENS,
    MOST_DATA,
    PromptSize,
    prompt_size,
    text_bytes,
)
from services.throttle.relay.request import RequestBody, Route


def size(route: Route = "chat/completions", **fields: Any) -> PromptSize:
    body = json.dumps({"model": "m", **fields}, ensure_ascii=False, separators=(",", ":"))
    return prompt_size(RequestBody.decode(route, body.encode()).fields)


def messages(*contents: Any, role: str = "user") -> list[Any]:
    return [{"role": role, "content": content} for content in contents]


def image(bytes_: int, kind: str = "image_url") -> Any:
    return {"type": kind, kind: {"url": "data:image/png;base64," + "A" * bytes_}}


def test_text_counts_its_json_bytes() -> None:
    few = size(messages=messages("é" * 10))
    more = size(messages=messages("é" * 1010))
    assert more.text_bytes - few.text_bytes == 2000
    assert (few.token_ids, few.media, few.system_bytes) == (0, 0, 0)


@pytest.mark.parametrize("bytes_", [100, 4 * LARGE_BYTES])
@pytest.mark.parametrize("kind", ["image_url", "input_image", "input_audio", "video_url", "file"])
def test_an_image_counts_as_a_part_and_not_by_its_bytes(bytes_: int, kind: str) -> None:
    text = {"type": "text", "text": "x" * 400}
    parts = size(messages=messages([text, image(bytes_, kind), image(bytes_, kind)]))
    assert parts.media == 2
    assert 400 < parts.text_bytes < 600
    assert parts.fixed_tokens == 2 * MEDIA_TOKENS
    same = size("responses", input=messages([text, image(bytes_, kind)]))
    assert same.media == 1


@pytest.mark.parametrize("bytes_", [100, 4 * LARGE_BYTES])
def test_a_sound_counts_as_a_part(bytes_: int) -> None:
    sound = {"format": "wav", "data": "A" * bytes_}
    parts = size(messages=messages([{"type": "input_audio", "input_audio": sound}] * 3))
    assert parts.media == 3
    assert parts.text_bytes < 300


def test_a_part_of_an_unknown_type_counts_by_its_bytes() -> None:
    part = {"type": "poem", "poem": "image " * 100}
    assert size(messages=messages([part])).text_bytes > 600
    assert size(messages=messages([part])).media == 0


def test_what_the_application_adds_is_counted_apart_too() -> None:
    tools = [{"type": "function", "function": {"name": "f" * 100}}]
    chat = size(messages=[*messages("s" * 300, role="system"), *messages("hi")], tools=tools)
    assert 400 < chat.system_bytes < chat.text_bytes
    answer = size("responses", input="hi", instructions="i" * 300)
    assert (answer.system_bytes, answer.text_bytes) == (302, 306)


@pytest.mark.parametrize(
    ("prompt", "tokens"), [([1, 2, 3], 3), ([[1, 2], [3]], 3), ([7], 1), (["a", "b"], 0), ("1", 0)]
)
def test_token_ids_count_as_they_are(prompt: Any, tokens: int) -> None:
    assert size("completions", prompt=prompt).token_ids == tokens
    assert size("embeddings", input=prompt).token_ids == tokens


def test_text_among_token_ids_counts_by_its_bytes() -> None:
    mixed = size("completions", prompt=[1, "x" * 500])
    assert mixed.token_ids == 0
    assert mixed.text_bytes > 500


def test_escapes_count_as_their_characters_but_text_is_never_shortened() -> None:
    assert text_bytes(b'"\\u00e9"') == 5
    assert text_bytes(b'"\\\\u0041"') == 9
    assert text_bytes(b'"\\\\\\u0041"') == 10
    assert text_bytes(b'"' + b"\\\\u" * 1000 + b'"') == 3002


@pytest.mark.parametrize(
    "value", [["image"], [7, "image"], [{"content": [1, "image"]}], "image", {"image": 1}]
)
def test_a_prompt_of_no_known_form_counts_by_its_bytes(value: Any) -> None:
    assert size("responses", input=value) == PromptSize(
        len(json.dumps(value, separators=(",", ":")))
    )


def test_no_large_text_passes_as_an_image() -> None:
    text = "data:image/png;base64," + "x" * 2 * LARGE_BYTES
    audio = {"input_audio": {"data": text}}
    for content in (text, json.dumps({"url": text}), json.dumps(audio), {"data": text}):
        whole = size(messages=messages(content))
        assert (whole.media, whole.text_bytes > 2 * LARGE_BYTES) == (0, True)


@pytest.mark.parametrize(("images", "media"), [(MOST_DATA, MOST_DATA), (MOST_DATA + 1, 0)])
def test_a_large_prompt_of_too_many_data_counts_by_its_bytes(images: int, media: int) -> None:
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    content = [part] * images
    whole = size(messages=messages(content))
    all_bytes = len(json.dumps(messages(content), separators=(",", ":")))
    assert all_bytes > LARGE_BYTES
    assert (whole.media, whole.text_bytes == all_bytes) == (media, media == 0)


def test_usage_can_be_checked_against_the_most_tokens_of_a_prompt() -> None:
    prompt = size("completions", prompt="x" * 998)
    assert prompt.most_tokens == 2024
