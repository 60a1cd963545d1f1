"""Prompts are counted in bytes, answers have the same length again, prefixes are read once."""

from __future__ import annotations

import pytest

from simulator.emulator.prompts import (
    BLOCK_TOKENS,
    PART_TOKENS,
    InvalidPrompt,
    PrefixCache,
    answer_tokens,
    count_tokens,
    message_prompt,
    prompts_of,
    token_ids,
)


@pytest.mark.parametrize(("prompt", "tokens"), [(b"", 1), (b"abcd", 1), (b"abcde", 2)])
def test_four_bytes_are_a_token(prompt: bytes, tokens: int) -> None:
    assert count_tokens(prompt) == tokens


def test_token_ids_count_as_they_are() -> None:
    (prompt,) = prompts_of([7, 0, 4294967295])
    assert count_tokens(prompt) == 3
    assert token_ids(prompt) == [7, 0, 4294967295]
    assert [count_tokens(item) for item in prompts_of([[1, 2], [3]])] == [2, 1]


@pytest.mark.parametrize("value", [[], [1, "text"], [-1], [[4294967296]]])
def test_a_list_that_is_no_prompt_is_refused(value: list[str | int | list[int]]) -> None:
    with pytest.raises(InvalidPrompt):
        prompts_of(value)


def test_a_part_that_is_no_text_has_a_size_of_its_own() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    prompt = message_prompt([[{"type": "text", "text": "abcd"}, image], None, "efgh"])
    assert count_tokens(prompt) == PART_TOKENS + 2


def test_an_answer_has_the_same_length_again_and_stays_in_its_bounds() -> None:
    lengths = [answer_tokens(1, None, b"a", index, (5, 400)) for index in range(200)]
    assert lengths == [answer_tokens(1, None, b"a", index, (5, 400)) for index in range(200)]
    assert min(lengths) >= 5
    assert max(lengths) == 400
    assert len(set(lengths)) > 50
    assert lengths != [answer_tokens(1, 7, b"a", index, (5, 400)) for index in range(200)]


def test_the_beginning_that_two_prompts_share_is_cached() -> None:
    cache = PrefixCache(10_000)
    shared = b"x" * 4 * BLOCK_TOKENS * 3
    cache.add(shared + b"first")
    assert cache.cached_tokens(shared + b"another") == 3 * BLOCK_TOKENS
    assert cache.cached_tokens(b"y" + shared) == 0


def test_a_token_of_a_cached_prompt_is_read_again() -> None:
    cache = PrefixCache(10_000)
    prompt = b"x" * 4 * BLOCK_TOKENS
    cache.add(prompt)
    assert cache.cached_tokens(prompt) == BLOCK_TOKENS - 1


def test_the_end_of_the_prompt_used_longest_ago_is_forgotten_first() -> None:
    cache = PrefixCache(4 * BLOCK_TOKENS)
    old, new = b"a" * 4 * BLOCK_TOKENS * 3, b"b" * 4 * BLOCK_TOKENS * 2
    cache.add(old)
    cache.add(new)
    assert cache.cached_tokens(old + b"end") == 2 * BLOCK_TOKENS
    assert cache.cached_tokens(new + b"end") == 2 * BLOCK_TOKENS
