"""The archive of a stack: the place that it was given once, for all its later starts."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from infra.machine.process import DidNotStart
from infra.supervisor.launch import StackOptions
from infra.supervisor.running import NoStack, load
from shared.bus.archive.opening import open_store
from shared.bus.archive.s3_address import PREFIX, BadArchiveAddress, parse_s3, same_place
from shared.ledger.errors import ArchiveUnreachable


def claim_archive(data_dir: Path, options: StackOptions) -> str:
    """Return the archive's folder or address, empty for none; a new one is made.

    A stack keeps its archive: once topics are trimmed, only the archive has their beginning. The
    way to the same bucket and prefix may change. Raises DidNotStart.
    """
    known = ""
    with suppress(NoStack):
        stack = load(data_dir)
        known = stack.archive if stack.broker == options.broker else ""
    requested = _resolved(options.archive) or known
    if not requested:
        return ""
    if options.broker == "embedded":
        raise DidNotStart("an archive would outlive the embedded broker, which keeps nothing")
    try:
        if known and not same_place(known, requested):
            raise DidNotStart(
                f"the archive of {data_dir} is {known}, and cannot become {requested}: move a "
                "folder, and put a symbolic link in its place"
            )
        _check_environment(requested)
        store = open_store(requested)
        store.check() if known else store.create()
    except (ArchiveUnreachable, BadArchiveAddress) as error:
        raise DidNotStart(f"archive: {error}") from None
    return requested


def _resolved(archive: str) -> str:
    return archive if not archive or archive.startswith(PREFIX) else str(Path(archive).resolve())


def _check_environment(archive: str) -> None:
    """Raise DidNotStart where this process would reach S3 by other keys than the services."""
    if not archive.startswith(PREFIX) or parse_s3(archive).credentials is not None:
        return
    if names := sorted(name for name in os.environ if name.startswith("AWS_")):
        raise DidNotStart(
            f"{names[0]}: does not reach the services; name a file in the address, "
            "?credentials=FILE, or unset it to use the role of the machine"
        )
