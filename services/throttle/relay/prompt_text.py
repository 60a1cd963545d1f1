"""The text of a prompt, for a tokenizer that counts it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw

FIELDS = ("instructions", "messages", "prompt", "input", "suffix")


def prompt_text(fields: Mapping[str, Raw]) -> str:
    """Return what the engine tokenizes, a line per text; a line with its role before a message.

    Roles and ends of lines stand for the marks of the engine's template. Tools are their JSON.
    """
    lines: list[str] = []
    for name in ("tools", "functions"):
        if name in fields:
            lines.append(bytes(fields[name]).decode(errors="replace"))
    for name in FIELDS:
        if name in fields:
            lines += _texts(_decode(fields[name]))
    return "\n".join(lines)


def _decode(raw: Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # The engine refuses it; until then all of it counts.
        return bytes(raw).decode(errors="replace")


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _texts(item)
        case {"role": str(role), **rest}:
            yield role
            yield from _texts(rest.get("content"))
            if "tool_calls" in rest:
                yield msgspec.json.encode(rest["tool_calls"]).decode()
        case {"text": str(text)}:
            yield text
        case {"output": str(text)}:
            yield text
