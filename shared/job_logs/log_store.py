"""Stores chunks of output, and how far the topic `logs` was stored."""

from __future__ import annotations

import logging

import msgspec

from shared.job_logs.chunk import BadChunk, Chunk, JobKey, Run, Worker, pack, parse_name, unpack
from shared.objects.objects import Objects

POSITIONS = "_positions"
"""No lane has this name."""

log = logging.getLogger(__name__)


class Position(msgspec.Struct, frozen=True):
    """All lines of a lane before the record `next` are stored, or were left out.

    `at_ms` is the time of the record before it: the topic is recognized by it.
    """

    next: int = 0
    at_ms: int = 0


class JobLogStore:
    """Chunks at a folder or an address of S3. Raises StoreUnreachable."""

    def __init__(self, address: str, *, writes: bool = False) -> None:
        self._objects = Objects(address, "output of jobs", writes=writes)

    async def position(self, lane: int) -> Position:
        if self._objects.is_absent:
            return Position()
        stored = await self._objects.get(f"{POSITIONS}/{lane}")
        try:
            return Position() if stored is None else msgspec.json.decode(stored[1], type=Position)
        except msgspec.MsgspecError:
            return Position()

    async def put_position(self, lane: int, position: Position) -> None:
        await self._objects.put(f"{POSITIONS}/{lane}", msgspec.json.encode(position))

    async def check_writable(self) -> None:
        """Return if a chunk could be stored now. Raises StoreFull too."""
        await self._objects.check_free()
        await self._objects.put(f"{POSITIONS}/writable", b"")

    async def put(self, job: JobKey, chunk: Chunk, runs: list[Run]) -> int:
        """Store a chunk; return its size in bytes. Raises StoreFull."""
        await self._objects.check_free()
        body = pack(runs)
        await self._objects.put(f"{job.prefix}/{chunk.name}", body)
        return len(body)

    async def chunks(self, job: JobKey, worker: Worker | None = None) -> list[Chunk]:
        """Return what is stored of a job or one of its workers, in the order of its lines.

        Nothing but the names below its own is read.
        """
        folder = f"{job.prefix}/" + (f"{worker.folder}/" if worker is not None else "")
        stored = [
            chunk
            async for item in self._objects.list(folder)
            if (chunk := parse_name(item["path"], item["size"])) is not None
        ]
        return sorted(stored)

    async def runs(self, job: JobKey, chunk: Chunk) -> list[Run]:
        """Return the lines of a chunk: none if it has been removed, or is damaged."""
        stored = await self._objects.get(f"{job.prefix}/{chunk.name}")
        if stored is None:
            return []
        try:
            return unpack(stored[1])
        except BadChunk as error:
            log.warning("%s/%s is damaged: %s", job.prefix, chunk.name, error)
            return []

    async def remove(self, job: JobKey, chunk: Chunk) -> None:
        await self._objects.remove(f"{job.prefix}/{chunk.name}")

    async def remove_job(self, job: JobKey) -> None:
        """Remove all that is stored of a job."""
        async for item in self._objects.list(f"{job.prefix}/"):
            await self._objects.remove(item["path"])

    async def remove_before(self, lane: int, end_ms: int) -> int:
        """Remove the chunks of a lane that end before this time; return the bytes of them."""
        removed = 0
        async for item in self._objects.list(f"{lane}/"):
            chunk = parse_name(item["path"], item["size"])
            if chunk is not None and chunk.end_ms < end_ms:
                await self._objects.remove(item["path"])
                removed += chunk.size
        return removed
