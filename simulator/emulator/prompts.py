"""Prompts of an emulated engine as bytes, of which four are one token.

A real tokenizer depends on the model. Token ids of a request take four bytes each, so that they
count as they are.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from math import ceil, log
from typing import Any

BYTES_PER_TOKEN = 4
PART_TOKENS = 256
"""Tokens of a part of a message that is no text, such as an image."""
BLOCK_TOKENS = 16
"""Tokens of a block of the prefix cache (the default of vLLM)."""
MEDIAN_TOKENS = 211
"""Median length of an answer: that of the Chatbot-Arena requests in VTC's evaluation."""
SIGMA = 0.7
TokenIds = Sequence[int]


class InvalidPrompt(ValueError):
    """A prompt is invalid; the text names the rule."""


def count_tokens(prompt: bytes) -> int:
    return max(1, ceil(len(prompt) / BYTES_PER_TOKEN))


def token_ids(prompt: bytes) -> list[int]:
    """Return one id per token: the number that its bytes are."""
    starts = range(0, len(prompt), BYTES_PER_TOKEN)
    return [int.from_bytes(prompt[start : start + BYTES_PER_TOKEN], "little") for start in starts]


def text_prompt(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def prompts_of(value: str | Sequence[str | int | TokenIds]) -> list[bytes]:
    """Return the prompts of a `prompt` or `input`: a text, token ids, or a list of either.

    Raises InvalidPrompt for an empty list, for ids beside texts, and for ids out of range.
    """
    if isinstance(value, str):
        return [text_prompt(value)]
    if not value:
        raise InvalidPrompt("an empty list; at least one is required")
    ids = [item for item in value if isinstance(item, int)]
    if ids:
        if len(ids) < len(value):
            raise InvalidPrompt("token ids and texts in one list")
        return [_packed(ids)]
    return [
        text_prompt(item) if isinstance(item, str) else _packed(item)
        for item in value
        if not isinstance(item, int)
    ]


def message_prompt(contents: Iterable[str | Sequence[Mapping[str, Any]] | None]) -> bytes:
    """Return the prompt that the contents of messages make; roles and templates count nothing."""
    return b"".join(part for content in contents for part in _parts(content))


def answer_tokens(
    seed: int, request_seed: int | None, prompt: bytes, index: int, bounds: tuple[int, int]
) -> int:
    """Return the length of an answer within bounds: the same for the same seeds and prompt.

    `index` is that of the choice. Lengths are log-normal.
    """
    digest = blake2b(prompt, digest_size=16).hexdigest()
    source = random.Random(f"{seed}/{request_seed}/{index}/{digest}")
    least, most = bounds
    return min(max(round(source.lognormvariate(log(MEDIAN_TOKENS), SIGMA)), least, 1), most)


class PrefixCache:
    """The blocks of prompts that were read last, each known by the prompt up to its end."""

    def __init__(self, tokens: int) -> None:
        self._most = tokens // BLOCK_TOKENS
        self._blocks: OrderedDict[bytes, None] = OrderedDict()

    def cached_tokens(self, prompt: bytes) -> int:
        """Return how many tokens of the prompt need not be read; at least one always is."""
        blocks = 0
        for block in _blocks(prompt):
            if block not in self._blocks:
                break
            blocks += 1
        return min(blocks * BLOCK_TOKENS, count_tokens(prompt) - 1)

    def add(self, prompt: bytes) -> None:
        """Keep the blocks of a prompt, in the place of those used longest ago.

        The end of a prompt is forgotten before its beginning, which more requests share.
        """
        for block in reversed(list(_blocks(prompt))):
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        while len(self._blocks) > self._most:
            self._blocks.popitem(last=False)


def _blocks(prompt: bytes) -> Iterator[bytes]:
    size = BLOCK_TOKENS * BYTES_PER_TOKEN
    state = blake2b(digest_size=16)
    for start in range(0, len(prompt) - size + 1, size):
        state.update(prompt[start : start + size])
        yield state.digest()


def _packed(ids: Iterable[int]) -> bytes:
    try:
        return b"".join(number.to_bytes(BYTES_PER_TOKEN, "little") for number in ids)
    except OverflowError:
        raise InvalidPrompt("a token id that is not in 0..4294967295") from None


def _parts(content: str | Sequence[Mapping[str, Any]] | None) -> Iterator[bytes]:
    if content is None:
        return
    if isinstance(content, str):
        yield text_prompt(content)
        return
    for part in content:
        text = part.get("text")
        if isinstance(text, str):
            yield text_prompt(text)
        else:
            yield _stand_in(part)


def _stand_in(part: Mapping[str, Any]) -> bytes:
    """Return bytes for a part that is no text, the same for the same part."""
    digest = blake2b(repr(part).encode("utf-8", "surrogatepass"), digest_size=64).digest()
    return digest * (PART_TOKENS * BYTES_PER_TOKEN // len(digest))
