"""Folders of allocations and private directories: present ones, and the newest ended ones."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from berth_agent.linux import files
from berth_agent.node.allocation import AllocationFolder, folder_name, read_folder
from berth_agent.node.config import Config
from berth_agent.node.passage import make_passable

WORK_FILE = "work"
"""Names the private directory of the worker."""


class Folders:
    """The layout of the state folder; made when the agent starts. Raises OSError."""

    def __init__(self, config: Config) -> None:
        self._keep = config.keep_ended
        self._allocations = f"{config.state}/allocations"
        self._ended = f"{config.state}/ended"
        self._work = config.work_folder
        # Workers of other users enter what is theirs below these, and can list none of them.
        for folder in (config.state, config.run, self._work, f"{config.run}/telemetry"):
            make_passable(folder)
        for folder in (self._allocations, self._ended):
            os.makedirs(folder, mode=0o700, exist_ok=True)

    def path_of(self, allocation_id: str) -> str:
        return f"{self._allocations}/{folder_name(allocation_id)}"

    def read_all(self) -> list[AllocationFolder]:
        """Return the allocations that an earlier agent left; folders without order are removed."""
        allocations = []
        for folder in sorted(Path(self._allocations).iterdir()):
            allocation = read_folder(str(folder))
            if allocation is None:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                allocations.append(allocation)
        return allocations

    def make_work(self, allocation: AllocationFolder, name: str, owner: tuple[int, int]) -> str:
        """Make the private directory of a worker, empty unless it was begun. Raises OSError."""
        folder = f"{self._work}/{name}"
        if files.read_bytes(allocation.path(WORK_FILE)) is None:
            shutil.rmtree(folder, ignore_errors=True)
        files.write_atomic(allocation.path(WORK_FILE), name.encode())
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if owner != (os.geteuid(), os.getegid()):
            os.chown(folder, *owner)
        return folder

    def retire(self, allocation: AllocationFolder) -> None:
        """Keep what remains of an ended worker for a while. Raises OSError."""
        allocation.retire(self._ended)
        entries = sorted(Path(self._ended).iterdir(), key=lambda path: path.lstat().st_mtime_ns)
        for entry in entries[: max(0, len(entries) - self._keep)]:
            self._remove(entry)

    def _remove(self, ended: Path) -> None:
        """Remove the folder of an ended worker, and its private directory."""
        name = (files.read_bytes(str(ended / WORK_FILE)) or b"").decode(errors="replace")
        if name and "/" not in name and name not in (".", ".."):
            shutil.rmtree(f"{self._work}/{name}", ignore_errors=True)
        shutil.rmtree(ended, ignore_errors=True)
