"""Directories of workers that are gone: kept for people to look at, but not for ever."""

from __future__ import annotations

import shutil
from collections import deque
from pathlib import Path

KEEP = 200


class WorkerFolders:
    """The newest `KEEP` stay, also those of an executor before this one."""

    def __init__(self, work: Path) -> None:
        work.mkdir(parents=True, exist_ok=True)
        found = [path for path in work.iterdir() if path.is_dir() and not path.is_symlink()]
        self._left = deque(sorted(found, key=lambda path: path.stat().st_mtime_ns))
        self._prune()

    def left(self, home: Path) -> None:
        """Its worker is released."""
        self._left.append(home)
        self._prune()

    def taken(self, home: Path) -> None:
        """A directory of that name is in use again."""
        if home in self._left:
            self._left.remove(home)

    def _prune(self) -> None:
        while len(self._left) > KEEP:
            shutil.rmtree(self._left.popleft(), ignore_errors=True)
