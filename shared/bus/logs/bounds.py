"""Checks that a log still reaches as far as it was read."""

from __future__ import annotations

from shared.bus.logs.log import Log
from shared.ledger.errors import TailLost
from shared.ledger.partition import TP

POLL_S = 0.5


async def check_reaches(client: Log, tp: TP, offset: int) -> None:
    """Raise TailLost where the log ends before `offset`.

    The embedded broker may report an end before the true one; only a read shows it.
    """
    feed = await client.feed({tp: offset})
    try:
        await feed.poll(POLL_S)
    except TailLost as error:
        raise TailLost(f"{tp.key} is shorter than the {offset} used of it: tail lost") from error
    finally:
        await feed.close()
