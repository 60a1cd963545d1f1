"""A chunk: consecutive output of one worker, in one object, which its name describes.

    <lane>/<tenant>/<job>/<attempt>.<rank>/<first>-<next>-<begin_ms>-<end_ms>[-last]

`first` and `next` are numbers of lines, the times are those of the records in `logs`. `last` says
that the worker has ended with it. The body is the SHA-256 of the rest, and runs in msgpack + zstd.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import zstandard

LEVEL = 3
MOST_UNPACKED_BYTES = 64 * 2**20
"""Of the body of a chunk, which its writer closes at 1 MiB of text."""
DIGEST_BYTES = 32
LAST = "last"


class BadChunk(ValueError):
    """The object is damaged, or is no chunk."""


class Worker(NamedTuple):
    """One attempt of one rank of a job, whose lines have numbers of their own."""

    attempt: int
    rank: int

    @property
    def folder(self) -> str:
        return f"{self.attempt}.{self.rank}"


class JobKey(NamedTuple):
    """A job with what names its objects; no two tenants share a folder."""

    lane: int
    tenant: str
    job_id: str

    @property
    def prefix(self) -> str:
        return f"{self.lane}/{self.tenant}/{self.job_id}"


class Run(msgspec.Struct, frozen=True, array_like=True):
    """Lines without a gap, which one record had."""

    at_ms: int
    first: int
    lines: list[str]

    @property
    def next(self) -> int:
        return self.first + len(self.lines)

    def up_to(self, end: int) -> Run | None:
        """Return the lines before this number; None if there are none."""
        lines = self.lines[: max(0, end - self.first)]
        return Run(self.at_ms, self.first, lines) if lines else None


class Chunk(NamedTuple):
    """The fields of the name of an object; `size` is that of the object, in bytes."""

    worker: Worker
    first: int
    next: int
    begin_ms: int
    end_ms: int
    is_last: bool
    size: int = 0

    @property
    def name(self) -> str:
        """Return its name below that of its job."""
        numbers = f"{self.first:012d}-{self.next:012d}-{self.begin_ms:013d}-{self.end_ms:013d}"
        end = f"-{LAST}" if self.is_last else ""
        return f"{self.worker.folder}/{numbers}{end}"


def chunk_of(worker: Worker, runs: Sequence[Run], is_last: bool) -> Chunk:
    """Return the chunk of one run or more, in the order of their lines."""
    return Chunk(worker, runs[0].first, runs[-1].next, runs[0].at_ms, runs[-1].at_ms, is_last)


def parse_name(name: str, size: int = 0) -> Chunk | None:
    """Return the chunk of a name, also of a whole one; None for the name of another object."""
    worker, _, numbers = name.rpartition("/")
    attempt, _, rank = worker.rpartition("/")[2].partition(".")
    parts = numbers.split("-")
    is_last = parts[4:] == [LAST]
    try:
        first, next_, begin_ms, end_ms = map(int, parts[:4])
        known = Worker(int(attempt), int(rank))
    except ValueError:
        return None
    return Chunk(known, first, next_, begin_ms, end_ms, is_last, size)


def pack(runs: Sequence[Run]) -> bytes:
    packed = zstandard.ZstdCompressor(level=LEVEL).compress(msgspec.msgpack.encode(runs))
    return hashlib.sha256(packed).digest() + packed


def unpack(body: bytes) -> list[Run]:
    """Return the runs of a body. Raises BadChunk."""
    digest, packed = body[:DIGEST_BYTES], body[DIGEST_BYTES:]
    if hashlib.sha256(packed).digest() != digest:
        raise BadChunk("another sha256")
    try:
        content = zstandard.ZstdDecompressor().decompress(
            packed, max_output_size=MOST_UNPACKED_BYTES
        )
        return msgspec.msgpack.decode(content, type=list[Run])
    except (zstandard.ZstdError, msgspec.MsgspecError) as error:
        raise BadChunk(str(error)) from None
