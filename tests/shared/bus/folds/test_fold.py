from __future__ import annotations

from pathlib import Path

import pytest

from shared.bus.folds.fold import Fold, Replica
from shared.bus.folds.snapshots import Snapshots
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.command_answers import CommandAccepted
from shared.ledger.errors import TailLost
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Cursor
from tests.harness.ledger import SeatDecider, Seats
from tests.lost_tail import cut_tail

LEDGER = TP("admission", 0)
NOTHING = Cursor()


class Cut(MemoryLog):
    """A log whose first records are deleted."""

    async def begin(self, tp: TP) -> int:
        return 1


@pytest.fixture
def broker() -> MemoryBroker:
    """A ledger of three seats, with bytes between them that are no record."""
    broker = MemoryBroker()
    writer = LedgerWriter(broker, LEDGER.topic)
    for seat in range(3):
        event = CommandAccepted(command_id=f"c{seat}", command_type=str(seat), of="job")
        writer.write([event])
        writer.scribble(b"no record")
    return broker


def fold(log: MemoryLog, snapshots: Snapshots[Seats] | None = None) -> Fold[Seats]:
    return Fold(SeatDecider(), LEDGER.partition, log, snapshots)


async def whole(broker: MemoryBroker) -> Replica[Seats]:
    return await fold(MemoryLog(broker)).run(NOTHING)


async def test_a_fold_has_the_accepted_records_up_to_the_end(broker: MemoryBroker) -> None:
    replica = await whole(broker)
    assert replica.state.taken == {0: "c0", 1: "c1", 2: "c2"}
    assert (replica.records, replica.cursor.seq, replica.cursor.next) == (3, 3, 6)


async def test_a_fold_from_a_snapshot_reads_only_the_records_behind_it(
    broker: MemoryBroker, tmp_path: Path
) -> None:
    first = await whole(broker)
    snapshots: Snapshots[Seats] = Snapshots(tmp_path, LEDGER.topic, LEDGER.partition, "s1")
    snapshots.store(3, snapshots.pack(first.cursor, first.state))
    again = await fold(Cut(broker), snapshots).run(NOTHING)
    assert (again.records, again.state, again.cursor) == (0, first.state, first.cursor)


async def test_records_behind_the_known_cursor_are_reported(broker: MemoryBroker) -> None:
    seen: list[Accepted] = []
    known = Cursor(1, 1, "admission-0-1", 0)
    await fold(MemoryLog(broker)).run(known, seen.append)
    assert [accepted.record.seq for accepted in seen] == [2, 3]


async def test_a_ledger_that_does_not_begin_at_0_needs_a_snapshot(broker: MemoryBroker) -> None:
    with pytest.raises(TailLost, match="does not begin at 0"):
        await fold(Cut(broker)).run(NOTHING)


async def test_a_ledger_that_ends_before_the_known_cursor_has_lost_its_tail(
    broker: MemoryBroker,
) -> None:
    known = (await whole(broker)).cursor
    cut_tail(broker, LEDGER, 5)
    with pytest.raises(TailLost, match="ends at 5, and 6 was read before"):
        await fold(MemoryLog(broker)).run(known)


async def test_another_record_at_the_known_cursor_is_a_lost_tail(broker: MemoryBroker) -> None:
    known = Cursor(3, 2, "of another disk", 2)
    with pytest.raises(TailLost, match="another record at 2"):
        await fold(MemoryLog(broker)).run(known)
