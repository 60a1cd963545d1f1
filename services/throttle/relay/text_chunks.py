"""Chunks that hold one piece of text and nothing else: nearly all of a stream, read fast."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, UnsetType

from services.throttle.relay.request import Route


class TextDelta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    content: str


class ChatChoice(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    index: int
    delta: TextDelta
    logprobs: None = None
    finish_reason: None = None

    @property
    def piece(self) -> str:
        return self.delta.content


class CompletionChoice(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    index: int
    text: str
    logprobs: None = None
    finish_reason: None = None

    @property
    def piece(self) -> str:
        return self.text


class _Head(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    id: str
    object: str
    created: int
    model: str
    system_fingerprint: str | UnsetType = UNSET
    usage: None | UnsetType = UNSET

    def replaces(self, other: _Head) -> bool:
        """Return whether this chunk has all fields that the other has."""
        return (
            self.system_fingerprint is not UNSET or other.system_fingerprint is UNSET
        ) and self.usage is other.usage

    def head(self) -> dict[str, str | int | None]:
        """Return the fields beside the choices that the chunk has."""
        fields: dict[str, str | int | None] = {
            "id": self.id,
            "object": self.object,
            "created": self.created,
            "model": self.model,
        }
        if self.system_fingerprint is not UNSET:
            fields["system_fingerprint"] = self.system_fingerprint
        return fields


class ChatTextChunk(_Head, kw_only=True):
    choices: tuple[ChatChoice]


class CompletionTextChunk(_Head, kw_only=True):
    choices: tuple[CompletionChoice]


TextChunk = ChatTextChunk | CompletionTextChunk

_DECODERS: Mapping[
    Route, msgspec.json.Decoder[ChatTextChunk] | msgspec.json.Decoder[CompletionTextChunk]
] = {
    "chat/completions": msgspec.json.Decoder(ChatTextChunk),
    "completions": msgspec.json.Decoder(CompletionTextChunk),
}


def text_chunk(route: Route, data: bytes) -> TextChunk | None:
    """Return the chunk; None if it has anything besides one piece of text, or is malformed."""
    try:
        return _DECODERS[route].decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
