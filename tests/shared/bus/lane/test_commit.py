from __future__ import annotations

import pytest

from shared.bus.clock import LedgerClock
from shared.bus.failpoints import Failpoints
from shared.bus.folds.fold import Fold, Replica
from shared.bus.inputs.inbox import Inbox
from shared.bus.lane.commit import Committer, send
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.ledger.errors import NotAccepted
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Reader
from shared.ledger.record import Record, encode, pack
from tests.harness.flaky_log import Accident, FlakyLog
from tests.harness.ledger import SeatDecider, Seats, command

LEDGER, COMMANDS = TP("admission", 0), TP("commands", 0)


class Writer:
    """A committer on a log in memory, and the records that it settled."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()
        self.inbox = Inbox([COMMANDS], InputDecoder("admission"))
        self.settled: list[Accepted] = []
        replica: Replica[Seats] = Replica(Reader(*LEDGER), Seats())
        fold = Fold(SeatDecider(), 0, MemoryLog(self.broker), None)
        self.committer = Committer(replica, fold, self.inbox, LedgerClock(), self.settled.append)

    def record(self, id: str, seq: int, prev: str = "", *, own: bool = True) -> Record:
        writer = self.committer.writer if own else "rival"
        return Record(id, seq, prev, writer, 1, {COMMANDS.key: seq}, pack([]))

    def append(self, record: Record) -> int:
        return self.broker.append(LEDGER, encode(record))


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Writer:
    monkeypatch.setattr("shared.bus.lane.commit.BACK_OFF_S", 0.0)
    return Writer()


@pytest.mark.parametrize(
    ("accident", "offset"), [("none", 0), ("lost_request", None), ("lost_ack", None)]
)
async def test_an_append_has_an_offset_or_an_unknown_outcome(
    accident: Accident, offset: int | None
) -> None:
    log = FlakyLog(MemoryLog(MemoryBroker()))
    log.accidents.append(accident)
    assert await send(log, LEDGER, b"record", Failpoints()) == offset


def test_an_accepted_record_moves_the_cursor(writer: Writer) -> None:
    writer.committer.losses = 2
    writer.committer.accept(0, writer.record("a", 1))
    replica = writer.committer.replica
    assert (replica.cursor.id, replica.records, writer.committer.losses) == ("a", 1, 0)


def test_an_acknowledged_record_against_the_reader_rule_is_a_violation(writer: Writer) -> None:
    with pytest.raises(NotAccepted, match="admission-0"):
        writer.committer.accept(0, writer.record("a", 2, "unknown"))


async def test_a_record_that_seemed_lost_is_settled_once_it_is_read(writer: Writer) -> None:
    record = writer.record("a", 1)
    writer.append(record)
    await writer.committer.learn(record)
    await writer.committer.refold()
    assert [accepted.record.id for accepted in writer.settled] == ["a"]
    assert (writer.committer.losses, writer.committer.lost_appends) == (0, 1)


async def test_the_record_of_a_rival_counts_and_drops_the_inputs_that_it_used(
    writer: Writer,
) -> None:
    for offset in range(2):
        writer.inbox.put(COMMANDS, offset, command(f"c{offset}"))
    writer.append(writer.record("rival", 1, own=False))
    mine = writer.record("mine", 1)
    writer.append(mine)
    await writer.committer.learn(mine)
    assert writer.committer.replica.cursor.id == "rival"
    assert writer.settled == []
    assert [record.offset for record in writer.inbox.batch(9, 9_999)] == [1]
    assert writer.committer.losses == 1


async def test_losses_are_counted_until_an_append_wins(writer: Writer) -> None:
    for _ in range(5):
        await writer.committer.learn(writer.record("lost", 1))
    assert (writer.committer.losses, writer.committer.lost_appends) == (5, 5)
    writer.committer.accept(0, writer.record("won", 1))
    assert (writer.committer.losses, writer.committer.lost_appends) == (0, 5)
