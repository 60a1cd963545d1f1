"""Hashes of the blocks at the beginning of a prompt: equal beginnings have equal hashes."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from msgspec import Raw

BLOCK_BYTES = 1024
MOST_BLOCKS = 64
HASH_BYTES = 9
ORDER = ("tools", "functions", "instructions", "messages", "prompt", "input")
"""The fields in the order in which engines join them into a prompt."""


def prefix_hashes(
    fields: Mapping[str, Raw],
    key: bytes,
    block_bytes: int = BLOCK_BYTES,
    most_blocks: int = MOST_BLOCKS,
) -> tuple[str, ...]:
    """Return a hash per whole block, of all bytes up to its end.

    The key is a secret: without it a hash does not confirm a guess of a prompt.
    """
    text = prefix_bytes(fields, block_bytes * most_blocks)
    state = blake2b(key=key, digest_size=HASH_BYTES)
    hashes: list[str] = []
    for start in range(0, len(text) - block_bytes + 1, block_bytes):
        state.update(text[start : start + block_bytes])
        hashes.append(state.copy().hexdigest())
    return tuple(hashes)


def prefix_bytes(fields: Mapping[str, Raw], most_bytes: int) -> bytes:
    """Return the first bytes of the prompt, copying no more than those."""
    parts: list[bytes] = []
    room = most_bytes
    for name in ORDER:
        if name in fields and room > 0:
            parts.append(bytes(memoryview(fields[name])[:room]))
            room -= len(parts[-1])
    return b"".join(parts)
