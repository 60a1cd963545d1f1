"""A full disk: files can be made, and nothing can be written to them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def full_disk() -> Iterator[None]:
    """Let this process store no snapshot and no mark inside the block."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def refuse_bytes(path: Path, _: bytes) -> None:
        path.touch()
        refuse()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        patched.setattr(Path, "write_bytes", refuse_bytes)
        yield
