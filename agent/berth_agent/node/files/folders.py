"""Folders of allocations and private directories: present ones, and those of ended workers."""

from __future__ import annotations

import os
from pathlib import Path

from berth_agent import file_names
from berth_agent.linux import disk, files
from berth_agent.node.config import Config
from berth_agent.node.files.allocation import (
    AllocationFolder,
    folder_name,
    move_to_ended,
    read_folder,
)
from berth_agent.node.files.folder_access import make_passable
from berth_agent.node.files.secret_folder import SecretFolder


class Folders:
    """The layout of the state folder; made when the agent starts. Raises OSError."""

    def __init__(self, config: Config) -> None:
        self._allocations = f"{config.state}/{file_names.ALLOCATIONS}"
        self._ended = f"{config.state}/{file_names.ENDED}"
        self._work = config.work_folder
        # Workers of other users enter what is theirs below these, and can list none of them.
        for folder in (
            config.state,
            config.run,
            self._work,
            f"{config.run}/{file_names.TELEMETRY}",
        ):
            make_passable(folder)
        for folder in (self._allocations, self._ended):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        self.secrets = SecretFolder(config)

    def path_of(self, allocation_id: str) -> str:
        return f"{self._allocations}/{folder_name(allocation_id)}"

    def read_all(self) -> list[AllocationFolder]:
        """Return the allocations that an earlier agent left."""
        present = (read_folder(str(folder)) for folder in sorted(Path(self._allocations).iterdir()))
        return [allocation for allocation in present if allocation is not None]

    def retire_unordered(self) -> None:
        """Move what has no order, and whose step does not live: it has ended."""
        for folder in sorted(Path(self._allocations).iterdir()):
            alive = folder / file_names.ALIVE
            lives = alive.exists() and files.is_locked(str(alive))
            if not lives and read_folder(str(folder)) is None:
                move_to_ended(str(folder), self._ended)

    def make_work(self, allocation: AllocationFolder, name: str, owner: tuple[int, int]) -> str:
        """Make the private directory of a worker, empty unless it was begun. Raises OSError."""
        folder = f"{self._work}/{name}"
        if files.read_bytes(allocation.path(file_names.WORK)) is None:
            disk.remove(folder)
        files.write_atomic(allocation.path(file_names.WORK), name.encode())
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if owner != (os.geteuid(), os.getegid()):
            os.chown(folder, *owner)
        return folder

    def retire(self, allocation: AllocationFolder) -> None:
        """Keep what remains of an ended worker for a while; only renames. Raises OSError."""
        allocation.retire(self._ended)

    def ended(self) -> list[Path]:
        """Return the folders of ended workers. Raises OSError."""
        return sorted(Path(self._ended).iterdir())

    def held_images(self) -> set[str]:
        """Return the images of present workers. Raises OSError."""
        present = (read_folder(str(folder)) for folder in Path(self._allocations).iterdir())
        return {allocation.launch.image for allocation in present if allocation} - {""}

    def held_work(self) -> set[str]:
        """Return the names of the private directories of present workers. Raises OSError."""
        return {work_name(str(folder)) for folder in Path(self._allocations).iterdir()}


def work_name(folder: str) -> str:
    """Return the name of the private directory of a worker, empty if it has none."""
    name = (files.read_bytes(f"{folder}/{file_names.WORK}") or b"").decode(errors="replace")
    return "" if "/" in name or name in (".", "..") else name
