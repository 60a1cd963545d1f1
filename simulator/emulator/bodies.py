"""The bodies of requests: the fields that change what an emulated engine does.

Other fields of the OpenAI API are accepted and ignored, `stop` too: an answer is filler.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from simulator.emulator.errors import EngineError
from simulator.emulator.prompts import InvalidPrompt, message_prompt, prompts_of

DEFAULT_OUTPUT_TOKENS = 256
"""Limit of an answer for which the request sets none."""
MOST_CHOICES = 128
MOST_PROMPTS = 1024

Count = Annotated[int, Meta(ge=1, le=10_000_000)]
Prompts = str | list[str | int | list[int]]
Content = str | list[dict[str, Any]] | None
AnyBody = TypeVar("AnyBody", bound=Struct)


class StreamOptions(Struct, frozen=True):
    include_usage: bool | None = False


class Message(Struct, frozen=True):
    role: str = "user"
    content: Content = None


class CompletionBody(Struct, frozen=True, kw_only=True):
    """The fields of both kinds of completion."""

    model: str
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: Annotated[int, Meta(ge=1, le=MOST_CHOICES)] | None = 1
    seed: int | None = None
    max_tokens: Count | None = None
    min_tokens: Annotated[int, Meta(ge=0, le=10_000_000)] = 0
    ignore_eos: bool = False

    @property
    def field(self) -> str:
        """The field that holds the prompt."""
        raise NotImplementedError

    @property
    def prompts(self) -> list[bytes]:
        raise NotImplementedError

    @property
    def limit(self) -> int | None:
        """The most tokens of an answer; None if the request sets no limit."""
        return self.max_tokens

    @property
    def choices(self) -> int:
        """Return the number of answers that each prompt gets."""
        return self.n or 1

    @property
    def includes_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)


class ChatBody(CompletionBody, frozen=True, kw_only=True):
    messages: Annotated[list[Message], Meta(min_length=1)]
    max_completion_tokens: Count | None = None

    @property
    def field(self) -> str:
        return "messages"

    @property
    def prompts(self) -> list[bytes]:
        return [message_prompt(message.content for message in self.messages)]

    @property
    def limit(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens


class TextBody(CompletionBody, frozen=True, kw_only=True):
    prompt: Prompts

    @property
    def field(self) -> str:
        return "prompt"

    @property
    def prompts(self) -> list[bytes]:
        return checked_prompts("prompt", self.prompt)


class ResponsesBody(CompletionBody, frozen=True, kw_only=True):
    input: str | list[Message]
    instructions: str | None = None
    max_output_tokens: Count | None = None

    @property
    def choices(self) -> int:
        return 1

    @property
    def field(self) -> str:
        return "input"

    @property
    def prompts(self) -> list[bytes]:
        items: list[Content] = [self.instructions]
        if isinstance(self.input, str):
            items.append(self.input)
        else:
            items += [message.content for message in self.input]
        return [message_prompt(items)]

    @property
    def limit(self) -> int | None:
        return self.max_output_tokens


class EmbeddingsBody(Struct, frozen=True):
    model: str
    input: Prompts
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: Annotated[int, Meta(ge=1, le=8192)] | None = None


class TokenizeBody(Struct, frozen=True):
    model: str | None = None
    prompt: str | None = None
    messages: list[Message] | None = None


class RetrainingBody(Struct, frozen=True):
    """The share of the time that no deadline needs, and the deadlines, wall s."""

    share: Annotated[float, Meta(ge=0, le=1)]
    ttft_s: Annotated[float, Meta(gt=0)] = 2.0
    tpot_s: Annotated[float, Meta(gt=0)] = 0.1
    freshness_s: Annotated[float, Meta(gt=0)] = 60.0


def decode(kind: type[AnyBody], body: bytes) -> AnyBody:
    """Decode a body. Raises EngineError, which names the field and the rule, for an invalid one."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `")
        field = path.removeprefix("$").removeprefix(".").removesuffix("`")
        raise EngineError(400, f"{field or 'body'}: {text}", param=field or None) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise EngineError(400, "body: not valid JSON") from None


def checked_prompts(field: str, value: Prompts) -> list[bytes]:
    """Return the prompts of a field. Raises EngineError where they are invalid."""
    try:
        prompts = prompts_of(value)
    except InvalidPrompt as error:
        raise EngineError(400, f"{field}: {error}", param=field) from None
    if len(prompts) > MOST_PROMPTS:
        text = f"{field}: {len(prompts)} prompts; at most {MOST_PROMPTS} are allowed"
        raise EngineError(400, text, param=field)
    return prompts
