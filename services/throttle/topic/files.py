"""The folder of answers that are too large for a record."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

from shared.contracts.llm import StoredAnswer

REMOVE_EVERY_S = 600.0

log = logging.getLogger(__name__)


class AnswerFiles:
    """Writes each answer to `TENANT/SHA256.json`, whole or not at all, and removes old ones."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def keep_for(self, kept_s: float) -> None:
        """Remove files once they are older than this, until cancelled."""
        while True:
            try:
                await asyncio.to_thread(self.remove_before, time.time() - kept_s)
            except OSError as error:
                log.warning("old answers not removed", extra={"reason": str(error.strerror)})
            await asyncio.sleep(REMOVE_EVERY_S)

    def remove_before(self, at_s: float) -> int:
        """Remove files that were written before a time, unix s; return their number.

        Another process may remove the same ones.
        """
        removed = 0
        for path in self._folder.glob("*/*"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < at_s:
                    path.unlink()
                    removed += 1
        return removed

    async def store(self, tenant: str, body: bytes) -> StoredAnswer:
        """Store an answer under its SHA-256. Raises OSError."""
        return await asyncio.to_thread(self._store, tenant, body)

    def _store(self, tenant: str, body: bytes) -> StoredAnswer:
        digest = hashlib.sha256(body).hexdigest()
        name = f"{tenant}/{digest}.json"
        path = self._folder / name
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        half = path.with_name(f".{digest}.{secrets.token_hex(6)}")
        try:
            with half.open("xb") as out:
                out.write(body)
                out.flush()
                os.fsync(out.fileno())
            half.replace(path)
        finally:
            half.unlink(missing_ok=True)
        return StoredAnswer(path=name, sha256=digest, bytes=len(body))
