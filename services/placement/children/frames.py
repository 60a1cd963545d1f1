"""Frames of the pipes to a process of placement: a length of four bytes, then the message."""

from __future__ import annotations

HEAD_BYTES = 4


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(HEAD_BYTES, "big") + body


def length(head: bytes) -> int:
    return int.from_bytes(head, "big")
