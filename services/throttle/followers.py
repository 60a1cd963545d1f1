"""HTTP requests that wait for what the ledger says of them."""

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
class Progress:
    """Of one request, as accepted; `lost` says that this process will hear no more of it."""

    lane: int
    waited_ms: int | None = None
    made: int = 0
    done: bool = False
    rejected: LlmRequestRejected | None = None
    lost: bool = False
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ended(self) -> bool:
        return self.done or self.lost or self.rejected is not None

    async def until_started(self) -> None:
        while self.waited_ms is None and not self.ended:
            await self._move()

    async def beyond(self, made: int) -> None:
        while self.made <= made and not self.ended:
            await self._move()

    async def _move(self) -> None:
        self.moved.clear()
        await self.moved.wait()


class Followers:
    """By request id; several HTTP requests may follow one."""

    def __init__(self) -> None:
        self._by_id: dict[str, list[Progress]] = {}

    @contextmanager
    def follow(self, request_id: str, lane: int) -> Iterator[Progress]:
        progress = Progress(lane)
        self._by_id.setdefault(request_id, []).append(progress)
        try:
            yield progress
        finally:
            others = self._by_id[request_id]
            others.remove(progress)
            if not others:
                del self._by_id[request_id]

    def accepted(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            match fact.event:
                case LlmRequestStarted(request_id=request_id, waited_ms=waited_ms):
                    for each in self._of(request_id):
                        each.waited_ms = waited_ms
                case TokensCharged(made=made):
                    self._made(made)
                case LlmRequestFinished(request_id=request_id, output_tokens=output_tokens):
                    for each in self._of(request_id):
                        each.made, each.done = output_tokens, True
                case LlmRequestRejected(request_id=request_id) as rejected:
                    for each in self._of(request_id):
                        each.rejected = rejected

    def lane_lost(self, lane: int) -> None:
        for followers in self._by_id.values():
            for each in followers:
                if each.lane == lane:
                    each.lost = True
                    each.moved.set()

    def _made(self, made: Sequence[TokensMade]) -> None:
        for report in made:
            for each in self._of(report.request_id):
                each.made += report.tokens

    def _of(self, request_id: str) -> Iterator[Progress]:
        for each in self._by_id.get(request_id, ()):
            each.moved.set()
            yield each
