"""Lines about an upload, on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.text.output import report_line

if TYPE_CHECKING:
    from berth_client.bundles import Bundle

EVERY = 16
"""Parts, of 1 MiB each, between two lines about the rest."""


def report_upload(bundle: Bundle, parts_left: int) -> None:
    """Print what is packed, how much of it is still to be sent, and that it is stored."""
    if not parts_left:
        count = f"{bundle.files} file{'' if bundle.files == 1 else 's'}"
        report_line(f"uploaded {count}, {bundle.size_bytes / 1024:.0f} KiB compressed")
    elif parts_left % EVERY == 0:
        report_line(f"uploading: {parts_left} of {len(bundle.parts)} MiB left")
