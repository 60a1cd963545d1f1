"""Output that is written faster than it is read holds up no look, and ends all the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.executor.engines import output as module
from services.executor.engines.engine import OutputUnreadable
from services.executor.engines.output import (
    MOST_CHUNKS,
    MOST_FAILURES,
    MOST_LOOKS_AFTER_END,
    SHOWN_FROM,
    OutputRelay,
)
from services.executor.engines.pauses import LONGEST_PAUSE_S
from shared.contracts.reports import LogLines
from tests.services.executor.core.engines.looks import IDENTITY, gang_of, started_history


class Growing:
    """Files that have `chunks` more chunks of one line, endlessly many if it is negative."""

    def __init__(self, chunks: int) -> None:
        self.chunks = chunks
        self.reads = 0
        self.is_late = False
        """Whether the rest is not there yet."""
        self.problem = ""
        """Why none can be read."""

    async def read_output(self, identity: str, rank: int, offset: int) -> bytes | None:
        if self.problem:
            self.reads += 1
            raise OutputUnreadable(self.problem)
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


@pytest.fixture
def now_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now_s = [0.0]
    monkeypatch.setattr(module, "monotonic", lambda: now_s[0])
    return now_s


async def test_output_that_cannot_be_read_is_tried_ever_more_seldom_and_readers_see_the_reason(
    now_s: list[float],
) -> None:
    engine = Growing(1)
    relay, posted = relay_of(engine)
    worker = gang_of(started_history()).workers[0]
    engine.problem = "disk: Permission denied"
    await relay.relay(IDENTITY, worker)
    await relay.relay(IDENTITY, worker)
    assert engine.reads == 1, "no look tries again before the pause is over"
    while not posted:
        now_s[0] += 2 * LONGEST_PAUSE_S
        await relay.relay(IDENTITY, worker)
    assert engine.reads == SHOWN_FROM
    assert posted[-1].open_line == (
        "[berth: the output cannot be read now: disk: Permission denied]"
    )
    engine.problem = ""
    now_s[0] += 2 * LONGEST_PAUSE_S
    await relay.relay(IDENTITY, worker)
    assert (posted[-1].first_line, posted[-1].lines) == (0, ("more",)), "it counts no line"


async def test_output_that_is_never_read_is_given_up_with_a_last_line(now_s: list[float]) -> None:
    engine = Growing(1)
    relay, posted = relay_of(engine)
    worker = gang_of(started_history()).workers[0]
    engine.problem = "forbidden"
    for _ in range(MOST_FAILURES + 5):
        now_s[0] += 2 * LONGEST_PAUSE_S
        await relay.relay(IDENTITY, worker)
    assert engine.reads == MOST_FAILURES
    assert posted[-1].lines == ("[berth: the output ends here, as it cannot be read: forbidden]",)
    await relay.end(frozenset())
    assert (posted[-1].first_line, posted[-1].is_last) == (1, True)


async def test_output_that_is_read_and_empty_ends_a_row_of_tries_in_vain(
    now_s: list[float],
) -> None:
    engine = Growing(0)
    relay, posted = relay_of(engine)
    worker = gang_of(started_history()).workers[0]

    async def fail(times: int) -> None:
        engine.problem = "GET log: 502"
        for _ in range(times):
            now_s[0] += 2 * LONGEST_PAUSE_S
            await relay.relay(IDENTITY, worker)

    await fail(MOST_FAILURES - 1)
    engine.problem, engine.is_late = "", True
    now_s[0] += 2 * LONGEST_PAUSE_S
    await relay.relay(IDENTITY, worker)
    assert posted[-1].open_line, "that nothing is known yet ends no row"
    engine.is_late = False
    now_s[0] += 2 * LONGEST_PAUSE_S
    await relay.relay(IDENTITY, worker)
    assert (posted[-1].lines, posted[-1].open_line) == ((), ""), "readers see no reason any more"
    await fail(MOST_FAILURES - 1)
    assert not any(lines.lines for lines in posted), "the quiet worker is not given up"
    await fail(1)
    [words] = posted[-1].lines
    assert words == "[berth: the output ends here, as it cannot be read: GET log: 502]"


async def test_a_rest_that_cannot_be_read_ends_with_the_reason(now_s: list[float]) -> None:
    engine = Growing(1)
    relay, posted = relay_of(engine)
    await relay.relay(IDENTITY, gang_of(started_history()).workers[0])
    engine.problem = "GET log: 502"
    for _ in range(MOST_LOOKS_AFTER_END):
        now_s[0] += 1.0
        await relay.end(frozenset())
    *_, words, end = posted
    assert words.lines == ("[berth: the output ends here, as it cannot be read: GET log: 502]",)
    assert end.is_last and end.first_line == words.first_line + 1
