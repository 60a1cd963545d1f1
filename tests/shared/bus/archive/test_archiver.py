from __future__ import annotations

import asyncio

import pytest

from shared.bus.archive.archive import Archive
from shared.bus.archive.archiver import Archiver, ArchiverOptions
from shared.bus.archive.folder_store import FolderStore
from shared.bus.archive.store import ObjectStore
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.ledger.errors import ArchiveUnreachable, TailLost
from tests.shared.bus.archive.archives import INPUT, LEDGER, NOW_MS, Installation


async def test_every_record_is_archived_byte_for_byte(site: Installation) -> None:
    site.write(5)
    for tp, made in ((LEDGER, 10), (INPUT, 5)):
        assert await site.archive(tp, segment_bytes=1) == made
        archive = Archive(site.store)
        chain = archive.refresh(tp)
        stored = [record for entry in chain.entries for record in archive.records(entry)]
        assert stored == site.broker.entries(tp)


async def test_what_is_archived_is_not_archived_again(site: Installation) -> None:
    site.write(2)
    assert await site.archive() == 1
    assert await site.archive() == 0
    site.write(1)
    assert await site.archive() == 1


async def test_two_archivers_at_once_make_one_history(site: Installation) -> None:
    site.write(20)
    made = await asyncio.gather(
        *(site.archive(writer=name, segment_bytes=1) for name in ("a", "b", "c"))
    )
    chain = Archive(site.store).refresh(LEDGER)
    assert (sum(made), len(chain), chain.next) == (40, 40, 40)
    assert Archive(site.store).check(LEDGER, NOW_MS) == 40


class Overtaken(FolderStore):
    """A store whose first put of an entry is followed by the entries of another archiver."""

    def __init__(self, site: Installation) -> None:
        super().__init__(site.folder)
        self.site, self.is_first = site, True

    def put_new(self, name: str, body: bytes) -> bool:
        made = super().put_new(name, body)
        if "/chain/" in name and self.is_first:
            self.is_first = False
            asyncio.run(self.archive_one())
        return made

    async def archive_one(self) -> None:
        """Let another archiver make the next entry."""
        options = ArchiverOptions("b", segment_bytes=1)
        other = Archiver(MemoryLog(self.site.broker), Archive(self), options, lambda: NOW_MS)
        assert await other.archive(LEDGER, 2) == 1


async def test_an_archiver_goes_on_behind_entries_that_came_after_its_own(
    site: Installation,
) -> None:
    site.write(3)
    bus = MemoryLog(site.broker)
    options = ArchiverOptions("a", segment_bytes=1)
    archiver = Archiver(bus, Archive(Overtaken(site)), options, lambda: NOW_MS)
    made = await archiver.archive(LEDGER, await bus.end(LEDGER))
    assert (made, Archive(site.store).check(LEDGER, NOW_MS)) == (5, 6)


class Dying:
    """A store of which a call fails, before or after it has had its effect."""

    def __init__(self, store: ObjectStore, call: int, *, done: bool) -> None:
        self.store, self.left, self.done = store, call, done

    def put_new(self, name: str, body: bytes) -> bool:
        self.left -= 1
        if self.left == 0 and not self.done:
            raise ArchiveUnreachable("gone")
        made = self.store.put_new(name, body)
        if self.left == 0:
            raise ArchiveUnreachable("gone")
        return made

    def get(self, name: str) -> bytes | None:
        return self.store.get(name)

    def names(self, prefix: str) -> list[str]:
        return self.store.names(prefix)


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("call", [1, 2, 3, 4])
async def test_an_archiver_that_died_at_any_step_is_followed_by_another(
    site: Installation, call: int, done: bool
) -> None:
    site.write(2)
    real, site.store = site.store, Dying(site.store, call, done=done)  # type: ignore[assignment]
    with pytest.raises(ArchiveUnreachable):
        await site.archive(segment_bytes=1)
    site.store = real
    await site.archive(segment_bytes=1)
    assert Archive(real).check(LEDGER, NOW_MS) == 4


async def test_another_topic_of_the_name_is_not_glued_to_the_archive(site: Installation) -> None:
    site.write(3)
    await site.archive()
    site.broker = MemoryBroker()
    with pytest.raises(TailLost, match="another topic"):
        await site.archive()
    other = Installation(site.folder)
    for n in range(10):
        other.broker.append(LEDGER, b"other %d" % n)
        other.broker.append(INPUT, b"other %d" % n)
    with pytest.raises(TailLost, match="another record at 4"):
        await other.archive()


async def test_another_input_of_the_name_is_noticed_by_its_bytes(site: Installation) -> None:
    site.write(3)
    await site.archive(INPUT)
    site.broker = MemoryBroker()
    for n in range(10):
        site.broker.append(INPUT, b"other %d" % n)
    with pytest.raises(TailLost, match="another record at 2"):
        await site.archive(INPUT)


async def test_records_that_are_gone_unarchived_are_a_clear_error(site: Installation) -> None:
    site.write(3)
    await site.archive()
    site.write(3)
    site.broker.trim(LEDGER, 8)
    with pytest.raises(TailLost, match="archive ends at 6, and the topic begins at 8"):
        await site.archive()


async def test_a_topic_without_its_beginning_is_not_archived(site: Installation) -> None:
    site.write(3)
    site.broker.trim(LEDGER, 2)
    with pytest.raises(TailLost, match="archive ends at 0"):
        await site.archive()
