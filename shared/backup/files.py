"""The files of a backup: one compressed file per partition, and a manifest of them."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Self

import msgspec
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.bus.logs.log import Entry
from shared.contracts.topics import submissions
from shared.ledger.partition import TP
from shared.process.durable_files import sha256_of_file

MANIFEST = "manifest.json"
SUBMISSIONS = submissions("").name
FORMAT = 1
FORMAT_OF_TAILS = 2
"""Of a backup that goes on behind an archive; versions that know no tails refuse it."""
LEVEL = 3
LENGTH_BYTES = 4


class BadBackup(ValueError):
    """The folder holds no complete backup; the message names the file and the error."""


class ArchivedBefore(BaseModel):
    """The entry of an archive behind which a file begins: its number, and its own sha256."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int = Field(ge=0)
    sha256: str


class BackupPart(BaseModel):
    """The file of one partition: offsets `first` to `next` - 1, without a gap.

    The records before `first` of a tail are in the archive up to the entry `archived`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    topic: str
    partition: int = Field(ge=0)
    first: int = Field(ge=0)
    next: int = Field(ge=0)
    file: str
    sha256: str
    archived: ArchivedBefore | None = None

    @property
    def tp(self) -> TP:
        return TP(self.topic, self.partition)


class BackupManifest(BaseModel):
    """The list of all files, written last: a folder without it is an interrupted backup."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    partitions: int = Field(ge=1, description="lanes of the installation")
    parts: tuple[BackupPart, ...]

    @property
    def records(self) -> int:
        """Return the number of records in the files."""
        return sum(part.next - part.first for part in self.parts)

    @property
    def archived(self) -> int:
        """Return the number of records that only the archive has."""
        return sum(part.first for part in self.parts if part.archived is not None)

    @property
    def tenants(self) -> list[str]:
        """Return the tenants with submissions in the backup."""
        topics = {part.topic for part in self.parts if part.topic.startswith(SUBMISSIONS)}
        return sorted(topic.removeprefix(SUBMISSIONS) for topic in topics)


class PartWriter:
    """Appends entries to the file of one partition, which is readable once it is closed."""

    def __init__(self, folder: Path, tp: TP, first: int) -> None:
        self._tp, self._first = tp, first
        self.next = first
        self._path = folder / f"{tp.topic}-{tp.partition}.gz"
        self._raw = os.fdopen(
            os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
        )
        self._out = gzip.GzipFile(fileobj=self._raw, mode="wb", compresslevel=LEVEL, mtime=0)

    def add(self, entry: Entry) -> None:
        """Append an entry; raises BadBackup if the log skipped an offset."""
        if entry.offset != self.next:
            raise BadBackup(
                f"{self._tp.key}: offset {self.next} is missing; next is {entry.offset}"
            )
        body = msgspec.msgpack.encode(entry)
        self._out.write(len(body).to_bytes(LENGTH_BYTES, "big") + body)
        self.next += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file and sync it to disk."""
        self._out.close()
        self._raw.flush()
        os.fsync(self._raw.fileno())
        self._raw.close()

    def part(self) -> BackupPart:
        """Return the manifest's entry of the file, once it is closed."""
        return BackupPart(
            topic=self._tp.topic,
            partition=self._tp.partition,
            first=self._first,
            next=self.next,
            file=self._path.name,
            sha256=sha256_of_file(self._path),
        )


def finish(folder: Path, manifest: BackupManifest) -> None:
    """Complete a backup by writing its manifest atomically."""
    scratch = folder / f"{MANIFEST}.new"
    scratch.write_text(manifest.model_dump_json(indent=1, exclude_none=True) + "\n")
    scratch.replace(folder / MANIFEST)


def open_backup(folder: Path) -> BackupManifest:
    """Return the manifest after comparing the hash of every file; raises BadBackup."""
    path = folder / MANIFEST
    try:
        manifest = BackupManifest.model_validate_json(path.read_text())
    except OSError as error:
        raise BadBackup(
            f"{path}: {error.strerror}; an interrupted backup has no manifest"
        ) from None
    except ValidationError as error:
        raise BadBackup(f"{path}: {error.errors()[0]['msg']}") from None
    if manifest.format not in (FORMAT, FORMAT_OF_TAILS):
        raise BadBackup(
            f"{path}: unknown format {manifest.format}; this version reads {FORMAT} and"
            f" {FORMAT_OF_TAILS}"
        )
    for part in manifest.parts:
        _check(folder, part)
    return manifest


def entries(folder: Path, part: BackupPart) -> Iterator[Entry]:
    """Yield the records of one file in order."""
    with gzip.open(folder / part.file, "rb") as file:
        while head := file.read(LENGTH_BYTES):
            yield _entry(file, int.from_bytes(head, "big"))


def _entry(file: BinaryIO | gzip.GzipFile, size: int) -> Entry:
    offset, key, value, headers, timestamp = msgspec.msgpack.decode(file.read(size))
    return Entry(offset, key, value, tuple((name, body) for name, body in headers), timestamp)


def _check(folder: Path, part: BackupPart) -> None:
    path = folder / part.file
    if path.parent != folder:
        raise BadBackup(f"{part.file}: invalid path; files are in the folder of the manifest")
    if not path.is_file():
        raise BadBackup(f"{path}: missing")
    if sha256_of_file(path) != part.sha256:
        raise BadBackup(f"{path}: wrong sha256; the file was changed")
