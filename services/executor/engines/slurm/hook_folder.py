"""The folder in which the scripts of Slurm leave their notes; `infra/slurm/hooks` writes there."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterable, Set
from contextlib import suppress
from pathlib import Path

from services.executor.core.engines.noted import folder_name
from services.executor.core.slurm.hooks import HookNote, notes_of
from services.executor.engines.noted_folder import NOTE_BYTES, reachable, refuse_writers
from services.executor.engines.tenant_files import read_file

BELL = "bell"
"""Touched after each note."""
LISTEN_S = 0.1
QUIET_S = 0.5
"""Least time between two rings: each leads to a look at the whole cluster."""
MOST_NOTES = 100_000


class HookFolder:
    """`uids` are those of the users of Berth's jobs: notes of other users' jobs count nothing."""

    def __init__(self, root: Path, uids: Set[int]) -> None:
        self._root = root
        self._uids = uids

    def notes(self, identities: Iterable[str]) -> dict[str, list[HookNote]]:
        """Return the notes of each gang. Raises EngineAway, also where others may write them."""
        with reachable(self._root):
            refuse_writers(self._root, stat.S_IWGRP | stat.S_IWOTH)
            return {name: notes_of(self._files(name), self._uids) for name in identities}

    def _files(self, identity: str) -> dict[str, bytes]:
        folder = self._root / folder_name(identity)
        files = {}
        with suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry, _ in zip(entries, range(MOST_NOTES), strict=False):
                files[entry.name] = read_file(folder / entry.name, NOTE_BYTES)
        return files

    async def listen(self, ring: Callable[[], None]) -> None:
        """Ring after new notes, until cancelled."""
        before = await asyncio.to_thread(self._rung)
        while True:
            await asyncio.sleep(LISTEN_S)
            now = await asyncio.to_thread(self._rung)
            if now != before:
                before = now
                ring()
                await asyncio.sleep(QUIET_S)

    def _rung(self) -> int:
        """Return when the bell was touched last, ns; 0 where there is none."""
        try:
            return (self._root / BELL).stat().st_mtime_ns
        except OSError:
            return 0
