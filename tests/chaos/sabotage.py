"""One broken rule each: patches of the deployed code that only a test can apply.

`tests.chaos.story.tell` runs a story with one of them; the judge at its end is always honest. As a
program, `python -m tests.chaos.sabotage RULE MODULE` runs a service that lacks that rule.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import services.executor.pool_ledger  # noqa: F401
from services.publisher import app as publisher_app
from shared.bus.folds.snapshots import Snapshots
from shared.bus.inputs.inbox import Channel, Inbox
from shared.bus.lane.rounds import Rounds
from shared.bus.logs.tail import LedgerTail
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Cursor, Reader
from shared.ledger.record import Record

Patch = tuple[object, str, object]


def _taken(reader: Reader, offset: int, record: Record | None) -> Accepted | None:
    cursor = reader.cursor
    if record is None:
        reader.cursor = Cursor(offset + 1, cursor.seq, cursor.id, cursor.offset, cursor.at)
        return None
    reader.cursor = Cursor(offset + 1, record.seq, record.id, offset, record.at, record.inputs)
    return Accepted(reader.ledger, reader.partition, offset, record)


def _follows_by_number(reader: Reader, offset: int, record: Record | None) -> Accepted | None:
    """Accept by `seq` alone, whatever record `prev` names."""
    if record is None or record.seq != reader.cursor.seq + 1:
        _passed(reader, offset)
        return None
    return _taken(reader, offset, record)


def _passed(reader: Reader, offset: int) -> None:
    c = reader.cursor
    reader.cursor = Cursor(offset + 1, c.seq, c.id, c.offset, c.at, c.inputs)


class CredulousReader(Reader):
    """Accepts every record."""

    def offer_record(self, offset: int, record: Record | None) -> Accepted | None:
        return _taken(self, offset, record)


class CredulousTail(LedgerTail):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._readers = {
            tp: CredulousReader(tp.topic, tp.partition, reader.cursor)
            for tp, reader in self._readers.items()
        }


_send = Rounds._send


async def _trusting(self: Rounds[Any], value: bytes) -> int | None:
    return None if await _send(self, value) is None else self._cursor.next


def _forgetful(self: Inbox, vector: Mapping[str, Any]) -> None:
    """Keep the records that the log has used after a fold."""
    self.silent = 0


def _takes_old(self: Inbox, tp: TP, offset: int, value: bytes | None) -> str:
    channel = self._channels[tp.key]
    if offset > channel.next:
        return "gap"
    return _put(self, channel, offset, value)


def _takes_gaps(self: Inbox, tp: TP, offset: int, value: bytes | None) -> str:
    channel = self._channels[tp.key]
    if offset < channel.next:
        return "old"
    return _put(self, channel, offset, value)


def _put(inbox: Inbox, channel: Channel, offset: int, value: bytes | None) -> str:
    if channel._reader is not None:
        channel._reader.cursor = Cursor(offset, *_rest(channel._reader.cursor))
    record = channel.take(offset, value)
    inbox._waiting.append(record)
    inbox._inputs += len(record.inputs)
    inbox._bytes += record.size
    return "ok"


def _rest(cursor: Cursor) -> tuple[Any, ...]:
    return cursor.seq, cursor.id, cursor.offset, cursor.at, cursor.inputs


_pack = Snapshots.pack


def _ahead(self: Snapshots[Any], cursor: Cursor, state: Any) -> bytes:
    """Pack the current cursor with the state of the snapshot before."""
    packed: bytes = getattr(self, "_before", b"") or _pack(self, cursor, state)
    self._before = _pack(self, cursor, state)  # type: ignore[attr-defined]
    import pickle

    _, old = pickle.loads(packed)
    return pickle.dumps((cursor.to_json(), old))


async def _as_if_published(bus: Any, topic: str, lanes: Any) -> Any:
    """Return the ends of the ledgers, as if cursors had been stored before the events."""
    from services.publisher.core.position import LedgerPosition
    from shared.contracts.topics import LEDGERS

    positions: dict[int, dict[str, LedgerPosition]] = {}
    for lane in lanes:
        for ledger in LEDGERS:
            reader, tp = Reader(ledger, lane), TP(ledger, lane)
            feed = await bus.feed({tp: 0})
            for entry in (await feed.poll(0.0, 1_000_000)).get(tp, []):
                reader.offer(entry.offset, entry.value)
            if reader.cursor.seq:
                positions.setdefault(lane, {})[ledger] = LedgerPosition(reader.cursor)
    return positions


READER = (Reader, "offer_record", _taken)
TRUSTS = (Rounds, "_send", _trusting)

RULES: dict[str, tuple[Patch, ...]] = {
    "no reader rule": (READER,),
    "no reader rule in the executor": (
        ("services.executor.pool_ledger", "LedgerTail", CredulousTail),
    ),
    "only seq, every ack believed": ((Reader, "offer_record", _follows_by_number), TRUSTS),
    "every ack believed": (TRUSTS,),
    "used inputs kept after a fold": ((Inbox, "settle", _forgetful),),
    "no skip below the vector": ((Inbox, "put", _takes_old),),
    "no gap check": ((Inbox, "put", _takes_gaps),),
    "snapshot of another record than its cursor": ((Snapshots, "pack", _ahead),),
    "published by a cursor of its own": ((publisher_app, "read_positions", _as_if_published),),
}


def without(rule: str) -> Callable[[], ExitStack]:
    """Return a context that disables the rule."""

    def enter() -> ExitStack:
        stack = ExitStack()
        for owner, name, replacement in RULES[rule]:
            target = sys.modules[owner] if isinstance(owner, str) else owner
            stack.enter_context(patch.object(target, name, replacement))
        return stack

    return enter


if __name__ == "__main__":
    rule, module = sys.argv[1:3]
    with without(rule)():
        runpy.run_module(module, run_name="__main__")
