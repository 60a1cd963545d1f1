from __future__ import annotations

import pytest

from shared.bus.archive.store import MARK
from shared.bus.folds.fold import Fold
from shared.bus.logs.log import Entry, Feed
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.bus.logs.tail import LedgerTail
from shared.ledger.errors import ArchiveUnreachable, BadArchive, TailLost
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor
from tests.harness.ledger import SeatDecider, Seats
from tests.lost_tail import cut_tail
from tests.shared.bus.archive.archives import INPUT, LEDGER, Installation


async def read(feed: Feed, tp: TP, end: int) -> list[Entry]:
    """Return the records up to `end`."""
    records: list[Entry] = []
    while not records or records[-1].offset + 1 < end:
        records += (await feed.poll(0.1, 3)).get(tp, [])
    return records


async def folded(site: Installation) -> Seats:
    return (await Fold(SeatDecider(), 0, site.tiered, None).run(Cursor())).state


async def test_a_read_goes_through_the_archive_and_on_in_the_topic(site: Installation) -> None:
    site.write(5)
    await site.archive(segment_bytes=1)
    site.write(5)
    whole = list(site.broker.entries(LEDGER))
    site.broker.trim(LEDGER, 9)
    for start in (0, 3, 9, 12):
        feed = await site.tiered.feed({LEDGER: start})
        assert await read(feed, LEDGER, 20) == whole[start:]
        await feed.close()


async def test_a_service_without_a_snapshot_folds_a_trimmed_ledger(site: Installation) -> None:
    site.write(10)
    whole = await folded(site)
    await site.archive()
    site.broker.trim(LEDGER, 20)
    with pytest.raises(TailLost, match="does not begin at 0"):
        await Fold(SeatDecider(), 0, MemoryLog(site.broker), None).run(Cursor())
    assert await folded(site) == whole
    site.write(3)
    assert len((await folded(site)).taken) == 13


async def test_a_cursor_in_front_of_the_begin_goes_on(site: Installation) -> None:
    site.write(10)
    await site.archive()
    tail = LedgerTail(site.tiered, {LEDGER.topic: [0]})
    await tail.start()
    cursor = (await tail.poll(0.1, 8), tail.cursor(*LEDGER))[1]
    await tail.stop()
    site.broker.trim(LEDGER, 19)
    again = LedgerTail(site.tiered, {LEDGER.topic: [0]}, {LEDGER: cursor})
    await again.start()
    seqs: list[int] = []
    while not again.caught_up:
        seqs += [accepted.record.seq for accepted in await again.poll(0.1)]
    assert seqs == list(range(cursor.seq + 1, 11))


async def test_below_its_end_the_archive_wins_over_fillers(site: Installation) -> None:
    """A restored broker has fillers there; after a crash of it they lie above the begin again."""
    site.write(600)
    whole = await folded(site)
    await site.archive()
    restored = MemoryBroker()
    for _ in range(1_200):
        restored.append(LEDGER, b"")
    site.broker = restored
    assert await folded(site) == whole


async def test_a_log_that_is_older_than_its_archive_has_lost_its_tail(site: Installation) -> None:
    """Records that only the archive has would move a writer's cursor behind the topic's end."""
    site.write(5)
    await site.archive()
    cut_tail(site.broker, LEDGER, 7)
    with pytest.raises(TailLost, match="ends at 7, and its archive at 10"):
        await folded(site)


async def test_a_slow_reader_that_is_trimmed_under_goes_to_the_archive(site: Installation) -> None:
    site.write(10)
    whole = list(site.broker.entries(LEDGER))
    feed = await site.tiered.feed({LEDGER: 0})
    first = (await feed.poll(0.1, 4))[LEDGER]
    await site.archive()
    site.broker.trim(LEDGER, 19)
    assert first + await read(feed, LEDGER, 20) == whole


async def test_records_that_neither_tier_has_are_lost(site: Installation) -> None:
    site.write(5)
    await site.archive()
    site.write(5)
    site.broker.trim(LEDGER, 12)
    with pytest.raises(TailLost, match="neither the archive nor the topic"):
        feed = await site.tiered.feed({LEDGER: 0})
        await read(feed, LEDGER, 20)


async def test_a_flipped_bit_stops_the_reader(site: Installation) -> None:
    site.write(5)
    await site.archive()
    path = site.object(0)
    path.write_bytes(b"x" + path.read_bytes()[1:])
    with pytest.raises(BadArchive):
        await folded(site)


async def test_a_feed_can_be_put_back_and_forth(site: Installation) -> None:
    site.write(5)
    whole = list(site.broker.entries(LEDGER))
    await site.archive()
    site.write(1)
    site.broker.trim(LEDGER, 9)
    feed = await site.tiered.feed({LEDGER: 9})
    for offset in (2, 10, 0, 9):
        await feed.seek(LEDGER, offset)
        assert (await read(feed, LEDGER, offset + 1))[0].offset == offset
    await feed.seek(LEDGER, 0)
    assert (await read(feed, LEDGER, 10))[:10] == whole


async def test_several_partitions_are_read_together(site: Installation) -> None:
    site.write(5)
    await site.archive()
    site.broker.trim(LEDGER, 8)
    feed = await site.tiered.feed({LEDGER: 0, INPUT: 0})
    seen: dict[TP, int] = {}
    while seen != {LEDGER: 10, INPUT: 5}:
        for tp, entries in (await feed.poll(0.1)).items():
            seen[tp] = seen.get(tp, 0) + len(entries)


async def test_without_its_archive_only_what_the_topic_has_is_read(site: Installation) -> None:
    site.write(5)
    await site.archive()
    site.broker.trim(LEDGER, 6)
    (site.folder / MARK).unlink()
    for path in sorted(site.folder.glob("*")):
        path.rename(site.folder.with_name(path.name))
    feed = await site.tiered.feed({LEDGER: 6})
    assert [entry.offset for entry in await read(feed, LEDGER, 10)] == [6, 7, 8, 9]
    for start in (0, 5):
        with pytest.raises(ArchiveUnreachable):
            await site.tiered.feed({LEDGER: start})


async def test_a_topic_that_is_never_archived_is_read_as_it_is(site: Installation) -> None:
    events = TP("events", 0)
    site.broker.append(events, b"a")
    (site.folder / MARK).unlink()
    assert await site.tiered.begin(events) == 0
    feed = await site.tiered.feed({events: 0})
    assert len(await read(feed, events, 1)) == 1
