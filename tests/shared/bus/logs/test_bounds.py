from __future__ import annotations

import pytest

from shared.bus.logs.bounds import check_reaches
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.ledger.errors import TailLost
from shared.ledger.partition import TP

COMMANDS = TP("commands", 0)


class Modest(MemoryLog):
    """Reports an end before the true one, as the embedded broker may."""

    async def end(self, tp: TP) -> int:
        return 0


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> MemoryLog:
    monkeypatch.setattr("shared.bus.logs.bounds.POLL_S", 0.0)
    broker = MemoryBroker()
    for _ in range(3):
        broker.append(COMMANDS, b"record")
    return Modest(broker)


@pytest.mark.parametrize("offset", [0, 2, 3])
async def test_a_log_reaches_each_offset_up_to_its_true_end(log: MemoryLog, offset: int) -> None:
    await check_reaches(log, COMMANDS, offset)


async def test_a_log_that_ends_before_the_offset_has_lost_its_tail(log: MemoryLog) -> None:
    with pytest.raises(TailLost, match="commands-0 is shorter than the 4"):
        await check_reaches(log, COMMANDS, 4)
