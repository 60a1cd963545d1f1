"""Output that is written faster than it is read holds up no look, and ends all the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from services.executor.engines.output import MOST_CHUNKS, MOST_LOOKS_AFTER_END, OutputRelay
from shared.contracts.reports import LogLines
from tests.services.executor.core.engines.looks import IDENTITY, gang_of, started_history


class Growing:
    """Files that have `chunks` more chunks of one line, endlessly many if it is negative."""

    def __init__(self, chunks: int) -> None:
        self.chunks = chunks
        self.reads = 0
        self.is_late = False
        """Whether the rest is not there yet."""

    async def read_output(self, identity: str, rank: int, offset: int) -> bytes | None:
        if self.chunks == 0:
            return None if self.is_late else b""
        self.chunks -= 1
        self.reads += 1
        return b"more\n"


def relay_of(engine: Growing) -> tuple[OutputRelay, list[LogLines]]:
    posted: list[LogLines] = []
    soft: Any = SimpleNamespace(post=lambda partition, lines, tenant: posted.append(lines))
    return OutputRelay(cast("Any", engine), soft, 1), posted


async def test_each_look_reads_a_bounded_part_of_a_file_that_grows() -> None:
    engine = Growing(-1)
    relay, posted = relay_of(engine)
    worker = gang_of(started_history()).workers[0]
    await relay.relay(IDENTITY, worker)
    assert engine.reads == MOST_CHUNKS
    for _ in range(MOST_LOOKS_AFTER_END - 1):
        await relay.end(frozenset())
    assert not any(lines.is_last for lines in posted)
    await relay.end(frozenset())
    assert posted[-1].is_last
    reads = engine.reads
    await relay.end(frozenset())
    assert engine.reads == reads


async def test_the_end_of_a_worker_waits_until_its_file_is_read() -> None:
    relay, posted = relay_of(Growing(2 * MOST_CHUNKS + 1))
    await relay.relay(IDENTITY, gang_of(started_history()).workers[0])
    await relay.end(frozenset())
    assert not posted[-1].is_last
    await relay.end(frozenset())
    assert posted[-1].is_last and posted[-1].first_line == 2 * MOST_CHUNKS + 1


async def test_the_end_of_a_worker_waits_for_a_rest_that_is_not_there_yet() -> None:
    growing = Growing(1)
    growing.is_late = True
    relay, posted = relay_of(growing)
    await relay.relay(IDENTITY, gang_of(started_history()).workers[0])
    await relay.end(frozenset())
    assert [lines.is_last for lines in posted] == [False]
    growing.chunks, growing.is_late = 1, False
    await relay.end(frozenset())
    assert posted[-1].is_last and posted[-1].first_line == 2
