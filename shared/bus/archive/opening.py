"""Opens the archive that an installation's settings name."""

from __future__ import annotations

from pathlib import Path

from shared.bus.archive.folder_store import FolderStore
from shared.bus.archive.s3_address import PREFIX, BadArchiveAddress, parse_s3
from shared.bus.archive.store import ObjectStore
from shared.bus.archive.tiered_log import TieredLog
from shared.bus.logs.log import Log
from shared.ledger.errors import ArchiveUnreachable


def open_store(archive: str) -> ObjectStore:
    """Return the store at a folder or an address of S3. Raises ArchiveUnreachable."""
    if not archive.startswith(PREFIX):
        return FolderStore(Path(archive))
    # The client takes 8 MiB of memory.
    from shared.bus.archive.s3_store import S3Store

    try:
        return S3Store(parse_s3(archive))
    except BadArchiveAddress as error:
        raise ArchiveUnreachable(f"archive: {error}") from None


def with_archive(topics: Log, archive: str) -> Log:
    """Return the log on two tiers, or the topics alone where there is no archive."""
    return TieredLog(topics, open_store(archive)) if archive else topics
