"""Checks that one more request fits what an endpoint may run at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class InBatch(Protocol):
    """The tokens that a request of a batch holds, and may still add."""

    @property
    def held_tokens(self) -> float: ...

    @property
    def remaining_tokens(self) -> float: ...


def fits(running: Iterable[InBatch], candidate: InBatch, batch_tokens: int) -> bool:
    """Return whether the batch with one more stays in bounds, however long the answers get.

    All decode in step, so the batch is largest just before one of them ends: with those sorted by
    remaining tokens, longest first, the peak before the i-th ends is what the first i hold then
    (the rule of S-LoRA's router).
    """
    batch = sorted((*running, candidate), key=lambda request: -request.remaining_tokens)
    held_tokens = 0.0
    for count, request in enumerate(batch, start=1):
        held_tokens += request.held_tokens
        if held_tokens + count * request.remaining_tokens > batch_tokens:
            return False
    return True
