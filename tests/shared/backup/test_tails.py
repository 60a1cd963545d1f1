"""A backup of tails and the archive before them are the whole log, or are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.backup.files import BackupManifest, BackupPart, BadBackup, entries
from shared.backup.load import load
from shared.backup.save import save
from shared.backup.tails import archived_records
from shared.bus.archive.archive import Archive
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.ledger.errors import BadArchive
from tests.shared.backup.logs import MemoryRestorer
from tests.shared.bus.archive.archives import INPUT, LEDGER, Installation

TOPICS = {LEDGER.topic: 1, INPUT.topic: 1}
TPS = (INPUT, LEDGER)


@pytest.fixture
def site(tmp_path: Path) -> Installation:
    return Installation(tmp_path / "archive")


async def archive_all(site: Installation) -> None:
    for tp in TPS:
        await site.archive(tp)


async def back_up(site: Installation, folder: Path) -> BackupManifest:
    archive = Archive(site.store)
    chains = {tp: archive.refresh(tp) for tp in TPS}
    return await save(site.tiered, TOPICS, 1, folder, chains)


async def restore(folder: Path, archive: Archive | None) -> MemoryBroker:
    broker = MemoryBroker()
    await load(folder, MemoryLog(broker), MemoryRestorer(broker), archive)
    return broker


@pytest.fixture
async def trimmed(site: Installation) -> Installation:
    """A ledger of which the topic has the end, of 3 records that count and 3 that do not."""
    site.write(20)
    await archive_all(site)
    site.write(3)
    for tp in TPS:
        site.broker.trim(tp, Archive(site.store).refresh(tp).cursor.offset)
    return site


async def test_a_tail_and_its_archive_are_the_whole_log(
    trimmed: Installation, tmp_path: Path
) -> None:
    whole = await save(trimmed.tiered, TOPICS, 1, tmp_path / "whole")
    manifest = await back_up(trimmed, tmp_path / "tail")
    assert (whole.records, manifest.records, manifest.archived) == (69, 9, 60)
    restored = await restore(tmp_path / "tail", Archive(trimmed.store))
    expected = await restore(tmp_path / "whole", None)
    for tp in TPS:
        assert restored.entries(tp) == expected.entries(tp)


async def test_a_file_of_a_tail_begins_behind_the_archive(
    trimmed: Installation, tmp_path: Path
) -> None:
    manifest = await back_up(trimmed, tmp_path / "b")
    part = next(part for part in manifest.parts if part.tp == LEDGER)
    assert [entry.offset for entry in entries(tmp_path / "b", part)] == list(range(40, 46))
    before = [entry.offset for entry in archived_records(Archive(trimmed.store), part)]
    assert before == list(range(40))


async def test_an_archive_that_was_extended_since_has_what_is_before_the_tail(
    trimmed: Installation, tmp_path: Path
) -> None:
    await back_up(trimmed, tmp_path / "b")
    trimmed.write(5)
    await archive_all(trimmed)
    restored = await restore(tmp_path / "b", Archive(trimmed.store))
    assert len(restored.entries(LEDGER)) == 46


async def test_a_tail_has_the_inputs_that_its_ledger_refers_to(
    site: Installation, tmp_path: Path
) -> None:
    """The reader of a tail goes on at the end of the archive, with the inputs used until then."""
    site.write(4)
    await archive_all(site)
    site.writer.inputs = {INPUT.key: 4}
    site.write(1)
    site.writer.inputs = {INPUT.key: 5}
    site.write(1)
    manifest = await back_up(site, tmp_path / "b")
    assert {part.topic: part.next for part in manifest.parts} == {"admission": 12, "commands": 6}


async def test_without_its_archive_a_tail_is_refused(trimmed: Installation, tmp_path: Path) -> None:
    await back_up(trimmed, tmp_path / "b")
    with pytest.raises(BadBackup, match="is a tail; name the archive"):
        await restore(tmp_path / "b", None)


async def test_another_archive_or_an_older_copy_is_refused(
    trimmed: Installation, tmp_path: Path
) -> None:
    other = Installation(tmp_path / "other")
    await back_up(trimmed, tmp_path / "b")
    with pytest.raises(BadBackup, match="the archive has 0 entries"):
        await restore(tmp_path / "b", Archive(other.store))
    other.write(21)
    await archive_all(other)
    with pytest.raises(BadBackup, match="is not the one that the backup names"):
        await restore(tmp_path / "b", Archive(other.store))


async def test_a_damaged_archive_is_refused(trimmed: Installation, tmp_path: Path) -> None:
    await back_up(trimmed, tmp_path / "b")
    trimmed.object(0).write_bytes(b"damaged")
    with pytest.raises(BadArchive, match="another sha256"):
        await restore(tmp_path / "b", Archive(trimmed.store))
    trimmed.entry(0).unlink()
    with pytest.raises(BadBackup, match="the archive has 0 entries"):
        await restore(tmp_path / "b", Archive(trimmed.store))


async def test_a_log_that_is_shorter_than_its_archive_is_not_saved(
    trimmed: Installation, tmp_path: Path
) -> None:
    archive = Archive(trimmed.store)
    chains = {tp: archive.refresh(tp) for tp in TPS}
    with pytest.raises(BadBackup, match="commands-0: ends at 0, and its archive at 20"):
        await save(MemoryLog(MemoryBroker()), {"commands": 1}, 1, tmp_path / "b", chains)


def test_a_whole_file_has_nothing_before_it(site: Installation) -> None:
    part = BackupPart(topic="commands", partition=0, first=0, next=1, file="f", sha256="")
    with pytest.raises(BadBackup, match="is no tail"):
        list(archived_records(Archive(site.store), part))
