"""The folder of answers that are too large for a record."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from pathlib import Path

from shared.contracts.llm import StoredAnswer


class AnswerFiles:
    """Writes each answer to `TENANT/SHA256.json`, whole or not at all; it removes none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def store(self, tenant: str, body: bytes) -> StoredAnswer:
        """Raises OSError."""
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
