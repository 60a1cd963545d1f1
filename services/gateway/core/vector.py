"""A place in all partitions of a topic at once: the id of a server-sent event."""

from __future__ import annotations

from collections.abc import Sequence

LONGEST = 1024 * 20
LARGEST = 2**63


def encode_vector(offsets: Sequence[int]) -> str:
    return ".".join(map(str, offsets))


def decode_vector(text: str, partitions: int) -> list[int] | None:
    """Next offset per partition; None for whatever is no place in such a topic."""
    parts = text.split(".") if len(text) <= LONGEST else []
    if len(parts) != partitions:
        return None
    if not all(part.isascii() and part.isdigit() and len(part) <= 19 for part in parts):
        return None
    offsets = [int(part) for part in parts]
    return offsets if max(offsets) < LARGEST else None
