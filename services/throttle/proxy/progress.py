"""The progress of an answer: it is reported for its charge, and ended if it never ends."""

from __future__ import annotations

import asyncio

from services.throttle.relay.client_stream import BrokenStream
from services.throttle.relay.usage import TokenCount
from services.throttle.tickets import Ticket

SPARE_RATIO, SPARE_CHUNKS = 2, 64
"""A stream of more chunks than its limit by this ratio and number is taken for endless."""
BARREN_S = 600.0
"""Time after which a stream that sends anything but text is taken for endless."""


class AnswerProgress:
    """The progress of one answer; `limit` are the most output tokens of its request."""

    def __init__(self, ticket: Ticket, limit: int) -> None:
        self._ticket = ticket
        self._most_chunks = SPARE_CHUNKS + SPARE_RATIO * limit
        self._made, self._made_at = 0, 0.0
        self._clock = asyncio.get_running_loop().time

    def report(self, count: TokenCount) -> None:
        """Note what was made. Raises BrokenStream for an answer that never ends."""
        self._ticket.made_tokens = tokens = count.made_tokens
        if count.chunks > self._most_chunks:
            raise BrokenStream(f"stream: more than {self._most_chunks} chunks with text")
        now = self._clock()
        if tokens and not self._ticket.first_at:
            self._ticket.first_at = now
        if tokens > self._made or not self._made_at:
            self._made, self._made_at = tokens, now
        elif now - self._made_at > BARREN_S:
            raise BrokenStream(f"stream: no text for {BARREN_S:g} s")
