"""Folders in the temporary directory that go with the process that owns them.

A process that is killed removes nothing. So each folder has a record of its owner, and the next
start removes the folders of owners that have ended.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import psutil

from berth_agent.linux import processes
from infra.machine.folders import make_own

NAMESPACE = Path("/proc/self/ns/pid")
PREFIX = "berth-"


class Owner(msgspec.Struct, frozen=True):
    """A folder and the process that it goes with; pids mean something in one namespace alone."""

    folder: str
    inode: tuple[int, int, int]
    """Device, number and user: the folder, and not another one that has its name now."""
    pid: int
    began_ticks: int
    """Its start since the boot, which no change of the clock moves."""
    namespace: str
    lock: str = ""
    """File that is locked while a start makes use of the folder, empty for none."""

    @property
    def is_alive(self) -> bool:
        return processes.is_alive(self.pid, self.began_ticks)


def own(folder: Path, pid: int, lock: str = "") -> None:
    """Record that the folder goes with this process, which runs.

    Without a record, as where another user has the folder of records, it stays for ever.
    """
    try:
        record = Owner(
            folder=str(folder),
            inode=_inode(folder),
            pid=pid,
            began_ticks=processes.started_ticks(pid),
            namespace=_namespace(),
            lock=lock,
        )
        make_own(_records(), 0o700)
        path = _record_of(folder)
        scratch = path.with_suffix(f".{os.getpid()}")
        scratch.write_bytes(msgspec.json.encode(record))
        scratch.replace(path)
    except OSError:
        return


def remove(folder: Path) -> None:
    """Remove a folder and the record of its owner."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        _record_of(folder).unlink(missing_ok=True)


def remove_stale() -> list[Path]:
    """Remove the folders of owners that have ended, unless a process uses them; return them."""
    with suppress(OSError):
        make_own(_records(), 0o700)
        stale = [owner for path in _records().glob("*.json") if (owner := _stale(path))]
        used = _used() if stale else ""
        return [Path(owner.folder) for owner in stale if _remove(owner, used)]
    return []


@contextmanager
def scratch_folder(label: str) -> Iterator[Path]:
    """Yield a folder of this process that others may enter; it is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{label}-"))
    own(folder, os.getpid())
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        remove(folder)


def _stale(path: Path) -> Owner | None:
    """Return the owner in this record if it has ended; a record without its folder is removed."""
    try:
        owner = msgspec.json.decode(path.read_bytes(), type=Owner)
        is_same = _inode(Path(owner.folder)) == owner.inode
    except (OSError, msgspec.DecodeError):
        is_same = False
    if not is_same:
        path.unlink(missing_ok=True)
        return None
    is_ours = Path(owner.folder).name.startswith(PREFIX) and owner.namespace == _namespace()
    return owner if is_ours and not owner.is_alive else None


def _remove(owner: Owner, used: str) -> bool:
    """Remove the folder, unless a process uses it or a start holds its lock."""
    if owner.folder in used:
        return False
    try:
        with open(owner.lock or os.devnull) as lock:
            if owner.lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(Path(owner.folder))
    except FileNotFoundError:  # The data of its stack is gone, and no start can use it.
        remove(Path(owner.folder))
    except OSError:
        return False
    return True


def _used() -> str:
    """Return the directories and arguments of all processes that this user may look at."""
    words: list[str] = []
    for process in psutil.process_iter():
        for look in (process.cwd, process.cmdline):
            with suppress(psutil.Error):
                answer = look()
                words += [answer] if isinstance(answer, str) else answer
    return "\n".join(words)


def _inode(folder: Path) -> tuple[int, int, int]:
    at = folder.lstat()
    return at.st_dev, at.st_ino, at.st_uid


def _namespace() -> str:
    return os.readlink(NAMESPACE)


def _records() -> Path:
    return Path(tempfile.gettempdir()) / f"{PREFIX}owners-{os.geteuid()}"


def _record_of(folder: Path) -> Path:
    return _records() / f"{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}.json"
