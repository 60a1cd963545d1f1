"""The archive of the containers: a folder of this machine that they mount, or a place in S3."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from infra.compose import project
from infra.compose import secrets as compose_secrets
from infra.machine.process import DidNotStart
from infra.supervisor.running import NoStack, load
from shared.bus.archive.folder_store import FolderStore
from shared.bus.archive.s3_address import PREFIX, BadArchiveAddress, parse_s3, same_place
from shared.ledger.errors import ArchiveUnreachable

MOUNTED = "/archive"
"""Value of `ARCHIVE` for the folder."""
GIVEN = Path("/run/archive")
"""Folder of the containers with the files that an address names."""
USER = 10001
"""Of the containers."""


def known() -> str:
    """Return the archive that the project was given before, as this machine reaches it."""
    with suppress(NoStack):
        return load(project.FOLDER).archive
    return ""


def claim(settings: Mapping[str, str], known: str = "") -> str:
    """Return the archive as this machine reaches it, "" for none; make its folder the first time.

    Raises DidNotStart for another archive than the project has, a folder that the containers could
    not write or that has other files, and an address that they could not use.
    """
    folder = project.ROOT / settings["ARCHIVE_FOLDER"]
    # A folder that Docker makes for a container belongs to root.
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    requested = settings["ARCHIVE"]
    if requested not in ("", MOUNTED) and not requested.startswith(PREFIX):
        raise DidNotStart(f"ARCHIVE={requested}: must be empty, {MOUNTED}, or {PREFIX}...")
    try:
        reached = requested
        if requested == MOUNTED:
            reached = str(folder.resolve())
        elif requested:
            reached = outside(requested, project.secrets_of(dict(settings)))
        if known and not same_place(known, reached):
            raise DidNotStart(f"ARCHIVE={requested}: the archive of this project stays {known}")
    except BadArchiveAddress as error:
        raise DidNotStart(f"ARCHIVE: {error}") from None
    if requested == MOUNTED:
        _claim_folder(folder, is_new=not known)
    return reached


def outside(address: str, secrets: Path) -> str:
    """Return an address with the files of the containers where they are on this machine.

    Raises BadArchiveAddress for files that the containers do not have or could not read.
    """
    parsed, folder = parse_s3(address), secrets / compose_secrets.ARCHIVE
    if parsed.allows_http:
        raise BadArchiveAddress(f"endpoint={parsed.endpoint}: no container reaches this loopback")
    for name in ("credentials", "ca"):
        inside: Path | None = getattr(parsed, name)
        if inside is None:
            continue
        if inside.parent != GIVEN:
            raise BadArchiveAddress(f"{name}={inside}: must be in {GIVEN}, which is {folder} here")
        _check_readable(name, folder / inside.name)
    reached = address.replace(f"={GIVEN}/", f"={quote(str(folder))}/")
    parse_s3(reached).read_credentials()
    return reached


def _check_readable(name: str, path: Path) -> None:
    if not path.is_file():
        raise BadArchiveAddress(f"{name}: {path}: is no file")
    if not path.stat().st_mode & 0o004:
        # The folder above is closed, and the containers read as another user.
        raise BadArchiveAddress(f"{name}: {path}: user {USER} cannot read it: chmod a+r")


def _claim_folder(folder: Path, *, is_new: bool) -> None:
    """Make the folder an archive; one that was made before has to be one, or is not mounted.

    One that only the containers may read is left to them.
    """
    if folder.stat().st_uid == USER and not os.access(folder, os.R_OK | os.W_OK):
        return
    store = FolderStore(folder)
    try:
        store.create() if is_new else store.check()
    except ArchiveUnreachable as error:
        raise DidNotStart(f"ARCHIVE_FOLDER: {error}") from None
    own(folder)


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
