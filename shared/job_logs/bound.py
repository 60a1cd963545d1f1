"""The order in which chunks of a job are removed where they exceed its bound."""

from __future__ import annotations

from collections.abc import Sequence

from shared.job_logs.chunk import Chunk, Worker
from shared.objects.objects import counted_bytes

HEAD_SHARE = 0.25
"""Of the bound: the oldest lines of a job, which stay."""
STAYING_SHARE = 0.5
"""Of the bound: those, and the newest chunk of each of their workers."""
LEFT_SHARE = 0.875
"""Of the bound: what is left after a removal, so that names are not listed for each chunk."""


def removable(chunks: Sequence[Chunk], most_bytes: int) -> list[Chunk]:
    """Return chunks of a job in the order in which they go: those of its oldest attempts first.

    A reader counts lines that are missing before one that it has. So the newest chunk of a worker
    goes after all its others, and stays if one of these does. Those of the newest attempt, which
    show that its output is complete, go after all others of the job.
    """
    newest = _newest_of_workers(chunks)
    attempt = max((worker.attempt for worker in newest), default=0)
    staying = _staying(chunks, newest, most_bytes)

    def order(chunk: Chunk) -> tuple[bool, int, bool, int]:
        worker = chunk.worker
        is_newest = newest[worker] == chunk
        is_end = is_newest and worker.attempt == attempt
        return is_end, worker.attempt, is_newest, chunk.begin_ms

    return sorted((chunk for chunk in chunks if chunk not in staying), key=order)


def _newest_of_workers(chunks: Sequence[Chunk]) -> dict[Worker, Chunk]:
    return {chunk.worker: chunk for chunk in sorted(chunks, key=lambda one: (one.next, one))}


def _staying(chunks: Sequence[Chunk], newest: dict[Worker, Chunk], most_bytes: int) -> set[Chunk]:
    """Return the oldest chunks of a job, and the newest one of each of their workers."""
    staying: set[Chunk] = set()
    head_bytes = all_bytes = 0
    for chunk in sorted(chunks, key=lambda one: one.begin_ms):
        added = {chunk, newest[chunk.worker]} - staying
        head_bytes += counted_bytes(chunk.size)
        all_bytes += sum(counted_bytes(one.size) for one in added)
        if head_bytes > most_bytes * HEAD_SHARE or all_bytes > most_bytes * STAYING_SHARE:
            break
        staying |= added
    return staying
