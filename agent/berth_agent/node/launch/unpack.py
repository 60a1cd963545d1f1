"""Unpacks an archive on standard input as the user of a worker, in a process of its own.

The archive is a tenant's: what it unpacks belongs to the job's user, counts in its control groups,
and stays within its folder.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import sys
import tarfile
from contextlib import suppress
from typing import BinaryIO

from berth_agent.linux import cgroups
from berth_agent.step.child import become

FULL, UNUSABLE, FAILED = 3, 4, 5
"""Exit codes: no space, an archive that no node can unpack, an error of this node."""
MOST_FILES = 200_000
"""Files, folders and links."""
MOST_NAME_CHARS = 4000
MOST_MEMORY_BYTES = 512 * 2**20
"""Address space of the process: headers are read whole."""
CHUNK_BYTES = 2**20
SHOWN_CHARS = 200
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Unusable(Exception):
    """The archive has too much, or what a bundle may not have."""


class Unpacking:
    """Files and folders are made first, below folders alone, so that none is reached by a link."""

    def __init__(self, root: int, most_bytes: int) -> None:
        """`root` is the descriptor of the folder."""
        self._root = root
        self._most_bytes = most_bytes
        self._count = self._size = 0
        self._links: list[tuple[list[str], str]] = []

    def unpack(self, source: BinaryIO) -> None:
        """Unpack an archive. Raises Unusable, OSError, and what `tarfile` raises of it."""
        with tarfile.open(fileobj=source, mode="r|gz") as archive:
            for member in archive:
                self._add(archive, member)
        for parts, target in self._links:
            folder = self._open(parts[:-1])
            try:
                _unlink(parts[-1], folder)
                os.symlink(target, parts[-1], dir_fd=folder)
            finally:
                os.close(folder)

    def _add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        parts = _parts(member.name)
        if member.isdir():
            os.close(self._open(parts))
            return
        self._add_count(member.size)
        if member.issym() and parts:
            self._links.append((parts, _target(member, len(parts) - 1)))
        elif member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and parts:
            self._write(archive, member, parts)
        else:
            raise Unusable(f"{member.name}: not a file, a folder or a symbolic link")

    def _write(self, archive: tarfile.TarFile, member: tarfile.TarInfo, parts: list[str]) -> None:
        """Write a file, in place of that of a start that was interrupted."""
        content = archive.extractfile(member)
        assert content is not None, "of a file"
        with open(self._create(parts, member.mode & 0o755 | 0o600), "wb") as file:
            shutil.copyfileobj(content, file, CHUNK_BYTES)
            if file.tell() != member.size:
                raise Unusable(f"{member.name}: the archive ends within it")

    def _create(self, parts: list[str], mode: int) -> int:
        folder = self._open(parts[:-1])
        try:
            _unlink(parts[-1], folder)
            return os.open(parts[-1], NEW_FILE, mode, dir_fd=folder)
        finally:
            os.close(folder)

    def _open(self, parts: list[str]) -> int:
        """Return the descriptor of a folder, which is made with those above it."""
        folder = os.dup(self._root)
        for part in parts:
            above = folder
            try:
                try:
                    folder = os.open(part, FOLDER, dir_fd=above)
                except FileNotFoundError:
                    os.mkdir(part, dir_fd=above)
                    self._add_count()
                    folder = os.open(part, FOLDER, dir_fd=above)
            finally:
                os.close(above)
        return folder

    def _add_count(self, size_bytes: int = 0) -> None:
        self._count += 1
        self._size += size_bytes
        if self._count > MOST_FILES or self._size > self._most_bytes:
            raise Unusable(f"more than {MOST_FILES} files, or {self._most_bytes} bytes")


def _parts(name: str) -> list[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name or len(name) > MOST_NAME_CHARS:
        rule = f"a path of {MOST_NAME_CHARS} characters at most below the folder is allowed"
        raise Unusable(f"{name[:SHOWN_CHARS]}: {rule}")
    return parts


def _target(member: tarfile.TarInfo, depth: int) -> str:
    """Return where a link leads, which is within the folder: only its beginning goes up."""
    target = os.path.normpath(member.linkname)
    if target.startswith("/") or target.split("/").count("..") > depth or "\0" in target:
        raise Unusable(f"{member.name}: a link out of the folder")
    return target


def _unlink(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def main() -> int:
    """Return an exit code; the last line of the errors says why."""
    request = json.loads(sys.argv[1])
    try:
        cgroups.join(request["cgroups"])
        become(request["uid"], request["gid"], request["groups"], request["umask"])
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
        root = os.open(request["folder"], FOLDER)
    except (OSError, ValueError) as error:
        return _fail(FAILED, error)
    try:
        Unpacking(root, request["most_bytes"]).unpack(sys.stdin.buffer)
        while sys.stdin.buffer.read(CHUNK_BYTES):
            continue
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _fail(FULL, error)
        return _fail(FAILED if error.errno == errno.EIO else UNUSABLE, error)
    except MemoryError:
        rule = f"{MOST_MEMORY_BYTES} bytes of memory are allowed"
        return _fail(UNUSABLE, Unusable(f"its headers take too much: {rule}"))
    except Exception as error:
        return _fail(UNUSABLE, error)
    return 0


def _fail(code: int, error: Exception) -> int:
    text = str(error) or type(error).__name__
    shown = " ".join(text.split())[:SHOWN_CHARS]
    sys.stderr.write(shown.encode("ascii", "backslashreplace").decode() + "\n")
    return code
