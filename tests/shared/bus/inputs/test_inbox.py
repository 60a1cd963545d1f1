"""The order and the bounds of undecided inputs, and records that wait for `access`."""

from __future__ import annotations

import asyncio

import pytest

from shared.bus.inputs.inbox import ACCESS, LIMIT_INPUTS, Inbox
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from shared.ledger.record import Position, Record, encode, pack
from tests.harness.ledger import command
from tests.patience import PATIENCE_S

COMMANDS, PLACEMENT = TP("commands", 0), TP("placement", 0)


@pytest.fixture
def inbox() -> Inbox:
    return Inbox([ACCESS, COMMANDS, PLACEMENT], InputDecoder("admission"))


def record(seq: int, prev: str = "", access: Position = 0) -> bytes:
    vector = {ACCESS.key: access} if access else {}
    return encode(Record(f"r{seq}", seq, prev, "w", seq, vector, pack([])))


def order(inbox: Inbox) -> list[tuple[str, int]]:
    return [(record.key, record.offset) for record in inbox.batch(100, 10_000)]


def test_a_ledgers_record_waits_for_the_access_that_its_writer_had_read(inbox: Inbox) -> None:
    inbox.put(PLACEMENT, 0, record(1, access=(1, 1, "r1")))
    inbox.put(COMMANDS, 0, command("after"))
    assert inbox.is_holding and order(inbox) == []
    inbox.put(ACCESS, 0, record(1))
    assert order(inbox) == [(ACCESS.key, 0), (PLACEMENT.key, 0), (COMMANDS.key, 0)]


def test_a_record_that_needs_more_of_access_goes_on_waiting(inbox: Inbox) -> None:
    inbox.put(COMMANDS, 0, command("first", access_next=1))
    inbox.put(COMMANDS, 1, command("second", access_next=2))
    inbox.put(ACCESS, 0, record(1))
    assert order(inbox) == [(ACCESS.key, 0), (COMMANDS.key, 0)]
    assert inbox.is_holding and inbox.vector({}, inbox.batch(100, 10_000))[COMMANDS.key] == 1
    inbox.put(ACCESS, 1, record(2, "r1"))
    assert order(inbox)[2:] == [(ACCESS.key, 1), (COMMANDS.key, 1)]


def test_a_fold_drops_records_that_a_rival_used_and_releases_those_it_covers(inbox: Inbox) -> None:
    for offset in range(3):
        inbox.put(COMMANDS, offset, command(f"c{offset}", access_next=1))
    inbox.settle({COMMANDS.key: 1})
    assert inbox.is_holding and inbox.next_offsets()[COMMANDS] == 3
    inbox.settle({COMMANDS.key: 2, ACCESS.key: (1, 1, "r1")})
    assert not inbox.is_holding and order(inbox) == [(COMMANDS.key, 2)]


async def test_closing_an_inbox_releases_its_waiters(inbox: Inbox) -> None:
    inbox.put(COMMANDS, 0, command("held", access_next=1))
    inbox.close()
    inbox.settle({})
    assert inbox.is_holding
    await asyncio.wait_for(inbox.wait_for_room(COMMANDS), PATIENCE_S)


async def test_there_is_room_for_access_while_all_other_inputs_wait_for_it(inbox: Inbox) -> None:
    for offset in range(LIMIT_INPUTS):
        inbox.put(COMMANDS, offset, command(f"c{offset}", access_next=1))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(inbox.wait_for_room(COMMANDS), 0.01)
    await asyncio.wait_for(inbox.wait_for_room(ACCESS), PATIENCE_S)
    inbox.put(ACCESS, 0, record(1))
    assert inbox.pending == LIMIT_INPUTS + 1
    inbox.note_used(inbox.batch(2, 10**9))
    assert inbox.has_room
