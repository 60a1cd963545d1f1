"""Files of secrets: written whole or not at all, with their mode from the start."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def create(path: Path, text: str, mode: int) -> bool:
    """Create the file unless there is one; return whether it was created.

    Whole or not at all: two starts at once agree on the first one's.
    """
    if path.exists():
        return False
    half = _write(path, text, mode)
    try:
        os.link(half, path)
    except FileExistsError:
        return False
    finally:
        half.unlink()
    return True


def replace(path: Path, text: str, mode: int) -> None:
    """Put the text in the place of the file's."""
    _write(path, text, mode).replace(path)


def _write(path: Path, text: str, mode: int) -> Path:
    half = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as out:
        os.fchmod(out.fileno(), mode)
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    return half
