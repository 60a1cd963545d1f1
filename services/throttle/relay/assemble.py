"""Assembles a whole answer from a stream: engines always stream, some clients do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from services.throttle.relay.merge import Fields, Pieces, merge, plain
from services.throttle.relay.request import Route
from services.throttle.relay.sse import SseEvent
from services.throttle.relay.text_chunks import TextChunk, text_chunk
from services.throttle.relay.text_runs import TextRuns
from services.throttle.relay.usage import DONE, ENDS

MOST_ANSWER_BYTES = 64 * 1024 * 1024
OBJECTS: Mapping[Route, str] = {
    "chat/completions": "chat.completion",
    "completions": "text_completion",
}

TEXT_FIELDS: Mapping[Route, str] = {"chat/completions": "content", "completions": "text"}


class MalformedStream(ValueError):
    """The stream of an engine cannot be read; the text names the rule, not the answer."""


class AnswerAssembler:
    """Takes the events of one stream, and returns the answer that the engine would have given."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._bytes = 0
        self._head: Fields = {}
        self._choices: dict[int, Fields] = {}
        self._pieces: dict[int, Pieces] = {}
        """The text of each choice that has begun."""
        self._last: TextChunk | None = None
        """The last piece of text, whose fields are not in the head yet."""
        self._run: TextChunk | None = None
        """The piece of text whose run goes on: see `TextRuns`."""
        self._response: Raw | None = None
        self.error: Fields | None = None
        """The error that the engine reported within the stream, as it named it."""

    def add(self, event: SseEvent) -> str | None:
        """Return the text of an event that holds a piece of text and nothing else; None of others.

        Raises MalformedStream.
        """
        data = event.data
        if data is None or data == DONE:
            if event.texts:
                self._add_run(event)
            return None
        self._count_bytes(len(data))
        if self._route == "responses":
            self._add_response(event.name, data)
        elif (text := self._add_text(data)) is not None:
            return text
        else:
            self._add_chunk(_decode(data))
        return None

    def remember(self, event: SseEvent, runs: TextRuns) -> None:
        """Remember the last piece of text, which the event held, for runs of its like."""
        if self._last is not None and runs.learn(event.raw):
            self._run = self._last

    def answer(self) -> bytes:
        """Return the JSON of the answer. Raises MalformedStream where there is none."""
        if self._route == "responses":
            if self._response is None:
                raise MalformedStream("stream: ended without the response")
            return bytes(self._response)
        self._note_head()
        if not self._head:
            raise MalformedStream("stream: ended without a chunk")
        choices = [self._choice(index) for index in sorted(self._choices)]
        head = {**self._head, "object": OBJECTS[self._route]}
        usage = {"usage": head.pop("usage")} if "usage" in head else {}
        return msgspec.json.encode({**head, "choices": choices, **usage})

    def _add_response(self, name: bytes, data: bytes) -> None:
        if not name:
            name = str(_decode(data).get("type")).encode()
        if name not in ENDS:
            return
        document = _decode(data, dict[str, Raw])
        self._response = document.get("response", self._response)
        if name == b"error":
            self.error = _error(_decode(data))

    def _add_run(self, event: SseEvent) -> None:
        chunk = self._run
        if chunk is None:
            raise MalformedStream("stream: a run of no piece of text")
        self._count_bytes(len(event.raw))
        try:
            text = b"".join(event.texts).decode()
        except UnicodeDecodeError:
            raise MalformedStream("stream: an event is no JSON object") from None
        self._take_head(chunk)
        self._pieces[chunk.choices[0].index].append(text)

    def _add_text(self, data: bytes) -> str | None:
        """Add a chunk that continues the text of a choice, and return its text; None of others."""
        # Before the first piece the order of the answer's fields is that of the engine's.
        chunk = text_chunk(self._route, data) if self._pieces else None
        if chunk is None:
            return None
        (choice,) = chunk.choices
        pieces = self._pieces.get(choice.index)
        if pieces is None:
            return None
        self._take_head(chunk)
        pieces.append(choice.piece)
        return choice.piece

    def _count_bytes(self, size: int) -> None:
        self._bytes += size
        if self._bytes > MOST_ANSWER_BYTES:
            raise MalformedStream(f"answer: more than {MOST_ANSWER_BYTES} bytes")

    def _take_head(self, chunk: TextChunk) -> None:
        if self._last is None or not chunk.replaces(self._last):
            self._note_head()
        self._last = chunk

    def _note_head(self) -> None:
        """Take the fields of the last piece of text, once for a row of them."""
        last, self._last = self._last, None
        if last is None:
            return
        if last.usage is None:
            self._head.setdefault("usage", None)
        self._head.update(last.head())

    def _add_chunk(self, chunk: Fields) -> None:
        self._note_head()
        if "error" in chunk and "choices" not in chunk:
            self.error = _error(chunk)
            return
        choices = chunk.pop("choices", None) or []
        if not isinstance(choices, list):
            raise MalformedStream("choices: an array is required")
        for key, value in chunk.items():
            if value is not None or key not in self._head:
                self._head[key] = value
        for choice in choices:
            self._add_choice(choice)

    def _add_choice(self, choice: Any) -> None:
        if not isinstance(choice, dict) or type(choice.get("index")) is not int:
            raise MalformedStream("choices: an object with an integer `index` is required")
        texts = {name: choice.pop(name) for name in ("delta", "text") if name in choice}
        merged = self._choices.setdefault(choice["index"], {"texts": {}, "fields": {}})
        merge(merged["texts"], texts, joins_texts=True)
        merge(merged["fields"], choice, joins_texts=False)
        self._note_pieces(choice["index"], merged["texts"])

    def _note_pieces(self, index: int, texts: Fields) -> None:
        holder = texts if self._route == "completions" else texts.get("delta")
        pieces = holder.get(TEXT_FIELDS[self._route]) if isinstance(holder, dict) else None
        if isinstance(pieces, Pieces):
            self._pieces[index] = pieces

    def _choice(self, index: int) -> Fields:
        texts = plain(self._choices[index]["texts"])
        fields = {"logprobs": None, "finish_reason": None, **plain(self._choices[index]["fields"])}
        if self._route == "completions":
            return {"index": index, "text": texts.get("text") or "", **fields}
        message = {"role": "assistant", "content": None, **(texts.get("delta") or {})}
        for call in message.get("tool_calls") or ():
            call.pop("index", None)
        return {"index": index, "message": message, **fields}


def _decode(data: bytes, kind: Any = Fields) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise MalformedStream("stream: an event is no JSON object") from None


def _error(document: Fields) -> Fields:
    error = document.get("error", document)
    return error if isinstance(error, dict) else {"message": str(error)}
