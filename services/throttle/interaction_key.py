"""Issues ids of interactions, with the key of a file, else one that is kept in the folder."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path

from services.throttle.core.interaction_ids import is_issued, issue_id, parse_key

NAME = "interaction_key"


class InteractionIds:
    """Issues ids, and knows those that it issued."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def issue(self, tenant: str, endpoint: str) -> str:
        return issue_id(self._key, tenant, endpoint, _now_ms(), secrets.token_hex(8))

    def is_issued(self, tenant: str, endpoint: str, interaction: str) -> bool:
        return is_issued(self._key, tenant, endpoint, interaction, _now_ms())


def read_interaction_key(file: Path | None, folder: Path) -> bytes:
    """Return the key; several processes accept each other's ids only if one is given.

    Raises ValueError for a file that cannot be read or whose key is too short.
    """
    try:
        path = file or _kept_key(folder)
        return parse_key(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"interaction_key: {file or folder / NAME}: {error}") from None


def _kept_key(folder: Path) -> Path:
    """Return the file of the folder, with a new key if there is none."""
    path = folder / NAME
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        text = secrets.token_urlsafe(32)
        fresh = folder / f"{NAME}.{secrets.token_hex(4)}"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        fresh.rename(path)
    return path


def _now_ms() -> int:
    return int(1000 * time.time())
