"""Folders that must be short, or open to others, and so cannot always be where the data is."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

# A unix socket's path may have 107 bytes; the kernel's limit, not ours.
LONGEST_SOCKET = 107
LONGEST_NAME = ".s.PGSQL.5432.lock"


def socket_dir(data_dir: Path) -> Path:
    """In the data folder, or, where that is too deep for a socket, beside the temporary files."""
    near = data_dir.resolve() / "socket"
    return near if len(str(near / LONGEST_NAME)) <= LONGEST_SOCKET else _elsewhere(near)


def work_dir(state: Path) -> Path:
    """Of worker processes; root gives each an account of its own, which must be able to enter."""
    near = state.resolve() / "work"
    return near if os.geteuid() != 0 or is_open_to_all(near) else _elsewhere(near)


def is_open_to_all(path: Path) -> bool:
    """May everybody pass through the folders above?"""
    above = (parent for parent in path.resolve().parents if parent.exists())
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in above)


def make_own(folder: Path, mode: int) -> None:
    """Make a folder, or see that the one which is there is no one else's."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.lstat().st_uid != os.geteuid() or folder.is_symlink():
        raise PermissionError(f"{folder} belongs to somebody else")
    folder.chmod(mode)


def _elsewhere(near: Path) -> Path:
    name = hashlib.sha256(str(near).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"berth-{os.geteuid()}-{name}"
