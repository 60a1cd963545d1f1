"""Requests that a user made of an API server, from its audit log."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path


class AuditLog:
    """The log of one API server, which goes on while it is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def take(self, user: str) -> Counter[str]:
        """Return what a user requested since the last call, each by `verb resource`."""
        with self._path.open("rb") as file:
            file.seek(self._read)
            lines = file.read()
        whole = lines[: lines.rfind(b"\n") + 1]
        self._read += len(whole)
        return counted(whole, user)


def counted(lines: bytes, user: str) -> Counter[str]:
    """Return the requests of a user among lines of an audit log, by `verb resource`."""
    counts = Counter[str]()
    for line in lines.splitlines():
        event = json.loads(line)
        if event["user"].get("username") != user:
            continue
        target = event.get("objectRef") or {}
        kind = "/".join(filter(None, (target.get("resource"), target.get("subresource"))))
        counts[f"{event['verb']} {kind or event['requestURI'].partition('?')[0]}"] += 1
    return counts
