"""HTTP requests that wait for the events of an LLM request in the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from shared.contracts.llm import (
    LlmRequestFinished,
    LlmRequestRejected,
    LlmRequestStarted,
    TokensCharged,
    TokensMade,
)
from shared.ledger.decider import Fact


@dataclass(slots=True, eq=False)
class RequestProgress:
    """The accepted progress of one request; `lost` if this process no longer holds its lane."""

    lane: int
    waited_ms: int | None = None
    made_tokens: int = 0
    done: bool = False
    rejected: LlmRequestRejected | None = None
    lost: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ended(self) -> bool:
        return self.done or self.lost or self.rejected is not None

    async def until_started(self) -> None:
        while self.waited_ms is None and not self.ended:
            await self._wait_for_change()

    async def until_beyond(self, tokens: int) -> None:
        while self.made_tokens <= tokens and not self.ended:
            await self._wait_for_change()

    async def _wait_for_change(self) -> None:
        self.changed.clear()
        await self.changed.wait()


class RequestFollowers:
    """The progress that HTTP requests wait for, by request id; several may follow one request."""

    def __init__(self) -> None:
        self._by_id: dict[str, list[RequestProgress]] = {}

    @contextmanager
    def follow(self, request_id: str, lane: int) -> Iterator[RequestProgress]:
        progress = RequestProgress(lane)
        self._by_id.setdefault(request_id, []).append(progress)
        try:
            yield progress
        finally:
            others = self._by_id[request_id]
            others.remove(progress)
            if not others:
                del self._by_id[request_id]

    def apply(self, facts: Sequence[Fact]) -> None:
        """Update the progress of the followed requests from accepted events."""
        for fact in facts:
            match fact.event:
                case LlmRequestStarted(request_id=request_id, waited_ms=waited_ms):
                    for progress in self._followers_of(request_id):
                        progress.waited_ms = waited_ms
                case TokensCharged(made=reports):
                    self._add_tokens(reports)
                case LlmRequestFinished(request_id=request_id, output_tokens=output_tokens):
                    for progress in self._followers_of(request_id):
                        progress.made_tokens, progress.done = output_tokens, True
                case LlmRequestRejected(request_id=request_id) as rejected:
                    for progress in self._followers_of(request_id):
                        progress.rejected = rejected

    def lose_lane(self, lane: int) -> None:
        """Mark the requests of a lane that this process gave up as lost."""
        for followers in self._by_id.values():
            for progress in followers:
                if progress.lane == lane:
                    progress.lost = True
                    progress.changed.set()

    def _add_tokens(self, reports: Sequence[TokensMade]) -> None:
        for report in reports:
            for progress in self._followers_of(report.request_id):
                progress.made_tokens += report.tokens

    def _followers_of(self, request_id: str) -> Iterator[RequestProgress]:
        for progress in self._by_id.get(request_id, ()):
            progress.changed.set()
            yield progress
