"""Answers in the forms of the OpenAI API. They are filler, and state that no model ran."""

from __future__ import annotations

import base64
import json
import random
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import sqrt
from typing import Any, Protocol

from simulator.emulator.batch import AnswerSequence, EngineWork

FINGERPRINT = "berth-emulated-engine"
WORDS = (
    *("[emulated]", "no", "model", "ran;", "these", "words", "stand", "for", "the", "tokens"),
    *("of", "an", "answer."),
)
ENCODED = tuple(f"{word} ".encode() for word in WORDS)
DIMENSIONS = 64
WRONG_USAGE = 10
"""Factor of the usage under the fault `wrong-usage`."""
Json = dict[str, Any]


def filler(start: int, end: int) -> str:
    """Return the text of tokens `start` to `end` of any answer."""
    return "".join(f"{WORDS[n % len(WORDS)]} " for n in range(start, end))


def encode(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def event(data: bytes, name: str = "") -> bytes:
    """Return one server-sent event."""
    head = f"event: {name}\n".encode() if name else b""
    return b"%sdata: %s\n\n" % (head, data)


@dataclass(frozen=True)
class Usage:
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int

    @classmethod
    def of(cls, work: EngineWork, choices: int, *, wrong: bool = False) -> Usage:
        """Count a prompt once, however many choices it has."""
        prompts = work.sequences[::choices]
        factor = WRONG_USAGE if wrong else 1
        return cls(
            sum(sequence.prompt_tokens for sequence in prompts) * factor,
            sum(sequence.cached_tokens for sequence in prompts),
            work.made_tokens * factor,
        )

    def document(self) -> Json:
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
        }


@dataclass(frozen=True)
class AnswerHead:
    """The fields that all chunks of an answer have."""

    id: str
    created: int
    model: str

    def fields(self, kind: str) -> Json:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": FINGERPRINT,
        }


class AnswerForm(Protocol):
    """The form of an answer, as one document or as events of a stream."""

    def document(self, sequences: Sequence[AnswerSequence], usage: Usage) -> Json:
        """Return the whole answer."""

    def begin(self, choices: int) -> bytes:
        """Return the events before the first token."""

    def tokens(self, choice: int, start: int, end: int) -> bytes:
        """Return one event per token."""

    def end(self, sequences: Sequence[AnswerSequence], usage: Usage) -> bytes:
        """Return the events behind the last token."""


class CompletionForm:
    """Chunks of chat completions and text completions; a token's chunk is spliced, not encoded."""

    def __init__(self, head: AnswerHead, *, chat: bool, includes_usage: bool) -> None:
        self._head = head
        self._chat = chat
        self._includes_usage = includes_usage
        self._whole, self._part = (
            ("chat.completion", "chat.completion.chunk")
            if chat
            else ("text_completion", "text_completion")
        )
        self._spliced: dict[int, tuple[bytes, bytes]] = {}

    def document(self, sequences: Sequence[AnswerSequence], usage: Usage) -> Json:
        choices = []
        for index, sequence in enumerate(sequences):
            text = filler(0, sequence.made_tokens)
            content: Json = (
                {"message": {"role": "assistant", "content": text}}
                if self._chat
                else {"text": text}
            )
            reason = sequence.finish_reason
            choices.append({"index": index, **content, "logprobs": None, "finish_reason": reason})
        return {**self._head.fields(self._whole), "choices": choices, "usage": usage.document()}

    def begin(self, choices: int) -> bytes:
        if not self._chat:
            return b""
        delta = {"role": "assistant", "content": ""}
        return b"".join(self._event(index, delta, None) for index in range(choices))

    def tokens(self, choice: int, start: int, end: int) -> bytes:
        prefix, suffix = self._splices(choice)
        return b"".join(
            prefix + ENCODED[number % len(ENCODED)] + suffix for number in range(start, end)
        )

    def end(self, sequences: Sequence[AnswerSequence], usage: Usage) -> bytes:
        events = [
            self._event(index, {}, sequence.finish_reason)
            for index, sequence in enumerate(sequences)
        ]
        if self._includes_usage:
            last = {**self._head.fields(self._part), "choices": [], "usage": usage.document()}
            events.append(event(encode(last)))
        return b"".join((*events, event(b"[DONE]")))

    def _splices(self, choice: int) -> tuple[bytes, bytes]:
        """Return what stands before and behind the word in the chunk of a token."""
        if choice not in self._spliced:
            mark = "\u2400"
            before, _, behind = self._event(choice, {"content": mark}, None).partition(
                json.dumps(mark)[1:-1].encode()
            )
            self._spliced[choice] = before, behind
        return self._spliced[choice]

    def _event(self, index: int, delta: Mapping[str, str], reason: str | None) -> bytes:
        content: Json = {"delta": delta} if self._chat else {"text": delta.get("content", "")}
        choice = {"index": index, **content, "logprobs": None, "finish_reason": reason}
        return event(encode({**self._head.fields(self._part), "choices": [choice]}))


def embedding(prompt: bytes, dimensions: int | None, encoding: str | None) -> list[float] | str:
    """Return a unit vector that depends on the prompt alone; `base64` packs it as float32."""
    source = random.Random(blake2b(prompt, digest_size=16).digest())
    vector = [source.gauss(0, 1) for _ in range(dimensions or DIMENSIONS)]
    norm = sqrt(sum(number * number for number in vector))
    unit = [number / norm for number in vector]
    if encoding == "base64":
        return base64.b64encode(struct.pack(f"<{len(unit)}f", *unit)).decode()
    return unit
