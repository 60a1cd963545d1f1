"""Folders of a job on its node: what its workers see as /tmp, /var/tmp and /dev/shm.

Workers of one attempt share them, as libraries of training expect of processes on one machine.
"""

from __future__ import annotations

import os
import secrets
import stat
import threading
from pathlib import Path

from berth_agent import file_names
from berth_agent.linux import disk, files
from berth_agent.node.config import Config
from berth_agent.node.files.allocation import AllocationFolder
from berth_agent.node.system.machine import REPLACED

*ON_DISK, MEMORY = REPLACED
NOTE = "memory"
"""File that names the folder in memory."""
GONE = ".gone"
"""Ends the name of a folder that is being removed."""


class Scratch:
    """Used by threads: one for each launch, and one that removes what is not needed any more."""

    def __init__(self, config: Config) -> None:
        self._folder = f"{config.work_folder}/{file_names.SCRATCH}"
        self._hidden = hidden_folders(config)
        self._allocations = f"{config.state}/{file_names.ALLOCATIONS}"
        self._lock = threading.Lock()

    def make(
        self, allocation: AllocationFolder, name: str, owner: tuple[int, int]
    ) -> list[list[str]]:
        """Return the folders and where they are seen; the first worker makes them.

        Raises OSError.
        """
        files.write_atomic(allocation.path(file_names.SCRATCH_NAME), name.encode())
        folder = f"{self._folder}/{name}"
        with self._lock:
            for path in (self._folder, folder):
                os.makedirs(path, mode=0o700, exist_ok=True)
            # Where workers are the agent's own user, modes keep nothing from them.
            hidden = self._hidden if owner[0] == os.geteuid() else []
            replaced = [*hidden, *ON_DISK]
            mounts = [[f"{folder}/{path[1:].replace('/', '-')}", path] for path in replaced]
            for path, _ in mounts:
                _make(path, owner)
            return [*mounts, [_make_in_memory(folder, owner), MEMORY]]

    def make_store(self, name: str, rank: int) -> str:
        """Return a folder for the container of a worker, empty, which root alone enters.

        Raises OSError.
        """
        path = f"{self._folder}/{name}/container.{rank}"
        disk.remove(path)
        os.mkdir(path, 0o700)
        return path

    def clean(self) -> None:
        """Remove the folders of jobs that have no worker here any more. Raises OSError."""
        if not os.path.isdir(self._folder):
            return
        with self._lock:
            held = self._held()
            for entry in os.listdir(self._folder):
                if entry not in held and not entry.endswith(GONE):
                    os.rename(f"{self._folder}/{entry}", f"{self._folder}/{entry}{GONE}")
        for folder in Path(self._folder).glob(f"*{GONE}"):
            # The folder, which names the one in memory, goes last.
            if memory := _noted(str(folder)):
                disk.remove(memory)
            disk.remove(str(folder))

    def _held(self) -> set[str]:
        """Return the names that present workers have noted."""
        notes = (folder / file_names.SCRATCH_NAME for folder in Path(self._allocations).iterdir())
        return {(files.read_bytes(str(note)) or b"").decode(errors="replace") for note in notes}


def hidden_folders(config: Config) -> list[str]:
    """Return the agent's folders that no worker is to see, each once with what is below it."""
    folders = sorted({config.state, config.run, config.work_folder})
    hidden: list[str] = []
    for folder in folders:
        if not any(folder.startswith(f"{above}/") for above in (*REPLACED, *hidden)):
            hidden.append(folder)
    return hidden


def _make(path: str, owner: tuple[int, int]) -> None:
    if not os.path.isdir(path):
        os.mkdir(path, 0o700)
        os.chown(path, *owner)


def _make_in_memory(folder: str, owner: tuple[int, int]) -> str:
    """Return the noted folder in memory, or a new one: a reboot has removed the earlier one.

    Anybody may make a folder in /dev/shm, so that only one that is the owner's is used.
    """
    path = _noted(folder)
    if path and _is_owned(path, owner[0]):
        return path
    path = f"{MEMORY}/berth-{secrets.token_hex(16)}"
    files.write_atomic(f"{folder}/{NOTE}", path.encode())
    os.mkdir(path, 0o700)
    os.chown(path, *owner)
    return path


def _noted(folder: str) -> str:
    return (files.read_bytes(f"{folder}/{NOTE}") or b"").decode(errors="replace")


def _is_owned(path: str, uid: int) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == uid
