from __future__ import annotations

from pathlib import Path

import pytest

from shared.bus.archive.archive import Archive
from shared.bus.archive.folder_store import FolderStore
from shared.ledger.errors import BadArchive
from tests.shared.bus.archive.archives import INPUT, LEDGER, NOW_MS, Installation


async def test_a_check_reads_back_all_and_marks_it(site: Installation) -> None:
    site.write(3)
    await site.archive()
    archive = Archive(site.store)
    assert archive.checked(LEDGER) == -1
    assert archive.check(LEDGER, NOW_MS) == 6
    assert Archive(site.store).checked(LEDGER) == 0


async def test_a_check_goes_on_at_the_last_mark(site: Installation) -> None:
    site.write(2)
    await site.archive()
    Archive(site.store).check(LEDGER, NOW_MS)
    site.write(2)
    await site.archive()
    damage = site.object(0)
    damage.write_bytes(b"not read again")
    assert Archive(site.store).check(LEDGER, NOW_MS) == 8


async def test_a_check_notices_a_flipped_bit_and_a_missing_object(site: Installation) -> None:
    site.write(3)
    await site.archive()
    path = site.object(0)
    body = path.read_bytes()
    path.write_bytes(body[:-1] + bytes([body[-1] ^ 1]))
    with pytest.raises(BadArchive, match="another sha256"):
        Archive(site.store).check(LEDGER, NOW_MS)
    path.unlink()
    with pytest.raises(BadArchive, match="missing"):
        Archive(site.store).check(LEDGER, NOW_MS)


class Counting(FolderStore):
    """A store that counts what is read."""

    reads = 0

    def get(self, name: str) -> bytes | None:
        self.reads += 1
        return super().get(name)


async def test_the_end_of_a_long_chain_is_read_from_its_last_entry(site: Installation) -> None:
    """A year has thousands of entries, and a start from a checkpoint needs where they end."""
    site.write(20)
    await site.archive(segment_bytes=1)
    store = Counting(site.folder)
    archive = Archive(store)
    assert archive.end(INPUT) == 0
    assert archive.end(LEDGER) == 40
    assert store.reads == 1
    assert (len(archive.refresh(LEDGER)), archive.end(LEDGER)) == (40, 40)
    assert store.reads == 41


async def test_an_object_that_is_there_with_other_bytes_gets_no_entry(
    site: Installation, tmp_path: Path
) -> None:
    """A store that is not atomic has half of an upload under its name, and may not replace it."""
    twin = Installation(tmp_path / "twin")
    for each in (site, twin):
        each.write(3)
    await twin.archive()
    half = site.folder / twin.object(0).relative_to(twin.folder)
    half.parent.mkdir(parents=True)
    half.write_bytes(twin.object(0).read_bytes()[:10])
    with pytest.raises(BadArchive, match="other bytes than its name says"):
        await site.archive()
    assert len(Archive(site.store).refresh(LEDGER)) == 0
    half.unlink()
    assert await site.archive() == 1
    assert Archive(site.store).check(LEDGER, 1) == 6


async def test_a_missing_entry_is_noticed(site: Installation) -> None:
    site.write(6)
    await site.archive(segment_bytes=1)
    known = Archive(site.store)
    known.refresh(LEDGER)
    site.entry(1).unlink()
    with pytest.raises(BadArchive, match="chain/000000001: missing"):
        Archive(site.store).refresh(LEDGER)
    for n in range(2, 12):
        site.entry(n).unlink()
    with pytest.raises(BadArchive, match="was there before"):
        known.refresh(LEDGER)


async def test_a_mark_of_another_chain_counts_for_nothing(site: Installation) -> None:
    site.write(1)
    await site.archive()
    archive = Archive(site.store)
    archive.check(LEDGER, NOW_MS)
    mark = site.folder / "admission/0/checked/000000000"
    mark.write_bytes(mark.read_bytes().replace(b'"sha256":"', b'"sha256":"0'))
    with pytest.raises(BadArchive, match="names another entry 0"):
        Archive(site.store).check(LEDGER, NOW_MS)
