"""Directories that must have short paths or be accessible to other users."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

# A unix socket's path may have 107 bytes; the kernel's limit, not ours.
LONGEST_SOCKET = 107
LONGEST_NAME = ".s.PGSQL.5432.lock"
LONGEST_TELEMETRY = "telemetry/x" + 32 * "0"


def socket_dir(data_dir: Path) -> Path:
    """Return the directory of sockets: the data directory, or /tmp if its path is too long."""
    near = data_dir.resolve() / "socket"
    return near if len(str(near / LONGEST_NAME)) <= LONGEST_SOCKET else _elsewhere(near)


def work_dir(state: Path) -> Path:
    """Return the directory of worker processes; as root it is accessible to other accounts."""
    near = state.resolve() / "work"
    return near if os.geteuid() != 0 or is_open_to_all(near) else _elsewhere(near)


def agent_run_dir(root: Path) -> Path:
    """Return the run folder of an agent, whose sockets workers of other accounts open."""
    near = root.resolve() / "agent-run"
    is_short = len(str(near / LONGEST_TELEMETRY)) <= LONGEST_SOCKET
    is_near = is_short and (os.geteuid() != 0 or is_open_to_all(near))
    return near if is_near else _elsewhere(near)


def is_open_to_all(path: Path) -> bool:
    """Return whether all parent directories are accessible to all users."""
    above = (parent for parent in path.resolve().parents if parent.exists())
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in above)


def make_own(folder: Path, mode: int) -> None:
    """Create a directory, or check that the existing one belongs to this user."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.lstat().st_uid != os.geteuid() or folder.is_symlink():
        raise PermissionError(f"{folder} belongs to another user")
    folder.chmod(mode)


def _elsewhere(near: Path) -> Path:
    name = hashlib.sha256(str(near).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"berth-{os.geteuid()}-{name}"
