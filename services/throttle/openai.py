"""The requests and responses of the OpenAI API that the proxy supports.

Answers are filler: the engine is emulated, no model runs, and every answer states that.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.contracts.base import Name

FILLER_WORDS = (
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
"""The emulated tokenizer; a real one depends on the model."""
DEFAULT_OUTPUT_TOKENS = 256
FINGERPRINT = "berth-emulated-engine"

CompletionKind = Literal["chat", "text"]
TokenCount = Annotated[int, Field(ge=1, le=10_000_000)]


class LenientModel(BaseModel):
    """Ignores the options that have no meaning for an emulated engine."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ContentPart(LenientModel):
    type: Literal["text"]
    text: str


class ChatMessage(LenientModel):
    role: str
    content: str | tuple[ContentPart, ...] | None = None

    @property
    def characters(self) -> int:
        if isinstance(self.content, str):
            return len(self.content)
        return sum(len(part.text) for part in self.content or ())


class StreamOptions(LenientModel):
    include_usage: bool = False


class CompletionFields(LenientModel):
    """The fields of both kinds of completion; `model` names the endpoint."""

    model: Name
    max_tokens: TokenCount | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: Literal[1] = 1

    @property
    def includes_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage


class ChatCompletionRequest(CompletionFields):
    messages: tuple[ChatMessage, ...] = Field(min_length=1)
    max_completion_tokens: TokenCount | None = None

    @property
    def prompt_tokens(self) -> int:
        return count_tokens(sum(message.characters for message in self.messages))

    @property
    def output_tokens(self) -> int:
        return self.max_completion_tokens or self.max_tokens or DEFAULT_OUTPUT_TOKENS


class TextCompletionRequest(CompletionFields):
    prompt: str

    @property
    def prompt_tokens(self) -> int:
        return count_tokens(len(self.prompt))

    @property
    def output_tokens(self) -> int:
        return self.max_tokens or DEFAULT_OUTPUT_TOKENS


CompletionRequest = ChatCompletionRequest | TextCompletionRequest
REQUEST_MODELS: Mapping[
    CompletionKind, type[ChatCompletionRequest] | type[TextCompletionRequest]
] = {"chat": ChatCompletionRequest, "text": TextCompletionRequest}


class InvalidCompletion(ValueError):
    """The body is invalid; the text names the field and the rule, never the value."""


def count_tokens(characters: int) -> int:
    return max(1, ceil(characters / CHARACTERS_PER_TOKEN))


def parse_request(kind: CompletionKind, body: bytes) -> CompletionRequest:
    try:
        return REQUEST_MODELS[kind].model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InvalidCompletion(
            f"{field}: {first['msg']}" if field else "body: not valid JSON"
        ) from None


def filler(start: int, end: int) -> str:
    """Return the text of tokens `start` to `end` of any answer."""
    return "".join(f"{FILLER_WORDS[n % len(FILLER_WORDS)]} " for n in range(start, end))


class CompletionResponse:
    """One response, as a whole or as a stream of chunks."""

    def __init__(
        self, kind: CompletionKind, request: CompletionRequest, response_id: str, created: int
    ) -> None:
        self._kind = kind
        self._request = request
        self._head = {
            "id": f"{'chatcmpl' if kind == 'chat' else 'cmpl'}-{response_id}",
            "created": created,
            "model": request.model,
            "system_fingerprint": FINGERPRINT,
        }

    def complete(self, tokens: int) -> dict[str, object]:
        text = filler(0, tokens)
        choice: dict[str, object] = {"index": 0, "finish_reason": self._finish_reason(tokens)}
        if self._kind == "chat":
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice["text"] = text
        name = "chat.completion" if self._kind == "chat" else "text_completion"
        return {**self._head, "object": name, "choices": [choice], "usage": self._usage(tokens)}

    def chunk(self, start: int, end: int) -> dict[str, object]:
        text = filler(start, end)
        if self._kind == "chat":
            delta = {"content": text} if start else {"role": "assistant", "content": text}
            return self._envelope([{"index": 0, "delta": delta, "finish_reason": None}])
        return self._envelope([{"index": 0, "text": text, "finish_reason": None}])

    def last_chunk(self, tokens: int) -> dict[str, object]:
        rest: dict[str, object] = {"delta": {}} if self._kind == "chat" else {"text": ""}
        return self._envelope([{"index": 0, **rest, "finish_reason": self._finish_reason(tokens)}])

    def usage_chunk(self, tokens: int) -> dict[str, object]:
        return {**self._envelope([]), "usage": self._usage(tokens)}

    def _envelope(self, choices: list[dict[str, object]]) -> dict[str, object]:
        name = "chat.completion.chunk" if self._kind == "chat" else "text_completion"
        return {**self._head, "object": name, "choices": choices}

    def _finish_reason(self, tokens: int) -> str:
        return "length" if tokens >= self._request.output_tokens else "stop"

    def _usage(self, tokens: int) -> dict[str, int]:
        prompt = self._request.prompt_tokens
        return {
            "prompt_tokens": prompt,
            "completion_tokens": tokens,
            "total_tokens": prompt + tokens,
        }
