"""The size of a prompt, for an estimate of its tokens before any engine counts them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import msgspec
from msgspec import Raw

from services.throttle.relay.large_json import (
    LARGE_BYTES,
    BadJson,
    LargeJson,
    count,
    find,
    value_bytes,
)
from shared.contracts.endpoints import MOST_TOKENS

MEDIA_TOKENS = 1024
"""Tokens that an image, a sound or a video is taken for."""
MOST_MEDIA_TOKENS = 32_768
"""Tokens that one of them may have: more in an engine's usage is not believed."""
TEMPLATE_TOKENS = 1024
"""Tokens that an engine's template may add to a prompt of any size."""
MEDIA = (b"image", b"audio", b"video", b"file")
SYSTEM_ROLES = (b'"system"', b'"developer"')
PROMPTS = ("messages", "prompt", "input", "suffix")
ADDED = ("tools", "functions", "instructions", "documents", "chat_template", "chat_template_kwargs")
STORED = ("previous_response_id", "conversation")
"""Fields that name a prompt which the engine keeps: no part of its size is in the request."""
KNOWN = frozenset(("model", *PROMPTS, *ADDED))
DATA = b'"data'
"""Begins an address such as `"data:image/png;base64,"`, and the field with a sound."""
ADDRESS_FIELDS = (b'"url":', b'"image_url":', b'"file_data":')
"""The text of a message is in none of these, so that no text passes as an image."""
AUDIO_FIELD = b'"input_audio":'
MOST_DATA = 5_000
"""Beginnings of data beyond which a large value counts by its bytes, and is not searched."""


class PromptSize(msgspec.Struct, frozen=True):
    """The text is in bytes of its JSON: its marks stand for those of a template."""

    text_bytes: int
    token_ids: int = 0
    media: int = 0
    system_bytes: int = 0
    """Bytes of the text that the application adds: system messages, instructions and tools."""
    other_bytes: int = 0
    """Bytes of the fields that are no prompt to this proxy; an engine may read them as one."""
    is_stored: bool = False
    """Whether the engine keeps a part of the prompt."""

    @property
    def fixed_tokens(self) -> int:
        """Tokens that do not depend on the tokenizer."""
        return self.token_ids + self.media * MEDIA_TOKENS

    @property
    def most_tokens(self) -> int:
        """Tokens above which the prompt of an engine's usage is not believed: one per byte."""
        if self.is_stored:
            return MOST_TOKENS
        text_bytes = self.text_bytes + self.other_bytes
        return text_bytes + self.token_ids + self.media * MOST_MEDIA_TOKENS + TEMPLATE_TOKENS


class _Message(msgspec.Struct):
    role: Raw = Raw(b"")
    content: Raw = Raw(b"")


class _Part(msgspec.Struct):
    type: str = ""


_MESSAGES = msgspec.json.Decoder(list[_Message])
_RAWS = msgspec.json.Decoder(list[Raw])
_PART = msgspec.json.Decoder(_Part)


def prompt_size(fields: Mapping[str, Raw]) -> PromptSize:
    """Return the size of the prompt of a request of any route."""
    added = sum(text_bytes(value_bytes(fields[name])) for name in ADDED if name in fields)
    sizes = [_value_size(name, value_bytes(fields[name])) for name in PROMPTS if name in fields]
    return PromptSize(
        text_bytes=added + sum(size.text_bytes for size in sizes),
        token_ids=sum(size.token_ids for size in sizes),
        media=sum(size.media for size in sizes),
        system_bytes=added + sum(size.system_bytes for size in sizes),
        other_bytes=sum(
            memoryview(value).nbytes for name, value in fields.items() if name not in KNOWN
        ),
        is_stored=any(name in fields for name in STORED),
    )


def text_bytes(data: bytes) -> int:
    """Return the bytes of a JSON value; an escaped character counts as three.

    An escape behind a backslash may be text: it is not shortened. Large values count as they are.
    """
    if len(data) > LARGE_BYTES or b"\\" not in data:
        return len(data)
    return len(data) - 3 * (data.count(b"\\u") - data.count(b"\\\\u"))


def count_token_ids(data: bytes) -> int:
    """Return the tokens of a prompt of token ids, or of a list of such; 0 if there is text."""
    return count(data, b",") + 1 if _holds_token_ids(data) else 0


def count_prompts(data: bytes, most: int) -> int:
    """Return how many prompts the `prompt` of a text completion holds; of a large one up to `most`.

    More are returned as `most + 1`.
    """
    if not data.startswith(b"["):
        return 1
    if _holds_token_ids(data):
        return max(1, count(data, b"[") - 1)
    if len(data) > LARGE_BYTES:
        return _count_elements(data, most)
    try:
        return max(1, len(_RAWS.decode(data)))
    except msgspec.DecodeError:
        return 1


def _count_elements(data: bytes, most: int) -> int:
    try:
        elements = LargeJson(data).elements()
        return max(1, sum(1 for _ in islice(elements, most + 1)))
    except BadJson:
        return 1


def _holds_token_ids(data: bytes) -> bool:
    start = data[:64].lstrip(b"[ \r\n\t")
    return data.startswith(b"[") and start[:1].isdigit() and find(data, b'"') < 0


def _value_size(name: str, data: bytes) -> PromptSize:
    if name != "messages" and _holds_token_ids(data):
        return PromptSize(0, count_token_ids(data))
    if not data.startswith(b"["):
        return PromptSize(text_bytes(data))
    return _large_size(data) if len(data) > LARGE_BYTES else _messages_size(data)


def _messages_size(data: bytes) -> PromptSize:
    """Return the size of messages, or of the input of `/v1/responses`."""
    text = text_bytes(data)
    if not any(word in data for word in (*SYSTEM_ROLES, *MEDIA)):
        return PromptSize(text)
    try:
        messages = _MESSAGES.decode(data)
        media = [len(part) for message in messages for part in _media(bytes(message.content))]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # The engine refuses it; until then every byte counts.
        return PromptSize(text)
    system = [message.content for message in messages if bytes(message.role) in SYSTEM_ROLES]
    return PromptSize(
        text_bytes=text - sum(media),
        media=len(media),
        system_bytes=sum(text_bytes(bytes(content)) for content in system),
    )


def _large_size(data: bytes) -> PromptSize:
    """Return the size without decoding: media are the data in fields that hold no text.

    Data are passed over to their end, which a search for one byte finds ten times sooner than one
    for their beginning.
    """
    media = inline_bytes = beginnings = 0
    start = find(data, DATA)
    while start >= 0:
        beginnings += 1
        if beginnings > MOST_DATA:
            return PromptSize(len(data))
        end = start + len(DATA)
        if data[max(0, start - 64) : start].rstrip().endswith(ADDRESS_FIELDS):
            end = find(data, b'"', end)
            media += 1
            inline_bytes += end - start
        elif data.startswith(b'"', end) and AUDIO_FIELD in data[max(0, start - 64) : start]:
            value = find(data, b'"', end + 1)
            end = find(data, b'"', value + 1)
            media += 1
            inline_bytes += end - value
        start = find(data, DATA, end)
    return PromptSize(len(data) - inline_bytes, media=media)


def _media(content: bytes) -> list[bytes]:
    """Return the parts of a content that are no text."""
    if not content.startswith(b"["):
        return []
    return [bytes(part) for part in _RAWS.decode(content) if _is_media(part)]


def _is_media(part: Raw) -> bool:
    kind = _PART.decode(part).type.encode()
    return any(word in kind for word in MEDIA)
