"""Opens the archive that an installation's settings name."""

from __future__ import annotations

from pathlib import Path

from shared.bus.archive.folder_store import FolderStore
from shared.bus.archive.tiered_log import TieredLog
from shared.bus.log import Log


def open_store(archive: str) -> FolderStore:
    return FolderStore(Path(archive))


def with_archive(topics: Log, archive: str) -> Log:
    """Return the log on two tiers, or the topics alone where there is no archive."""
    return TieredLog(topics, open_store(archive)) if archive else topics
