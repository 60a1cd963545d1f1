"""Values of secrets from an order to the start of its step: files in memory, never on a disk."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Mapping

from berth_agent import file_names
from berth_agent.linux import files, json_text
from berth_agent.node.config import Config

SHARED = "/dev/shm"
"""In memory on every Linux machine and in containers."""
IN_MEMORY = ("tmpfs", "ramfs")


class SecretFolder:
    """A folder of the agent's own on a file system in memory; used under the agent's lock.

    It is made for the first worker that has secrets.
    """

    def __init__(self, config: Config) -> None:
        self._folder = _choose(config)

    def path_of(self, allocation: str) -> str:
        return f"{self._folder}/{allocation}.json"

    def keep(self, allocation: str, values: Mapping[str, str]) -> str:
        """Keep the values until their step takes them; return why that is not possible."""
        if not self._folder:
            return f"{SHARED}: not in memory; a tmpfs is allowed"
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            if not _is_own(self._folder):
                return f"{self._folder}: not a folder of user {os.geteuid()} with mode 700"
            content = json_text.encode(dict(values)).encode()
            files.write_atomic(self.path_of(allocation), content)
        except OSError as error:
            return f"{self._folder}: {error.strerror}"
        return ""

    def sweep(self, kept: Collection[str]) -> None:
        """Remove the files of workers that are gone. Raises OSError."""
        if not self._folder or not os.path.isdir(self._folder) or not _is_own(self._folder):
            return
        for name in os.listdir(self._folder):
            path = f"{self._folder}/{name}"
            if path not in kept:
                os.unlink(path)


def is_in_memory(folder: str) -> bool:
    """Return whether what is written below the folder stays in memory."""
    device = os.stat(folder).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
        for line in mounts:
            mount, _, source = line.partition(" - ")
            if mount.split(" ", 3)[2] == number:
                return source.split(" ", 1)[0] in IN_MEMORY
    return False


def _choose(config: Config) -> str:
    """Return the folder: below the run folder if that is in memory; empty where none is."""
    if is_in_memory(config.run):
        return f"{config.run}/{file_names.SECRETS}"
    mark = hashlib.sha256(config.state.encode()).hexdigest()[:12]
    if os.path.isdir(SHARED) and is_in_memory(SHARED):
        return f"{SHARED}/berth-agent-{os.geteuid()}-{mark}"
    return ""


def _is_own(folder: str) -> bool:
    """Return whether it is closed to others: any user may make a folder, or a link, of its name
    first.
    """
    status = os.lstat(folder)
    is_closed = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
    return is_closed and status.st_uid == os.geteuid()
