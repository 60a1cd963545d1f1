from __future__ import annotations

import math
import os
import shutil

import pytest

from shared.bus.archive.archive import Archive
from shared.bus.archive.archiver import ArchiverOptions
from shared.bus.archive.archiving import Archiving, ArchivingPace, archived_partitions
from shared.bus.archive.store import MARK
from shared.bus.logs.memory import MemoryLog
from shared.ledger.partition import TP
from tests.shared.bus.archive.archives import INPUT, LEDGER, Installation

AT_ONCE = ArchivingPace(0.01, 0.0)


def archiving(site: Installation, pace: ArchivingPace = AT_ONCE) -> Archiving:
    options = ArchiverOptions("a")
    return Archiving(lambda: MemoryLog(site.broker), site.store, 1, options, pace)


async def test_what_was_there_at_the_last_look_is_archived(site: Installation) -> None:
    site.write(3)
    task, bus = archiving(site), MemoryLog(site.broker)
    await task.look(bus)
    site.write(1)
    assert Archive(site.store).refresh(LEDGER).next == 0
    await task.look(bus)
    assert Archive(site.store).refresh(LEDGER).next == 6
    assert Archive(site.store).refresh(INPUT).next == 3


async def test_an_entry_is_made_once_it_is_due(site: Installation) -> None:
    site.write(1)
    await site.archive()
    site.write(1)
    task, bus = archiving(site, ArchivingPace(0.01, 1e12)), MemoryLog(site.broker)
    for _ in range(3):
        await task.look(bus)
    assert len(Archive(site.store).refresh(LEDGER)) == 1


async def test_an_entry_that_a_clock_ahead_has_made_delays_the_next_one_by_no_more_than_the_pace(
    site: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the archiver's host was a year ahead, and was set back."""
    pace_s, year_s = 6 * 3600, 365 * 86_400
    task, bus = archiving(site, ArchivingPace(0.01, pace_s)), MemoryLog(site.broker)
    monkeypatch.setattr("shared.bus.archive.archiving.now_ms", lambda: year_s * 1000)
    for _ in range(2):
        site.write(1)
        await task.look(bus)
    monkeypatch.setattr("shared.bus.archive.archiving.now_ms", lambda: pace_s * 1000)
    await task.look(bus)
    assert len(Archive(site.store).refresh(LEDGER)) == 2


async def test_the_error_of_one_partition_leaves_the_others(
    site: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    site.write(3)
    site.broker.trim(LEDGER, 2)
    task, bus = archiving(site), MemoryLog(site.broker)
    for _ in range(4):
        await task.look(bus)
    assert Archive(site.store).refresh(INPUT).next == 3
    lines = [line for line in caplog.messages if "admission-0 is not archived" in line]
    assert len(lines) == 1
    assert "docs/operations" in lines[0]


async def test_an_archive_that_is_gone_shows_in_the_time_behind(site: Installation) -> None:
    task, bus = archiving(site), MemoryLog(site.broker)
    await task.look(bus)
    before = task.behind_s()
    (site.folder / MARK).unlink()
    await task.look(bus)
    await task.look(bus)
    assert task.behind_s() > before


async def test_an_archive_that_cannot_be_written_is_unreachable_although_nothing_is_due(
    site: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    task, bus = archiving(site, ArchivingPace(0.01, 1e12)), MemoryLog(site.broker)
    await task.look(bus)
    assert task.unreachable_s() == 0
    (site.folder / MARK).rename(site.folder.parent / MARK)
    for _ in range(2):
        await task.look(bus)
        assert task.unreachable_s() > 0
    (site.folder.parent / MARK).rename(site.folder / MARK)
    await task.look(bus)
    assert task.unreachable_s() == 0
    assert len([line for line in caplog.messages if "cannot be written" in line]) == 1
    assert not [name for name in os.listdir(site.folder) if name.endswith(".half")]


async def test_the_free_share_of_the_archives_disk_is_that_of_the_last_look(
    site: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, bus = archiving(site), MemoryLog(site.broker)
    assert math.isnan(task.free_ratio())
    usage = shutil.disk_usage(site.folder)._replace(total=100, free=12)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    await task.look(bus)
    assert task.free_ratio() == 0.12
    (site.folder / MARK).unlink()
    await task.look(bus)
    assert task.free_ratio() == 0.12, "an archive that is away has the share of before"


def test_ledgers_and_their_lasting_inputs_are_archived() -> None:
    tps = archived_partitions(2)
    assert {TP("access", 0), TP("placement", 1), TP("commands", 1), TP("reports", 0)} <= set(tps)
    assert TP("access", 1) not in tps
    assert not {tp.topic for tp in tps} & {"llm.requests", "events", "dead", "heartbeats"}
