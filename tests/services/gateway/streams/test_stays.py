"""A followed stream goes on in the pools that its job is transferred to."""

from __future__ import annotations

import json
import re

import pytest

from services.gateway.streams import completion
from services.gateway.streams.job_log import JobNow, NextStay
from services.gateway.streams.log_lines import JobOutput, Shows
from services.gateway.streams.recent_lines import RecentLines
from services.gateway.streams.stays import StayOutput, follow_stays
from shared.bus.logs.log import Entry
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.job_logs.chunk import JobKey
from shared.ledger.partition import TP
from tests.shared.job_logs.printing import printed

MAIN, SIDE = JobKey(1, "ada", "j1"), JobKey(2, "ada", "j2")
LEFT = JobNow("cancelled", "transferred", 1, 1, pool="main", next_stay=NextStay("side", "j2"))
WAITS = JobNow("waiting", "no_capacity", 0, 1, pool="side")
ENDED = JobNow("succeeded", "", 1, 1, pool="side")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POLL_S", "SOON_S", "SETTLED_S"):
        monkeypatch.setattr(completion, name, 0.0)


@pytest.fixture
def recent() -> RecentLines:
    broker = MemoryBroker()
    recent = RecentLines(lambda: MemoryLog(broker), 3, None)
    for key, line in ((MAIN, "before"), (SIDE, "after")):
        value = printed(0, line, job=key.job_id, is_last=True)
        offset = broker.append(TP("logs", key.lane), value, timestamp=0)
        recent.take(key.lane, Entry(offset, None, value, (), 0))
    return recent


def stay(recent: RecentLines, key: JobKey, *states: JobNow | None) -> StayOutput:
    left = list(states)

    async def read() -> JobNow | None:
        return left.pop(0) if len(left) > 1 else left[0]

    return StayOutput(JobOutput(recent, None, key, is_later=key is SIDE), read)


async def frames_of(first: StayOutput, following: StayOutput | None) -> list[tuple[str, object]]:
    opened: list[NextStay] = []

    def open_stay(next_stay: NextStay) -> StayOutput | None:
        opened.append(next_stay)
        return following

    shows = Shows(status=True)
    written = b"".join([f async for f in follow_stays(first, open_stay, lambda: True, shows)])
    assert opened == [NextStay("side", "j2")]
    frames = re.findall(b"event: (.*)\ndata: (.*)", written)
    return [(name.decode(), json.loads(data)) for name, data in frames]


async def test_a_job_is_followed_through_its_pools_to_its_end(recent: RecentLines) -> None:
    there = stay(recent, SIDE, None, WAITS, ENDED)
    shown = await frames_of(stay(recent, MAIN, LEFT), there)
    assert [data for name, data in shown if name == "line"] == [
        {"attempt": 1, "rank": 0, "line": 0, "text": "before"},
        {"attempt": 1, "rank": 0, "line": 0, "text": "after", "job_id": "j2"},
    ]
    states = [data for name, data in shown if name == "status"]
    assert states == [
        {"phase": "waiting", "reason": "no_capacity", "attempt": 0, "pool": "side"},
        {"phase": "succeeded", "reason": "", "attempt": 1, "pool": "side"},
    ], "that it left is no end"
    assert shown[-1] == ("end", {"reason": "ended"})


async def test_a_stream_ends_where_the_next_pool_is_gone(recent: RecentLines) -> None:
    shown = await frames_of(stay(recent, MAIN, LEFT), None)
    assert [name for name, _ in shown] == ["line", "end"]
