"""A position in all partitions of a topic: the id of a server-sent event."""

from __future__ import annotations

from collections.abc import Sequence

MAX_CHARS = 1024 * 20
MAX_OFFSET = 2**63


def encode_vector(offsets: Sequence[int]) -> str:
    return ".".join(map(str, offsets))


def decode_vector(text: str, partitions: int) -> list[int] | None:
    """Return the next offset of each partition; None if the text is no such position."""
    parts = text.split(".") if len(text) <= MAX_CHARS else []
    if len(parts) != partitions:
        return None
    if not all(part.isascii() and part.isdigit() and len(part) <= 19 for part in parts):
        return None
    offsets = [int(part) for part in parts]
    return offsets if max(offsets) < MAX_OFFSET else None
