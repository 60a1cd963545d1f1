"""Reads a pool's past, and the orders of its shadows, from a log: the topics and their archive."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from shared.bus.logs.log import Log
from shared.bus.logs.tail import LedgerTail
from shared.contracts.base import Event
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import ShadowRanked
from shared.contracts.schedules import ShadowProposed
from shared.ledger.reader import Accepted
from simulator.recorded.catalog import IN_ROUNDS
from simulator.recorded.pool import LEDGER, RecordedPool

QUIET_S = 0.3
POLLS_BEYOND = 3
ACCESS = "access"
RANKINGS = "priority"


class UnknownPool(ValueError):
    """Raised if the ledger of access knows no pool of that name."""


@dataclass(slots=True)
class ShadowRecord:
    """The orders of a shadow policy within the time, or the proposals of a scheduler, which had no
    effect.
    """

    policy: str
    orders: int = 0
    agreement_sum: float = 0.0
    refused: int = 0
    """Proposals that broke a rule, or did not come."""

    @property
    def agreement(self) -> float:
        """Mean of Kendall's tau with the order that had effect, or of the share of GPUs that both
        give.
        """
        return self.agreement_sum / self.orders if self.orders else 0.0


async def read_pool(log: Log, past: RecordedPool) -> RecordedPool:
    """Read the pool's lane until nothing that comes changes its past. Raises UnknownPool."""
    lane = await lane_of(log, past.name)
    async with aclosing(records(log, LEDGER, lane)) as accepted:
        async for record in accepted:
            past.take(record)
            if past.is_complete:
                break
    return past


async def read_shadows(log: Log, pool: str, from_ms: int, to_ms: int) -> list[ShadowRecord]:
    """Read orders and proposals of the pool's shadows in [from_ms, to_ms). Raises UnknownPool."""
    lane = await lane_of(log, pool)
    shadows: dict[str, ShadowRecord] = {}
    for ledger, kind in ((RANKINGS, ShadowRanked), (LEDGER, ShadowProposed)):
        consumed = frozenset({kind.TYPE})
        async with aclosing(records(log, ledger, lane)) as accepted:
            async for record in accepted:
                if record.record.at >= to_ms:
                    break
                if record.record.at < from_ms:
                    continue
                for fact in record.facts(consumed=consumed):
                    add_shadow(shadows, fact.event, pool)
    return list(shadows.values())


def add_shadow(shadows: dict[str, ShadowRecord], event: Event, pool: str) -> None:
    """Count an order or a proposal of a shadow of the pool."""
    if isinstance(event, ShadowRanked) and event.pool == pool:
        own = shadows.setdefault(event.policy, ShadowRecord(event.policy))
        own.orders += 1
        own.agreement_sum += event.agreement
    elif isinstance(event, ShadowProposed) and event.pool == pool:
        name = IN_ROUNDS + event.scheduler
        own = shadows.setdefault(name, ShadowRecord(name))
        if event.refused or event.failed:
            own.refused += 1
        else:
            own.orders += 1
            own.agreement_sum += event.compared.agreement


async def lane_of(log: Log, pool: str) -> int:
    """Return the lane of a pool, which its name keeps for ever. Raises UnknownPool."""
    consumed = frozenset({PoolConfigured.TYPE})
    async with aclosing(records(log, ACCESS, 0)) as accepted:
        async for record in accepted:
            for fact in record.facts(consumed=consumed):
                if isinstance(fact.event, PoolConfigured) and fact.event.pool == pool:
                    return fact.event.partition
    raise UnknownPool(f"pool: {pool!r}, must be one that the ledger knows")


async def records(log: Log, ledger: str, partition: int) -> AsyncGenerator[Accepted, None]:
    """Yield what one partition of a ledger holds now, from its beginning.

    The end that a broker names may be a little too early, so a few more polls follow it, but no
    more: a busy lane never falls silent.
    """
    tail = LedgerTail(log, {ledger: (partition,)})
    await tail.start()
    beyond = 0
    try:
        while beyond < POLLS_BEYOND:
            batch = await tail.poll(QUIET_S)
            for accepted in batch:
                yield accepted
            beyond += tail.caught_up
            if not batch and tail.caught_up:
                return
    finally:
        await tail.stop()
