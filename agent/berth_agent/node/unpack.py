"""Unpacks an archive on standard input as the user of a worker, in a process of its own.

The archive is a tenant's: what it unpacks belongs to the job's user, counts in its control groups,
and stays within its folder.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import tarfile
import zlib
from typing import Any, BinaryIO

from berth_agent.linux import cgroups

FULL, OUTSIDE, TOO_LARGE, FAILED = 3, 4, 5, 6
"""Exit codes: no space, a file that may not be in a bundle, too much of it, another error."""
MOST_FILES = 200_000
SHOWN_CHARS = 200


class TooLarge(Exception):
    """The archive has too many files or bytes."""


def unpack(source: BinaryIO, folder: str, most_bytes: int) -> None:
    """Unpack files, folders, and links that stay within the folder.

    Raises TooLarge, OSError, tarfile.TarError, EOFError, zlib.error.
    """
    count = size = 0
    with tarfile.open(fileobj=source, mode="r|gz") as archive:
        for member in archive:
            count += 1
            size += member.size
            if count > MOST_FILES or size > most_bytes:
                raise TooLarge(f"more than {MOST_FILES} files, or {most_bytes} bytes")
            archive.extract(member, folder, filter="data")


def take_identity(request: dict[str, Any]) -> None:
    """Become the worker's user, for good. Raises OSError."""
    cgroups.join(request["cgroups"])
    if request["uid"] is not None:
        os.setgroups(request["groups"])
        os.setgid(request["gid"])
        os.setuid(request["uid"])
    os.umask(request["umask"])


def main() -> int:
    """Return an exit code; the last line of the errors says why."""
    request = json.loads(sys.argv[1])
    try:
        take_identity(request)
        unpack(sys.stdin.buffer, request["folder"], request["most_bytes"])
    except TooLarge as error:
        return _fail(TOO_LARGE, error)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        return _fail(OUTSIDE, error)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return _fail(FULL if full else FAILED, error)
    return 0


def _fail(code: int, error: Exception) -> int:
    text = str(error) or type(error).__name__
    sys.stderr.write(" ".join(text.split())[:SHOWN_CHARS] + "\n")
    return code
