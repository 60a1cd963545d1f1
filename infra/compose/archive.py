"""The archive of the containers: a folder of this machine that they mount."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from infra.compose import project
from infra.machine.process import DidNotStart
from shared.bus.archive.folder_store import FolderStore
from shared.ledger.errors import ArchiveUnreachable

MOUNTED = "/archive"
"""Value of `ARCHIVE` for the folder."""
USER = 10001
"""Of the containers."""


def claim(settings: Mapping[str, str]) -> str:
    """Make the folder that is mounted, an archive if it is one; return the archive, "" for none.

    One that only the containers may read was made by an earlier start. Raises DidNotStart for a
    folder that the containers could not write, or that has other files.
    """
    folder = project.ROOT / settings["ARCHIVE_FOLDER"]
    # A folder that Docker makes for a container belongs to root.
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if settings["ARCHIVE"] != MOUNTED:
        return settings["ARCHIVE"]
    if folder.stat().st_uid == USER and not os.access(folder, os.R_OK | os.W_OK):
        return str(folder.resolve())
    try:
        FolderStore(folder).create()
    except ArchiveUnreachable as error:
        raise DidNotStart(f"ARCHIVE_FOLDER: {error}") from None
    own(folder)
    return str(folder.resolve())


def own(folder: Path) -> None:
    """Give the folder to the user of the containers, with the file that is in it at first."""
    owned = [path for path in (folder, *folder.glob("berth-archive")) if path.stat().st_uid != USER]
    try:
        for path in owned:
            os.chown(path, USER, USER)
    except PermissionError:
        raise DidNotStart(
            f"ARCHIVE_FOLDER: {folder}: user {USER} of the containers must own it: "
            f"`sudo chown -R {USER} {folder}`"
        ) from None
