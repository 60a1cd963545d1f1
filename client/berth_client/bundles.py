"""Packs a folder into a bundle: an archive in parts, which their contents name.

Equal files make equal bundles, whatever their times and owners, so that nothing is sent twice.
"""

from __future__ import annotations

import fnmatch
import gzip
import hashlib
import os
import stat
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from berth_client import calls
from berth_client.calls import Call
from berth_client.errors import BerthError
from berth_client.following import Report

PART_BYTES = 1024 * 1024
MAX_PARTS = 1024
IGNORE_FILE = ".berthignore"
IGNORED = (".berth", ".git", ".hg", ".mypy_cache", ".pytest_cache", ".svn", ".venv", "__pycache__")
"""Names that are left out, as those are that match a line of `IGNORE_FILE`.

A stack keeps its keys and sockets in `.berth` of the folder that it was started in.
"""
COMPRESSION = 6
REPORTED = 16
"""Parts between two lines about the rest."""


class BadFolder(ValueError):
    """The folder cannot be packed; the text names the file and the rule."""


@dataclass(frozen=True)
class Bundle:
    """A packed folder. Its parts can be read while `packed` is open."""

    parts: tuple[str, ...]
    """SHA-256 of each part, in order."""
    size_bytes: int
    files: int
    archive: IO[bytes]

    @property
    def manifest(self) -> Mapping[str, object]:
        return {"parts": list(self.parts), "size_bytes": self.size_bytes}

    def part(self, name: str) -> bytes:
        """Return the bytes of a part."""
        self.archive.seek(self.parts.index(name) * PART_BYTES)
        return self.archive.read(PART_BYTES)


@contextmanager
def packed(folder: Path) -> Iterator[Bundle]:
    """Pack a folder into a temporary file. Raises BadFolder."""
    if not folder.is_dir():
        raise BadFolder(f"{folder}: not a folder")
    with tempfile.TemporaryFile() as archive:
        try:
            files = _write(folder, archive)
        except OSError as error:
            raise BadFolder(f"{error.filename or folder}: {error.strerror}") from None
        size = archive.tell()
        if size > MAX_PARTS * PART_BYTES:
            rule = f"{MAX_PARTS} MiB is allowed; leave files out by a {IGNORE_FILE}"
            raise BadFolder(f"{folder}: {size / 2**20:.0f} MiB compressed; {rule}")
        yield Bundle(tuple(_names(archive)), size, files, archive)


class Upload:
    """The requests that store a bundle: its manifest, the parts that are missing, and it again."""

    def __init__(self, packed: Bundle, tenant: str | None, report: Report) -> None:
        self._packed = packed
        self._tenant = tenant
        self._report = report
        self._missing: list[str] | None = None
        self._is_again = False
        self.bundle = ""
        """Its name, once it is stored."""

    def following(self) -> Call[Any] | None:
        """Return the next request, None once the bundle is stored."""
        if self.bundle:
            return None
        if not self._missing:
            self._is_again = self._missing is not None
            return calls.bundle(self._packed.manifest, self._tenant)
        if len(self._missing) % REPORTED == 0:
            self._report(f"uploading: {len(self._missing)} of {len(self._packed.parts)} MiB left")
        return calls.bundle_part(
            self._missing[-1], self._packed.part(self._missing[-1]), self._tenant
        )

    def note(self, answer: Mapping[str, Any]) -> None:
        """Take the answer of the last request. Raises BerthError for parts that were lost."""
        if "missing" not in answer:
            assert self._missing
            self._missing.pop()
        elif not answer["missing"]:
            files = f"{self._packed.files} file{'' if self._packed.files == 1 else 's'}"
            self._report(f"uploaded {files}, {self._packed.size_bytes / 1024:.0f} KiB compressed")
            self.bundle = answer["bundle"]
        elif self._is_again:
            raise BerthError(503, "bundles_unreachable", "parts that were sent are missing")
        else:
            self._missing = answer["missing"][::-1]


@contextmanager
def uploading(folder: Path, tenant: str | None, report: Report) -> Iterator[Upload]:
    """Pack a folder, for its upload; `report` gets lines about it. Raises BadFolder."""
    with packed(folder) as bundle:
        yield Upload(bundle, tenant, report)


def _write(folder: Path, archive: IO[bytes]) -> int:
    """Write the archive; return the number of files."""
    count = 0
    with (
        gzip.GzipFile("", "wb", COMPRESSION, archive, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path, name in _walk(folder):
            count += _add(tar, path, name)
    return count


def _walk(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield path and name of what is not left out, in order; folders before their files."""
    patterns = _patterns(folder)
    waiting = [""]
    while waiting:
        below = waiting.pop()
        for entry in sorted(os.scandir(folder / below), key=lambda item: item.name):
            name = f"{below}/{entry.name}".lstrip("/")
            is_folder = entry.is_dir(follow_symlinks=False)
            if _is_ignored(name, is_folder, patterns):
                continue
            yield entry.path, name
            if is_folder:
                waiting.append(name)


def _patterns(folder: Path) -> list[str]:
    try:
        text = (folder / IGNORE_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except UnicodeDecodeError:
        raise BadFolder(f"{folder / IGNORE_FILE}: not UTF-8") from None
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _is_ignored(name: str, is_folder: bool, patterns: list[str]) -> bool:
    """Return whether a path is left out: a pattern with a slash is for the whole path, else for a
    name.
    """
    last = name.rpartition("/")[2]
    if last in IGNORED:
        return True
    for pattern in patterns:
        if pattern.endswith("/") and not is_folder:
            continue
        subject_pattern = pattern.rstrip("/")
        subject = name if "/" in subject_pattern else last
        if fnmatch.fnmatchcase(subject, subject_pattern.lstrip("/")):
            return True
    return False


def _add(tar: tarfile.TarFile, path: str, name: str) -> int:
    """Add a file, a folder or a link, without times and owners; return the files that were added.

    Raises BadFolder for others, and for a link that leaves the folder.
    """
    status = os.lstat(path)
    entry = tarfile.TarInfo(name)
    entry.mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
    if stat.S_ISDIR(status.st_mode):
        entry.type = tarfile.DIRTYPE
        tar.addfile(entry)
        return 0
    if stat.S_ISLNK(status.st_mode):
        entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(path)
        target = os.path.normpath(os.path.join(os.path.dirname(name), entry.linkname))
        if os.path.isabs(entry.linkname) or target.split("/")[0] == "..":
            rule = f"leads out of the folder; leave it out by a {IGNORE_FILE}, or copy the file"
            raise BadFolder(f"{path}: a link to {entry.linkname} {rule}")
        tar.addfile(entry)
        return 1
    if not stat.S_ISREG(status.st_mode):
        rule = f"files, folders and links are packed; leave it out by a {IGNORE_FILE}"
        raise BadFolder(f"{path}: not a regular file; {rule}")
    with open(path, "rb") as file:
        # What is read has the size that the archive says, also of a file that grows.
        entry.size = os.fstat(file.fileno()).st_size
        tar.addfile(entry, file)
    return 1


def _names(archive: IO[bytes]) -> Iterator[str]:
    archive.seek(0)
    while part := archive.read(PART_BYTES):
        yield hashlib.sha256(part).hexdigest()
