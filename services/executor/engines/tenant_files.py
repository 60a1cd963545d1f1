"""Reads and writes files in a folder that a tenant's user owns, as a process that may be root.

The tenant may put anything in place of a file: a link to a file of others, or a pipe that never
answers. Links are not followed, and what is no regular file counts as absent.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from tempfile import mkstemp


def read_file(path: Path, most: int, offset: int = 0) -> bytes:
    """Return at most so many bytes from that place on; nothing where there is no such file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        return os.pread(descriptor, most, offset)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def size_of(path: Path) -> int:
    """Return the size of a file in bytes, 0 where there is none."""
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def replace_file(
    path: Path, text: str, mode: int = 0o600, owner: tuple[int, int] | None = None
) -> None:
    """Write a file as a whole: a reader sees the old one or the new one.

    Another executor may write the same file at the same time: each writes one of its own first.
    `owner` is a uid and a gid, given to this file alone, whatever the tenant puts in its place.
    """
    descriptor, new = mkstemp(prefix=f"{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(file.fileno(), mode)
            if owner is not None:
                os.fchown(file.fileno(), *owner)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(new).rename(path)
    except OSError:
        Path(new).unlink(missing_ok=True)
        raise


def reading_problem(path: Path) -> str:
    """Return why a file that is there cannot be opened; empty if it can, or there is none.

    The shared folder may keep root out (`root_squash`), or the disk may fail.
    """
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK))
    except OSError as error:
        is_absent = error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO)
        return "" if is_absent else f"{path}: {error.strerror}"
    return ""
