"""Trace files as bytes, plain or gzipped."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from simulator.workload.errors import TraceError, first_line

PEEK_BYTES = 8192
_GZIP = b"\x1f\x8b"
_TAR = slice(257, 262)


@contextmanager
def open_trace(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, unpacked where it is gzipped, whatever its name.

    Raises TraceError for what cannot be opened or unpacked, also while the caller reads.
    """
    if not path.is_file():
        raise TraceError(path, "no such file")
    try:
        with path.open("rb") as plain:
            packed = plain.read(len(_GZIP)) == _GZIP
            plain.seek(0)
            if packed:
                with gzip.open(plain) as unpacked:
                    yield unpacked  # type: ignore[misc]  # GzipFile reads like any binary file.
            else:
                yield plain
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceError(path, f"is a damaged gzip file ({first_line(error)})") from error
    except OSError as error:
        raise TraceError(path, f"cannot be read ({first_line(error)})") from error


def peek(path: Path) -> bytes:
    """Return the beginning of the file, unpacked."""
    with open_trace(path) as stream:
        head = stream.read(PEEK_BYTES)
    if head[_TAR] == b"ustar":
        raise TraceError(path, "is a tar archive: unpack it, and name the file or folder in it")
    return head


def undecodable_row(path: Path, header_rows: int) -> int | None:
    """Return the first row of data that is not UTF-8."""
    with open_trace(path) as stream:
        for line, text in enumerate(stream):
            try:
                text.decode()
            except UnicodeDecodeError:
                return max(0, line - header_rows)
    return None
