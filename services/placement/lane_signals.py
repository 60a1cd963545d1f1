"""Signals of lanes whose ledger got an event of some types, each for one task of the lane."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from shared.contracts.base import Event
from shared.ledger.decider import Fact


class LaneSignals:
    """An event of asyncio per lane, set by facts of these types; the task of the lane clears it."""

    def __init__(self, *kinds: type[Event]) -> None:
        self._kinds = kinds
        self._news: dict[int, asyncio.Event] = {}

    def accepted(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            if isinstance(fact.event, self._kinds):
                self.of(fact.partition).set()

    def of(self, lane: int) -> asyncio.Event:
        return self._news.setdefault(lane, asyncio.Event())
