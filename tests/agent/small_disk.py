"""A disk that a test fills."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def a_small_disk(folder: Path, size: str) -> Iterator[None]:
    """Mount one of this size, such as `8m`, on the folder inside the block; only root may."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=711", "tmpfs"]
    subprocess.run([*mount, folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with pytest.raises(OSError, match="No space"), path.open("ab", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
