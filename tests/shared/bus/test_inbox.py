"""What a lane has read and not decided: its order, its bounds, and what waits for `access`."""

from __future__ import annotations

import asyncio

import pytest

from shared.bus.inbox import ACCESS, LIMIT_INPUTS, Inbox
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from shared.ledger.record import Position, Record, encode, pack
from shared.testing.ledger import command

COMMANDS, PLACEMENT = TP("commands", 0), TP("placement", 0)


@pytest.fixture
def inbox() -> Inbox:
    return Inbox([ACCESS, COMMANDS, PLACEMENT], InputDecoder("admission"))


def record(seq: int, prev: str = "", access: Position = 0) -> bytes:
    vector = {ACCESS.key: access} if access else {}
    return encode(Record(f"r{seq}", seq, prev, "w", seq, vector, pack([])))


def order(inbox: Inbox) -> list[tuple[str, int]]:
    return [(each.key, each.offset) for each in inbox.batch(100, 10_000)]


def test_a_ledgers_record_waits_for_the_access_that_its_writer_had_read(inbox: Inbox) -> None:
    inbox.put(PLACEMENT, 0, record(1, access=(1, 1, "r1")))
    inbox.put(COMMANDS, 0, command("after"))
    assert inbox.is_holding and order(inbox) == []
    inbox.put(ACCESS, 0, record(1))
    assert order(inbox) == [(ACCESS.key, 0), (PLACEMENT.key, 0), (COMMANDS.key, 0)]


def test_what_waits_for_more_of_access_goes_on_waiting(inbox: Inbox) -> None:
    inbox.put(COMMANDS, 0, command("first", access_next=1))
    inbox.put(COMMANDS, 1, command("second", access_next=2))
    inbox.put(ACCESS, 0, record(1))
    assert order(inbox) == [(ACCESS.key, 0), (COMMANDS.key, 0)]
    assert inbox.is_holding and inbox.vector({}, inbox.batch(100, 10_000))[COMMANDS.key] == 1
    inbox.put(ACCESS, 1, record(2, "r1"))
    assert order(inbox)[2:] == [(ACCESS.key, 1), (COMMANDS.key, 1)]


def test_a_fold_drops_what_a_rival_has_used_and_lets_go_what_it_has_heard(inbox: Inbox) -> None:
    for offset in range(3):
        inbox.put(COMMANDS, offset, command(f"c{offset}", access_next=1))
    inbox.settle({COMMANDS.key: 1})
    assert inbox.is_holding and inbox.next_offsets()[COMMANDS] == 3
    inbox.settle({COMMANDS.key: 2, ACCESS.key: (1, 1, "r1")})
    assert not inbox.is_holding and order(inbox) == [(COMMANDS.key, 2)]


async def test_who_waits_for_room_in_a_closed_inbox_is_let_go(inbox: Inbox) -> None:
    inbox.put(COMMANDS, 0, command("held", access_next=1))
    inbox.close()
    inbox.settle({})
    assert inbox.is_holding
    await asyncio.wait_for(inbox.wait_for_room(COMMANDS), 1)


async def test_access_finds_room_where_all_others_wait_for_it(inbox: Inbox) -> None:
    for offset in range(LIMIT_INPUTS):
        inbox.put(COMMANDS, offset, command(f"c{offset}", access_next=1))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(inbox.wait_for_room(COMMANDS), 0.01)
    await asyncio.wait_for(inbox.wait_for_room(ACCESS), 1)
    inbox.put(ACCESS, 0, record(1))
    assert inbox.pending == LIMIT_INPUTS + 1
    inbox.note_used(inbox.batch(2, 10**9))
    assert inbox.has_room
