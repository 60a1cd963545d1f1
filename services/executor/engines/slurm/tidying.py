"""Removes the folders of gangs that ended long ago, which nothing reads any more."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from services.executor.core.engines.gangs import Identity
from services.executor.core.engines.noted import folder_name

EVERY_S = 3600.0
"""Time between two rounds: a gang is over at both before its folder goes; its output is read."""

log = logging.getLogger(__name__)


class Tidying:
    """`roots` are folders with a folder for each gang; other pools may have theirs there too."""

    def __init__(self, roots: Collection[Path], keep_s: float) -> None:
        self._roots = roots
        self._keep_s = keep_s
        self._prefix = ""
        """Beginning of the names of this pool's folders; empty before its first gang is seen."""
        self._living: frozenset[str] = frozenset()
        self._over: frozenset[Path] = frozenset()
        """Folders of gangs that were over at the last round."""

    def note_living(self, identities: Collection[str]) -> None:
        """Take the gangs that the ledger has not released."""
        self._living = frozenset(map(folder_name, identities))
        for text in identities:
            if identity := Identity.parse(text):
                self._prefix = folder_name(identity._replace(place="").text)
                return

    async def run(self) -> None:
        """Tidy again and again until cancelled."""
        while True:
            await asyncio.to_thread(self.tidy, time.time())
            await asyncio.sleep(EVERY_S)

    def tidy(self, now_s: float) -> None:
        """Remove what was over at the last round already, and is old enough; go on after errors."""
        over = frozenset(self._ended(now_s))
        errors = []
        for folder in over & self._over:
            try:
                # It follows no link, whatever the tenant puts there meanwhile.
                shutil.rmtree(folder)
            except (OSError, RecursionError) as error:
                errors.append(str(error))
        if errors:
            log.warning("not removed", extra={"folders": len(errors), "reason": errors[0]})
        self._over = over

    def _ended(self, now_s: float) -> Iterator[Path]:
        if not self._prefix:
            return
        for root in self._roots:
            with suppress(OSError), os.scandir(root) as entries:
                for entry in entries:
                    is_own = entry.name.startswith(self._prefix)
                    if not is_own or entry.name in self._living:
                        continue
                    changed_s = entry.stat(follow_symlinks=False).st_mtime
                    if now_s - changed_s >= self._keep_s:
                        yield root / entry.name
