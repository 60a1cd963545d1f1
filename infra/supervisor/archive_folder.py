"""The archive of a stack: the folder that it was given once, for all its later starts."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from infra.machine.process import DidNotStart
from infra.supervisor.launch import StackOptions
from infra.supervisor.running import NoStack, load
from shared.bus.archive.folder_store import FolderStore
from shared.ledger.errors import ArchiveUnreachable


def claim_archive(data_dir: Path, options: StackOptions) -> str:
    """Return the archive's folder, empty for none; a new one is made. Raises DidNotStart.

    A stack keeps its archive: once topics are trimmed, only the archive has their beginning.
    """
    known = ""
    with suppress(NoStack):
        stack = load(data_dir)
        known = stack.archive if stack.broker == options.broker else ""
    wanted = str(options.archive.resolve()) if options.archive is not None else known
    if not wanted:
        return ""
    if options.broker == "embedded":
        raise DidNotStart("an archive would outlive the embedded broker, which keeps nothing")
    if known and wanted != known:
        raise DidNotStart(
            f"the archive of {data_dir} is {known}, and cannot become {wanted}: move the folder, "
            "and put a symbolic link in its place"
        )
    try:
        FolderStore(Path(wanted)).check() if known else FolderStore(Path(wanted)).create()
    except ArchiveUnreachable as error:
        raise DidNotStart(f"archive: {error}") from None
    return wanted
