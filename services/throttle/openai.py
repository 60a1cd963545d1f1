"""The shapes of the OpenAI API that the proxy speaks: what it reads, and what it answers.

Answers are filler: the engine is emulated, no model runs, and every answer says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.contracts.base import Name

WORDS = (
    "[emulated]",
    "no",
    "model",
    "ran;",
    "words",
    "stand",
    "for",
    "tokens",
    "of",
    "an",
    "answer.",
)
CHARACTERS_PER_TOKEN = 4
"""The emulated tokenizer: nothing is known of the real one's."""
DEFAULT_OUTPUT_TOKENS = 256
FINGERPRINT = "berth-emulated-engine"

Kind = Literal["chat", "text"]
Tokens = Annotated[int, Field(ge=1, le=10_000_000)]


class Loose(BaseModel):
    """Options that mean nothing to an emulated engine are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Part(Loose):
    type: Literal["text"]
    text: str


class Message(Loose):
    role: str
    content: str | tuple[Part, ...] | None = None

    @property
    def characters(self) -> int:
        if isinstance(self.content, str):
            return len(self.content)
        return sum(len(part.text) for part in self.content or ())


class StreamOptions(Loose):
    include_usage: bool = False


class Common(Loose):
    """Fields that both kinds of completion have; `model` names the endpoint."""

    model: Name
    max_tokens: Tokens | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: Literal[1] = 1

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage


class AskChat(Common):
    messages: tuple[Message, ...] = Field(min_length=1)
    max_completion_tokens: Tokens | None = None

    @property
    def prompt_tokens(self) -> int:
        return tokens_of(sum(message.characters for message in self.messages))

    @property
    def output_tokens(self) -> int:
        return self.max_completion_tokens or self.max_tokens or DEFAULT_OUTPUT_TOKENS


class AskText(Common):
    prompt: str

    @property
    def prompt_tokens(self) -> int:
        return tokens_of(len(self.prompt))

    @property
    def output_tokens(self) -> int:
        return self.max_tokens or DEFAULT_OUTPUT_TOKENS


Ask = AskChat | AskText
ASKS: Mapping[Kind, type[AskChat] | type[AskText]] = {"chat": AskChat, "text": AskText}


class BadBody(ValueError):
    """Says which field is wrong, never what stands there."""


def tokens_of(characters: int) -> int:
    return max(1, ceil(characters / CHARACTERS_PER_TOKEN))


def read(kind: Kind, body: bytes) -> Ask:
    try:
        return ASKS[kind].model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadBody(f"{where}: {first['msg']}" if where else "the body is not JSON") from None


def filler(start: int, end: int) -> str:
    """The text of tokens `start` to `end` of any answer."""
    return "".join(f"{WORDS[n % len(WORDS)]} " for n in range(start, end))


class Answer:
    """One answer, whole or in pieces."""

    def __init__(self, kind: Kind, ask: Ask, answer_id: str, created: int) -> None:
        self._kind = kind
        self._ask = ask
        self._head = {
            "id": f"{'chatcmpl' if kind == 'chat' else 'cmpl'}-{answer_id}",
            "created": created,
            "model": ask.model,
            "system_fingerprint": FINGERPRINT,
        }

    def whole(self, tokens: int) -> dict[str, object]:
        text = filler(0, tokens)
        choice: dict[str, object] = {"index": 0, "finish_reason": self._reason(tokens)}
        if self._kind == "chat":
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice["text"] = text
        name = "chat.completion" if self._kind == "chat" else "text_completion"
        return {**self._head, "object": name, "choices": [choice], "usage": self._usage(tokens)}

    def piece(self, start: int, end: int) -> dict[str, object]:
        text = filler(start, end)
        if self._kind == "chat":
            delta = {"content": text} if start else {"role": "assistant", "content": text}
            return self._chunk([{"index": 0, "delta": delta, "finish_reason": None}])
        return self._chunk([{"index": 0, "text": text, "finish_reason": None}])

    def last(self, tokens: int) -> dict[str, object]:
        rest: dict[str, object] = {"delta": {}} if self._kind == "chat" else {"text": ""}
        return self._chunk([{"index": 0, **rest, "finish_reason": self._reason(tokens)}])

    def usage(self, tokens: int) -> dict[str, object]:
        return {**self._chunk([]), "usage": self._usage(tokens)}

    def _chunk(self, choices: list[dict[str, object]]) -> dict[str, object]:
        name = "chat.completion.chunk" if self._kind == "chat" else "text_completion"
        return {**self._head, "object": name, "choices": choices}

    def _reason(self, tokens: int) -> str:
        return "length" if tokens >= self._ask.output_tokens else "stop"

    def _usage(self, tokens: int) -> dict[str, int]:
        prompt = self._ask.prompt_tokens
        return {
            "prompt_tokens": prompt,
            "completion_tokens": tokens,
            "total_tokens": prompt + tokens,
        }
