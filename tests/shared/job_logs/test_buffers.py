"""Lines wait for their chunk within bounds of time and memory."""

from __future__ import annotations

from shared.job_logs.buffers import BufferKey, Buffers, ChunkPace
from shared.job_logs.chunk import JobKey, Run, Worker

PACE = ChunkPace(chunk_bytes=1000, every_s=10.0, all_bytes=3000)
ADA, BOB = (JobKey(lane, "ada", "j") for lane in (0, 1))


def add(
    buffers: Buffers, key: BufferKey, offset: int, size: int, at_s: float = 0, last: bool = False
) -> None:
    buffer = buffers.buffer(key, offset, offset - 1, at_s)
    buffers.add(buffer, Run(offset, offset, ["x" * size]), is_last=last)


def key(job: JobKey, rank: int = 0) -> BufferKey:
    return BufferKey(job, Worker(1, rank))


def test_large_old_and_ended_output_is_due() -> None:
    buffers = Buffers(PACE)
    add(buffers, key(ADA, 0), 1, 1000)
    add(buffers, key(ADA, 1), 2, 10)
    add(buffers, key(ADA, 2), 3, 10, last=True)
    add(buffers, key(ADA, 3), 4, 10, at_s=5)
    assert list(buffers.due(1.0)) == [key(ADA, 0), key(ADA, 2)]
    assert list(buffers.due(10.0)) == [key(ADA, rank) for rank in range(3)]


def test_the_largest_are_due_where_all_together_are_too_large() -> None:
    buffers = Buffers(PACE)
    for rank in range(6):
        add(buffers, key(ADA, rank), rank, 400 + rank)
    stored = []
    for due in buffers.due(0.0):
        stored.append(due.worker.rank)
        buffers.stored(due)
    assert stored == [5] and buffers.size_bytes <= PACE.all_bytes


def test_the_oldest_record_that_is_needed_is_known_by_lane() -> None:
    buffers = Buffers(PACE)
    add(buffers, key(ADA), 7, 1)
    add(buffers, key(ADA), 8, 1)
    add(buffers, key(BOB), 3, 1)
    assert (buffers.oldest(0), buffers.oldest(1), buffers.oldest(2)) == ((7, 6), (3, 2), None)
    chunk, runs = buffers.peek(key(ADA))
    assert (chunk.first, chunk.next, len(runs)) == (7, 9, 2)
    buffers.stored(key(ADA))
    assert buffers.oldest(0) is None and buffers.keys_of(BOB) == [key(BOB)]
