"""Counts the tokens of an answer: by the engine's usage, checked against the chunks that arrived.

Chunks of a stream are searched for a few bytes, not decoded: only those with a usage are.
Within a JSON string each quotation mark is escaped, so that no text of a model can look like a
field of its chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta, Raw

from services.throttle.relay.chunk_marks import ERROR, FINISH, TEXT, USAGE
from services.throttle.relay.request import Route
from services.throttle.relay.sse import SseEvent

DONE = b"[DONE]"
QUOTATION, BACKSLASH = b'"\\'
ENDS = frozenset({b"response.completed", b"response.incomplete", b"response.failed", b"error"})
"""Events that end a stream of `/v1/responses`."""
FAILURES = frozenset({b"response.failed", b"error"})

_Count = Annotated[int, Meta(ge=0)]


class EngineUsage(msgspec.Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


class _Details(msgspec.Struct):
    cached_tokens: _Count | None = None


class _Usage(msgspec.Struct):
    """Both names of each count, as in completions and in responses."""

    prompt_tokens: _Count | None = None
    input_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    output_tokens: _Count | None = None
    prompt_tokens_details: _Details | None = None
    input_tokens_details: _Details | None = None


class _Response(msgspec.Struct):
    usage: _Usage | None = None


class _Chunk(msgspec.Struct):
    type: str = ""
    usage: _Usage | None = None
    choices: list[Raw] | None = None
    response: _Response | None = None


_CHUNK = msgspec.json.Decoder(_Chunk)


class TokenCount:
    """The tokens of one answer, while it arrives and afterwards.

    A usage is believed if it claims at least as many output tokens as chunks with text arrived,
    and no more than the request's limit. Otherwise `tokens_of` estimates them by the bytes of the
    text: at least a token per chunk, which may hold several, at most the limit. The prompt's tokens
    are believed up to `prompt_limit`; they are None where the caller's own estimate counts.
    """

    def __init__(
        self,
        route: Route,
        *,
        answers: int = 1,
        output_limit: int | None = None,
        prompt_limit: int | None = None,
        tokens_of: Callable[[int], int] = lambda _: 0,
    ) -> None:
        self._route = route
        self._tokens_of = tokens_of
        self._answers = answers
        self._output_limit = output_limit
        self._prompt_limit = prompt_limit
        self._mark = b'"text":"' if route == "completions" else b'"content":"'
        self._finished = 0
        self._ended = False
        self.chunks = 0
        """Chunks with text."""
        self.text_bytes = 0
        """Bytes of the text of these chunks, as JSON has it."""
        self.usage: EngineUsage | None = None
        self.failed = False
        """Whether the engine reported an error within the stream."""

    def add(self, event: SseEvent) -> bool:
        """Count an event of the stream; returns whether it holds the usage and nothing else."""
        data = event.data
        if data is None:
            self.chunks += len(event.texts)
            self.text_bytes += sum(map(len, event.texts))
            return False
        if self._route == "responses":
            self._add_response(event, data)
            return False
        if data == DONE:
            self._ended = True
            return False
        if event.name == b"error" or ERROR.match(data):
            self.failed = True
        else:
            self._add_text_of(data)
        if b'"usage"' in data and USAGE.search(data):
            return self._add_usage(data)
        if b'"finish_reason":null' not in data and FINISH.search(data):
            self._finished += 1
        return False

    def add_text(self, text_bytes: int) -> None:
        """Count a chunk with so many bytes of text, and nothing else."""
        self.chunks += 1
        self.text_bytes += text_bytes

    def add_answer(self, body: bytes) -> None:
        """Count a whole answer, of an engine that did not stream: by its text if its usage is not
        believed."""
        chunk = _decode(body)
        self._ended = chunk is not None
        if chunk is not None:
            self.usage = _engine_usage(chunk.usage) or self.usage
        if self.believed_tokens is None and self._route != "embeddings":
            for match in TEXT.finditer(body):
                self._add_text_at(body, match.end())

    @property
    def has_begun(self) -> bool:
        """Return whether the first token arrived."""
        return self.chunks > 0

    @property
    def has_ended(self) -> bool:
        """Return whether the last event of the stream arrived, behind which nothing is of use."""
        return self._ended

    @property
    def is_complete(self) -> bool:
        """Return whether the stream may end here: it is finished, or each answer has its reason."""
        return self._ended or self._finished >= self._answers

    @property
    def doubt(self) -> str:
        """Return why the engine's usage is not believed; empty if it is, or if there is none."""
        if self.usage is None:
            return ""
        claimed, limit = self.usage.completion_tokens, self._output_limit
        if claimed < self.chunks:
            return f"usage: {claimed} output tokens for {self.chunks} chunks with text"
        if limit is not None and claimed > limit:
            return f"usage: {claimed} output tokens above the limit of {limit}"
        if self._prompt_limit is not None and self.usage.prompt_tokens > self._prompt_limit:
            claimed, limit = self.usage.prompt_tokens, self._prompt_limit
            return f"usage: {claimed} prompt tokens; the prompt has at most {limit}"
        return ""

    @property
    def output_tokens(self) -> int:
        """Output tokens to charge."""
        claimed = self.believed_tokens
        return self._counted if claimed is None else claimed

    @property
    def believed_tokens(self) -> int | None:
        """Output tokens by the engine; None if it gave none that can be believed."""
        if self.usage is None:
            return None
        claimed, limit = self.usage.completion_tokens, self._output_limit
        is_believed = claimed >= self.chunks and (limit is None or claimed <= limit)
        return claimed if is_believed else None

    @property
    def made_tokens(self) -> int:
        """Output tokens so far, at least: a token per chunk up to the limit."""
        return self.chunks if self._output_limit is None else min(self.chunks, self._output_limit)

    @property
    def _counted(self) -> int:
        tokens, limit = max(self.chunks, self._tokens_of(self.text_bytes)), self._output_limit
        return tokens if limit is None else min(tokens, limit)

    @property
    def prompt_tokens(self) -> int | None:
        """Prompt tokens by the engine; None if it gave none that can be believed."""
        tokens = self.usage.prompt_tokens if self.usage else 0
        is_believed = self._prompt_limit is None or tokens <= self._prompt_limit
        return tokens if tokens and is_believed else None

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens that the engine had in its cache."""
        return min(self.usage.cached_tokens, self.prompt_tokens or 0) if self.usage else 0

    def _add_text_of(self, data: bytes) -> None:
        start = data.find(self._mark) + len(self._mark)
        if not len(self._mark) <= start < len(data) or data[start] == QUOTATION:
            start = self._text_start(data)
        if start >= 0:
            self._add_text_at(data, start)

    def _text_start(self, data: bytes) -> int:
        """Return where the text of a chunk begins; -1 without one."""
        match = TEXT.search(data)
        if match is None:
            return -1
        # The next chunks have most likely the same form: one search finds their text.
        self._mark = match[0]
        return match.end()

    def _add_text_at(self, data: bytes, start: int) -> None:
        end = data.find(b'"', start)
        while end > 0 and data[end - 1] == BACKSLASH:
            end = data.find(b'"', end + 1)
        self.add_text((end if end > 0 else len(data)) - start)

    def _add_usage(self, data: bytes) -> bool:
        chunk = _decode(data)
        usage = _engine_usage(chunk.usage) if chunk else None
        if chunk is None or usage is None:
            return False
        self.usage = usage
        self._finished += FINISH.search(data) is not None
        return chunk.choices == []

    def _add_response(self, event: SseEvent, data: bytes) -> None:
        is_delta = event.name not in ENDS and b'.delta"' in data
        if is_delta and (start := self._text_start(data)) >= 0:
            self._add_text_at(data, start)
            return
        if data == DONE:
            self._ended = True
            return
        chunk = _decode(data)
        if chunk is None:
            return
        name = event.name or chunk.type.encode()
        if name in ENDS:
            self._ended = True
            self.failed |= name in FAILURES
            usage = _engine_usage(chunk.response.usage) if chunk.response else None
            self.usage = usage or self.usage


def _decode(data: bytes) -> _Chunk | None:
    """Return the fields of a chunk; None where it is malformed."""
    try:
        return _CHUNK.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _engine_usage(usage: _Usage | None) -> EngineUsage | None:
    if usage is None:
        return None
    details = usage.prompt_tokens_details or usage.input_tokens_details
    return EngineUsage(
        prompt_tokens=usage.prompt_tokens or usage.input_tokens or 0,
        completion_tokens=usage.completion_tokens or usage.output_tokens or 0,
        cached_tokens=(details.cached_tokens or 0) if details else 0,
    )
