"""Logs of a stack's processes: their last lines since the present start."""

from __future__ import annotations

import json
from pathlib import Path

STARTS = "starts.json"
"""File of the size that each log had at the present start."""
LAST_LINES = 5
LAST_BYTES = 4000


def path_of(data_dir: Path, name: str) -> Path:
    """Return the log file of a process."""
    return data_dir / "logs" / f"{name}.log"


def mark_start(data_dir: Path) -> None:
    """Note how long each log is, so that lines of earlier starts are not taken for new ones."""
    folder = data_dir / "logs"
    sizes = {path.stem: path.stat().st_size for path in folder.glob("*.log")}
    (folder / STARTS).write_text(json.dumps(sizes))


def last_log_lines(data_dir: Path, name: str) -> str:
    """Return the last lines of a process's log since the start of the stack, as one line."""
    path = path_of(data_dir, name)
    raw = path.read_bytes() if path.exists() else b""
    begin = _size_at_start(data_dir, name)
    # A shorter file has been rotated since.
    new = raw[begin:] if begin <= len(raw) else raw
    lines = [_shown(line) for line in new[-LAST_BYTES:].decode(errors="replace").splitlines()]
    return " | ".join([line for line in lines if line][-LAST_LINES:]) or "no output"


def _size_at_start(data_dir: Path, name: str) -> int:
    path = data_dir / "logs" / STARTS
    return int(json.loads(path.read_text()).get(name, 0)) if path.exists() else 0


def _shown(line: str) -> str:
    """Return level, message and error of a line of a service, another line as it is."""
    try:
        entry = json.loads(line)
    except ValueError:
        return line.strip()
    if not isinstance(entry, dict) or "message" not in entry:
        return line.strip()
    error = str(entry.get("error") or "").strip().splitlines()
    parts = [f"{entry.get('level')}: {entry['message']}", *error[-1:]]
    return ": ".join(parts)
