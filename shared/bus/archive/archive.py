"""The archive of an installation: a store, and the chains of its partitions as far as known."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec

from shared.bus.archive.chain import Chain, check_numbers
from shared.bus.archive.segment import (
    ArchiveEntry,
    chain_of,
    check_name,
    checks_of,
    decode_entry,
    encode_entry,
    entry_name,
    unpack,
)
from shared.bus.archive.store import ObjectStore
from shared.bus.archive.walk import Walk
from shared.bus.logs.log import Entry
from shared.ledger.errors import BadArchive
from shared.ledger.partition import TP

READERS = 16
"""Entries that are read from the store at once."""


class CheckedMark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The objects up to entry `n` were read back, and were those that the chain names."""

    n: int
    sha256: str
    """sha256 of entry `n` as it is stored."""
    made_ms: int


class Archive:
    """Reads and extends chains. All calls block, and are for one thread at a time.

    Raises BadArchive for objects that are missing or have other bytes than the chain says, and
    ArchiveUnreachable if the store does not answer.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._chains: dict[TP, Chain] = {}

    def end(self, tp: TP) -> int:
        """Return the first offset that is not archived, by the last entry of the chain.

        The entries before it are not read: of a year there are thousands, and a reader that goes on
        behind them needs none.
        """
        length = self._length(tp)
        known = self._chains[tp]
        if length == len(known):
            return known.next
        name = entry_name(tp, length - 1)
        return decode_entry(self._body(name), name).next

    def refresh(self, tp: TP) -> Chain:
        """Read the entries that are new since the last call; return the chain."""
        length = self._length(tp)
        chain = self._chains[tp]
        names = [entry_name(tp, n) for n in range(len(chain), length)]
        if len(names) == 1:
            chain.add(self._body(names[0]))
        elif names:
            # A store far away answers each in milliseconds, and of a year there are thousands.
            pool = ThreadPoolExecutor(READERS)
            try:
                for body in pool.map(self._body, names):
                    chain.add(body)
            finally:
                pool.shutdown(cancel_futures=True)
        return chain

    def _length(self, tp: TP) -> int:
        """Return how many entries the store lists, not fewer than are known."""
        chain = self._chains.setdefault(tp, Chain(tp))
        names = self._store.names(chain_of(tp))
        check_numbers(tp, names)
        if len(names) < len(chain):
            raise BadArchive(f"{entry_name(tp, len(names))}: missing, and was there before")
        return len(names)

    def _body(self, name: str) -> bytes:
        if (body := self._store.get(name)) is None:
            raise BadArchive(f"{name}: missing, and its store lists it")
        return body

    def records(self, entry: ArchiveEntry, offset: int = 0) -> Iterator[Entry]:
        """Yield the records of an entry's object from `offset` on."""
        return unpack(entry, self._store.get(entry.object), offset)

    def put(self, entry: ArchiveEntry, body: bytes) -> bool:
        """Store an object, then its entry; return whether the entry is in the chain.

        Another archiver may have been first. What an error leaves open, the store answers: it has
        an entry with the name of its writer, or another, or none. Raises BadArchive for an object
        of this name with other bytes: an entry would name what cannot be replaced.
        """
        if not self._store.put_new(entry.object, body) and self._store.get(entry.object) != body:
            raise BadArchive(
                f"{entry.object}: has other bytes than its name says, and no entry names it yet:"
                " remove it, and the next look makes it anew"
            )
        name = entry_name(entry.tp, entry.n)
        if self._store.put_new(name, encode_entry(entry)):
            return True
        return self._store.get(name) == encode_entry(entry)

    def check(self, tp: TP, made_ms: int) -> int:
        """Read back what was not read back before, and mark it; return the first offset behind.

        Every boundary of the chain is a place to start, so the records are followed from the last
        mark on.
        """
        chain = self.refresh(tp)
        start = self.checked(tp)
        walk = Walk(tp, chain.entries[start].after if start >= 0 else None)
        for entry in chain.entries[start + 1 :]:
            for record in self.records(entry):
                walk.offer(record)
            if walk.cursor != entry.after:
                raise BadArchive(f"{entry.object}: ends otherwise than entry {entry.n} says")
        if len(chain) - 1 > start:
            mark = CheckedMark(len(chain) - 1, chain.end.sha256, made_ms)
            self._store.put_new(check_name(tp, mark.n), msgspec.json.encode(mark))
        return chain.next

    def checked(self, tp: TP) -> int:
        """Return the number of the last entry that was read back, -1 for none."""
        names = self._store.names(checks_of(tp))
        if not names:
            return -1
        name = f"{checks_of(tp)}/{names[-1]}"
        try:
            mark = msgspec.json.decode(self._store.get(name) or b"", type=CheckedMark)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise BadArchive(f"{name}: not the mark of a check: {error}") from None
        chain = self._chains.get(tp) or self.refresh(tp)
        if mark.n >= len(chain) or chain.sha256(mark.n) != mark.sha256:
            raise BadArchive(f"{name}: names another entry {mark.n} than the chain has")
        return mark.n
