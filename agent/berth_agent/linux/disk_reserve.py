"""Space that is kept for a full disk: ends, reports and orders to stop are noted in it."""

from __future__ import annotations

import os
import time

from berth_agent.linux.files import FULL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LOW = 1.5
"""Space, in reserves, below which the disk counts as full."""
SLICE_BYTES = 256 * 1024
"""Space that is given up at once: a writer that fills the disk does not take it all."""


def write_on_full_disk(reserve: str, write: Callable[[], None]) -> None:
    """Call `write`; on a full disk give up a slice of the reserve and call it again.

    Raises OSError once nothing is left, and for any other reason.
    """
    while True:
        try:
            write()
        except OSError as error:
            if error.errno not in FULL or not _give_up_slice(reserve):
                raise
        else:
            return


class DiskReserve:
    """The file that holds the space. The agent keeps it, its steps use it too."""

    def __init__(self, path: str, size_bytes: int) -> None:
        self.path = path
        self._size_bytes = size_bytes
        self._since = ""
        """When space was first seen to be lacking, UTC; empty while it is there."""

    def refill(self) -> None:
        """Take the space, again where it was used, once the disk has twice as much without it."""
        if self._held_bytes() == self._size_bytes:
            return
        fresh = f"{self.path}.new"
        try:
            if self._free_bytes() >= 2 * self._size_bytes:
                self._allocate(fresh)
                os.rename(fresh, self.path)
        except OSError:
            _remove(fresh)

    def is_lacking(self) -> bool:
        """Return whether space was given up, or never taken, and the disk did not have enough
        since.
        """
        return (self._held_bytes() or 0) < self._size_bytes

    def problem(self) -> str:
        """Return what keeps the node from new work; empty: nothing.

        It begins before the reserve is needed, and ends when there is space for it twice.
        The text is the same each time, as it is logged when it changes.
        """
        enough_bytes = self._size_bytes * (2 if self._since else LOW)
        if not self.is_lacking() and not self._has_less(enough_bytes):
            self._since = ""
            return ""
        self._since = self._since or time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
        size_mib = self._size_bytes / 2**20
        return (
            f"the disk of {os.path.dirname(self.path)} has less than {LOW * size_mib:g} MiB since"
            f" {self._since}, the agent's reserve included (reserve_mib {size_mib:g}): new work is"
            f" refused until {2 * size_mib:g} MiB are free"
        )

    def _has_less(self, enough_bytes: float) -> bool:
        try:
            return self._free_bytes() < enough_bytes
        except OSError:
            return False

    def _free_bytes(self) -> int:
        """Return what is free beside the reserve, and what that holds. Raises OSError."""
        disk = os.statvfs(os.path.dirname(self.path))
        return disk.f_bavail * disk.f_frsize + (self._held_bytes() or 0)

    def _held_bytes(self) -> int | None:
        try:
            return os.stat(self.path).st_size
        except OSError:
            return None

    def _allocate(self, path: str) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            if self._size_bytes:
                os.posix_fallocate(descriptor, 0, self._size_bytes)
        finally:
            os.close(descriptor)


def _give_up_slice(path: str) -> bool:
    """Return whether there was one."""
    try:
        size = os.stat(path).st_size
        os.truncate(path, max(0, size - SLICE_BYTES))
    except OSError:
        return False
    return size > 0


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
