"""Durable files and locks: what a crash or a full disk may leave half-done is never read."""

from __future__ import annotations

import errno
import fcntl
import os

from berth_agent.linux import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is not imported: a step loads little
    from typing import Any

MAX_BYTES = 64 * 1024 * 1024
FULL = (errno.ENOSPC, errno.EDQUOT)


def write_durable(path: str, content: bytes, mode: int = 0o600) -> None:
    """Replace a file by rename; it is on disk when this returns. Raises OSError."""
    write_atomic(path, content, mode, sync=True)
    sync_folder(os.path.dirname(path))


def write_atomic(path: str, content: bytes, mode: int = 0o600, *, sync: bool = False) -> None:
    """Replace a file by rename: readers see the old or the new one.

    Raises OSError, which names the file, also where a descriptor was written.
    """
    fresh = f"{path}.new"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        if sync:
            os.fsync(descriptor)
    except OSError as error:
        error.filename = path
        raise
    finally:
        os.close(descriptor)
    os.rename(fresh, path)


def sync_folder(folder: str) -> None:
    """Make renames and removals in a folder durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: str, value: object) -> None:
    """Write a JSON document durably. Raises OSError."""
    write_durable(path, json_text.encode(value).encode())


def replace_json(path: str, value: object) -> None:
    """Write a JSON document that no reboot has to leave behind. Raises OSError."""
    write_atomic(path, json_text.encode(value).encode())


def read_bytes(path: str) -> bytes | None:
    """Return the content of a file, None if there is none. Raises OSError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        chunks = []
        while chunk := os.read(descriptor, MAX_BYTES):
            chunks.append(chunk)
        return b"".join(chunks)
    finally:
        os.close(descriptor)


def read_json(path: str) -> Any:
    """Return a JSON document, None if there is none. Raises OSError, ValueError."""
    content = read_bytes(path)
    try:
        return None if content is None else json_text.decode(content.decode())
    except ValueError as error:
        raise ValueError(f"{path}: damaged: {error}") from None


def lock(path: str, *, wait: bool) -> int | None:
    """Return a descriptor that holds the lock, None if another process does. Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def is_locked(path: str) -> bool:
    """Return whether another process holds the lock; none does in a folder that is not there.

    Raises OSError.
    """
    try:
        descriptor = lock(path, wait=False)
    except FileNotFoundError:
        return False
    if descriptor is None:
        return True
    os.close(descriptor)
    return False
