"""A look at the ledgers of a pool, for decisions that need read models with all their records."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from aiokafka.errors import KafkaError

from services.gateway.reads.database import Row
from services.gateway.responses.problem import ApiError, unavailable
from shared.bus.logs.log import Log
from shared.bus.logs.tail import LedgerTail
from shared.ledger.errors import ArchiveUnreachable, TailLost
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor

LEDGERS = ("admission", "placement")
"""Of which the jobs and nodes of a pool are."""
READ_S = 5.0
BEHIND = "reads_behind"

CURSORS = "SELECT ledger, state FROM cursor WHERE partition = $1 AND ledger = ANY($2::text[])"
"""Positions of the read models; operators see them."""


async def check_complete(log: Log, lane: int, cursors: Iterable[Row]) -> None:
    """Raise ApiError 503 while a record of the lane is not in the read models."""
    known = {TP(str(row["ledger"]), lane): Cursor.from_json(str(row["state"])) for row in cursors}
    tail = LedgerTail(log, {ledger: (lane,) for ledger in LEDGERS}, known)
    try:
        async with asyncio.timeout(READ_S):
            await tail.start()
            while not tail.caught_up:
                for accepted in await tail.poll():
                    raise _behind(accepted.ledger)
    except TailLost:
        raise _behind("broker") from None
    except (KafkaError, OSError, TimeoutError, ArchiveUnreachable) as error:
        raise unavailable("broker_unavailable", type(error).__name__) from None
    finally:
        await tail.stop()


def _behind(ledger: str) -> ApiError:
    return unavailable(BEHIND, f"read models lack records of {ledger}; repeat")
