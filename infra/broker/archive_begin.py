"""Makes an empty place in S3 the archive of an installation, before its services start."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from shared.bus.archive.archiving import archived_partitions
from shared.bus.archive.opening import open_store
from shared.bus.archive.s3_address import PREFIX
from shared.bus.archive.store import ObjectStore
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.log import Log
from shared.ledger.partition import TP
from shared.process.connection import Connection

AWAY_S = 30.0
"""How long a broker that does not answer is waited for."""


def begin_archive(connection: Connection, archive: str, partitions: int) -> None:
    """Make the place an archive, unless it is one. A folder is made where it is mounted.

    Raises ArchiveUnreachable.
    """
    if not archive.startswith(PREFIX):
        return
    log = KafkaLog(connection, client="berth-archive", max_away_s=AWAY_S)
    asyncio.run(make_archive(open_store(archive), log, archived_partitions(partitions)))


async def make_archive(store: ObjectStore, log: Log, tps: Iterable[TP]) -> None:
    """Make an archive while each topic has its beginning; later the place must be one already.

    Of a trimmed topic another place has the beginning, and an empty one would pass as its archive.
    """
    await log.start()
    try:
        is_trimmed = any([await log.begin(tp) for tp in tps])
    finally:
        await log.stop()
    await asyncio.to_thread(store.check if is_trimmed else store.create)
