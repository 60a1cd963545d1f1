"""The bound of a job's output holds for many attempts, and gaps stay countable."""

from __future__ import annotations

import pytest

from shared.job_logs.bound import LEFT_SHARE, removable
from shared.job_logs.chunk import Chunk, Worker
from shared.objects.objects import counted_bytes

BLOCK = counted_bytes(1)


def output(attempts: int, chunks: int, ranks: int = 1, last_blocks: int = 1) -> list[Chunk]:
    """Return the chunks of attempts one after another, of which each worker has ended."""
    return [
        Chunk(
            Worker(attempt, rank),
            number,
            number + 1,
            attempt * chunks + number,
            attempt * chunks + number,
            is_last := number == chunks - 1,
            BLOCK * (last_blocks if is_last else 1),
        )
        for attempt in range(1, attempts + 1)
        for number in range(chunks)
        for rank in range(ranks)
    ]


def left_of(chunks: list[Chunk], most: int) -> list[Chunk]:
    left = list(chunks)
    for chunk in removable(chunks, most):
        if sum(one.size for one in left) <= most * LEFT_SHARE:
            break
        left.remove(chunk)
    return left


@pytest.mark.parametrize("chunks", [1, 2, 5])
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("last_blocks", [1, 4])
@pytest.mark.parametrize("attempts", [1, 2, 50])
def test_a_job_has_its_bound_and_what_is_left_of_a_worker_has_its_end(
    attempts: int, chunks: int, ranks: int, last_blocks: int
) -> None:
    of_job = output(attempts, chunks, ranks, last_blocks)
    for most in (BLOCK * blocks for blocks in (4, 8, 16, 64)):
        left = left_of(of_job, most)
        assert sum(chunk.size for chunk in left) <= most
        ends = {chunk.worker for chunk in left if chunk.is_last}
        assert {chunk.worker for chunk in left} == ends


def test_the_oldest_attempts_go_but_the_first_lines() -> None:
    left = left_of(output(40, 2), 16 * BLOCK)
    assert [chunk.worker.attempt for chunk in left] == [1, 1, 2, 2, *sorted([*range(36, 41)] * 2)]


def test_the_ends_of_the_newest_attempt_go_last() -> None:
    of_job = output(2, 3, ranks=2)
    order = removable(of_job, 0)
    assert [chunk.is_last for chunk in order[-2:]] == [True, True]
    assert {chunk.worker for chunk in order[-2:]} == {Worker(2, 0), Worker(2, 1)}
    assert [chunk.worker.attempt for chunk in order] == [1] * 6 + [2] * 6
