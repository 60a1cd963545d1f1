"""A file whose readers hang in the kernel: a FUSE server takes each read, and never answers.

Such a reader waits uninterruptibly (state D). SIGKILL ends it when the file is removed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

DEVICE = Path("/dev/fuse")
MOUNT_OPTIONS = "rootmode=100444,user_id=0,group_id=0,allow_other"
MNT_FORCE, MNT_DETACH = 1, 2
GETATTR, OPEN, READ, INIT = 3, 14, 15, 26
"""Numbers of the requests (linux/fuse.h)."""
REQUEST = struct.Struct("=IIQQ")
ANSWER = struct.Struct("=IiQ")
REQUEST_BYTES = 2**17
ROOT, FILE_MODE, BLOCK_BYTES = 1, 0o100444, 4096
DIRECT_IO = 1
"""Flag of an open file whose size does not matter."""


class HangingFile:
    """The server of one file at `path`."""

    def __init__(self, path: Path) -> None:
        """Mount the file. Raises OSError."""
        path.touch()
        self.path = path
        self.hangs = threading.Event()
        """Set when a reader hangs."""
        self._device = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
        self._libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self._device},{MOUNT_OPTIONS}".encode()
        if self._libc.mount(b"hangs", os.fsencode(path), b"fuse", 0, options) != 0:
            os.close(self._device)
            raise OSError(ctypes.get_errno(), "mount of a FUSE file")
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let all reads fail, and remove the mount."""
        self._libc.umount2(os.fsencode(self.path), MNT_FORCE | MNT_DETACH)
        self._thread.join()
        os.close(self._device)

    def _serve(self) -> None:
        while True:
            try:
                request = os.read(self._device, REQUEST_BYTES)
            except OSError:
                return  # It is not mounted any more.
            _, kind, unique, _ = REQUEST.unpack_from(request)
            if kind == READ:
                self.hangs.set()
                continue
            answer = ANSWERS.get(kind, b"")
            problem = 0 if answer else -errno.ENOSYS
            header = ANSWER.pack(ANSWER.size + len(answer), problem, unique)
            with suppress(FileNotFoundError):  # The reader was interrupted.
                os.write(self._device, header + answer)


ANSWERS = {
    INIT: struct.pack("=IIIIHHII32x", 7, 31, 0, 0, 0, 0, BLOCK_BYTES, 1),
    OPEN: struct.pack("=QII", 0, DIRECT_IO, 0),
    GETATTR: struct.pack(
        "=QII6Q10I", 0, 0, 0, ROOT, 0, 0, 0, 0, 0, 0, 0, 0, FILE_MODE, 1, 0, 0, 0, BLOCK_BYTES, 0
    ),
}


@contextmanager
def a_hanging_file(path: Path) -> Iterator[HangingFile]:
    """Serve a file whose readers hang until the block ends."""
    if os.geteuid() != 0 or not DEVICE.exists():
        pytest.skip("a FUSE file needs root and /dev/fuse")
    try:
        file = HangingFile(path)
    except OSError as error:
        pytest.skip(f"a FUSE file cannot be mounted here: {error}")
    try:
        yield file
    finally:
        file.close()
