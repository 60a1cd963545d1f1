"""Directories of ended workers: the newest are kept for inspection."""

from __future__ import annotations

import shutil
from collections import deque
from pathlib import Path

KEEP = 200


class WorkerFolders:
    """Keeps the newest `KEEP` directories, also those of an earlier executor."""

    def __init__(self, work: Path) -> None:
        work.mkdir(parents=True, exist_ok=True)
        folders = [path for path in work.iterdir() if path.is_dir() and not path.is_symlink()]
        self._left = deque(sorted(folders, key=lambda path: path.stat().st_mtime_ns))
        self._prune()

    def add(self, home: Path) -> None:
        """Add the directory of a released worker."""
        self._left.append(home)
        self._prune()

    def reuse(self, home: Path) -> None:
        """Keep a directory that is in use again."""
        if home in self._left:
            self._left.remove(home)

    def _prune(self) -> None:
        while len(self._left) > KEEP:
            shutil.rmtree(self._left.popleft(), ignore_errors=True)
