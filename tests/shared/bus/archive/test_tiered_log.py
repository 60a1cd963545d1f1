from __future__ import annotations

from shared.bus.logs.memory import MemoryLog
from tests.shared.bus.archive.archives import INPUT, LEDGER, Installation


async def test_a_log_begins_where_its_archive_does(site: Installation) -> None:
    site.write(3)
    await site.archive()
    site.broker.trim(LEDGER, 4)
    site.broker.trim(INPUT, 2)
    assert await MemoryLog(site.broker).begin(LEDGER) == 4
    assert await site.tiered.begin(LEDGER) == 0
    assert await site.tiered.begin(INPUT) == 2


async def test_appends_go_to_the_topic(site: Installation) -> None:
    site.write(3)
    log = site.tiered
    await log.start()
    assert await log.append(INPUT, b"new") == 3
    assert await log.end(INPUT) == 4
    await log.stop()
