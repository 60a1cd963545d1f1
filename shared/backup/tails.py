"""Tails: a backup of what the archive does not have, and the records before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shared.backup.files import ArchivedBefore, BackupManifest, BackupPart, BadBackup
from shared.bus.archive.archive import Archive
from shared.bus.archive.chain import Chain
from shared.bus.archive.segment import ArchiveEntry
from shared.bus.logs.log import Entry
from shared.ledger.errors import BadArchive


def with_archived(part: BackupPart, chain: Chain | None) -> BackupPart:
    """Return the entry of a file that begins behind the last entry of a chain."""
    if not chain:
        return part
    before = ArchivedBefore(n=chain.end.n, sha256=chain.end.sha256)
    return part.model_copy(update={"archived": before})


def check_archive(archive: Archive | None, manifest: BackupManifest) -> None:
    """Raise BadBackup unless the archive has the entries behind which the files begin.

    An archive that has more is right: it was extended after the backup.
    """
    for part in _tails(manifest):
        if archive is None:
            raise BadBackup(f"{part.file}: is a tail; name the archive that has what is before it")
        _entries_before(archive, part)


def archived_records(archive: Archive, part: BackupPart) -> Iterator[Entry]:
    """Yield the records before a tail, compared with the hashes of their chain; blocks.

    Raises BadBackup for another archive, BadArchive for objects that are missing or damaged.
    """
    for entry in _entries_before(archive, part):
        yield from archive.records(entry)


def _tails(manifest: BackupManifest) -> Iterable[BackupPart]:
    return (part for part in manifest.parts if part.archived is not None)


def _entries_before(archive: Archive, part: BackupPart) -> list[ArchiveEntry]:
    before = part.archived
    if before is None:
        raise BadBackup(f"{part.file}: is no tail")
    try:
        chain = archive.refresh(part.tp)
    except BadArchive as error:
        raise BadBackup(f"{part.tp.key}: {error}") from None
    if len(chain) <= before.n:
        raise BadBackup(
            f"{part.tp.key}: the archive has {len(chain)} entries, and the backup goes on behind"
            f" entry {before.n}: it is another archive, or an older copy of it"
        )
    entries = list(chain.entries[: before.n + 1])
    if chain.sha256(before.n) != before.sha256 or entries[-1].next != part.first:
        raise BadBackup(
            f"{part.tp.key}: entry {before.n} of the archive is not the one that the backup names:"
            " it is another archive"
        )
    return entries
