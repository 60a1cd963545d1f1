"""Output that is not stored yet: per worker, with the oldest record that is needed for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.job_logs.chunk import Chunk, JobKey, Run, Worker, chunk_of

LINE_BYTES = 64
"""Counted for each line besides its text: what Python needs for it."""


class BufferKey(NamedTuple):
    """The worker of a job."""

    job: JobKey
    worker: Worker


@dataclass(slots=True)
class Buffer:
    """Lines of one worker, in the order of their numbers."""

    offset: int
    """Of the first record with a line of these."""
    before_ms: int
    """Time of the record before that one."""
    since_s: float
    runs: list[Run] = field(default_factory=list)
    size_bytes: int = 0
    is_last: bool = False

    def add(self, run: Run, *, is_last: bool) -> int:
        """Take a run; return the bytes of memory for which it counts."""
        self.runs.append(run)
        self.is_last |= is_last
        size_bytes = sum(len(line) + LINE_BYTES for line in run.lines) + LINE_BYTES
        self.size_bytes += size_bytes
        return size_bytes


@dataclass(frozen=True, slots=True)
class ChunkPace:
    """When the lines of a worker are stored: these go together into one object."""

    chunk_bytes: int = 2**20
    every_s: float = 600.0
    all_bytes: int = 16 * 2**20
    """Of all lines that are not stored; above it the largest are."""


class Buffers:
    """The buffers of all workers."""

    def __init__(self, pace: ChunkPace) -> None:
        self._pace = pace
        self._buffers: dict[BufferKey, Buffer] = {}
        self.size_bytes = 0

    def keys_of(self, job: JobKey) -> list[BufferKey]:
        return [key for key in self._buffers if key.job == job]

    def buffer(self, key: BufferKey, offset: int, before_ms: int, now_s: float) -> Buffer:
        """Return the buffer of a worker; a new one is needed from this record on."""
        if key not in self._buffers:
            self._buffers[key] = Buffer(offset, before_ms, now_s)
        return self._buffers[key]

    def add(self, buffer: Buffer, run: Run, *, is_last: bool) -> None:
        self.size_bytes += buffer.add(run, is_last=is_last)

    def due(self, now_s: float) -> Iterator[BufferKey]:
        """Yield workers with lines that are to be stored now."""
        pace = self._pace
        for key, buffer in list(self._buffers.items()):
            is_old = now_s - buffer.since_s >= pace.every_s
            if buffer.is_last or buffer.size_bytes >= pace.chunk_bytes or is_old:
                yield key
        while self.size_bytes > pace.all_bytes:
            yield max(self._buffers, key=lambda key: self._buffers[key].size_bytes)

    def peek(self, key: BufferKey) -> tuple[Chunk, list[Run]]:
        """Return what is to be stored of a worker; `stored` removes it."""
        buffer = self._buffers[key]
        return chunk_of(key.worker, buffer.runs, buffer.is_last), buffer.runs

    def stored(self, key: BufferKey) -> None:
        self.size_bytes -= self._buffers.pop(key).size_bytes

    def oldest(self, lane: int) -> tuple[int, int] | None:
        """Return the first record of a lane that is still needed, and the time before it."""
        needed = [
            (buffer.offset, buffer.before_ms)
            for key, buffer in self._buffers.items()
            if key.job.lane == lane
        ]
        return min(needed, default=None)
